"""bench.levers_books: a very small run."""

from bench.levers_books import TABLES, levers_books, table


def test_a_very_small_run() -> None:
    result = levers_books(jobs=200, batches=(100, 20), rounds=1, only=("heap_only", "unlocked"))
    assert [(each["name"], each["batch"]) for each in result["levers"]] == [
        (name, batch) for batch in (100, 20) for name in ("as_is", "again", "heap_only", "unlocked")
    ]
    for as_is, again, heap_only, unlocked in (result["levers"][:4], result["levers"][4:]):
        assert as_is["executions_heap_only"] == 0
        assert heap_only["executions_heap_only"] > 0.5
        assert heap_only["wal_bytes"] < 0.9 * as_is["wal_bytes"]
        assert unlocked["wal_bytes"] < 0.98 * as_is["wal_bytes"]
        assert abs(again["wal_bytes"] / as_is["wal_bytes"] - 1) < 0.05
    assert len(result["rows"]) == 2 + len(TABLES)
    assert all(each["us"] > 0 for each in result["rows"])
    assert "| executions: room, and no index on outcome" in table(result)
