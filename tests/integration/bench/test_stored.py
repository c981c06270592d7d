"""bench.stored: a very small run."""

from bench.stored import stored, table


def test_a_very_small_run() -> None:
    result = stored(jobs=200, rounds=1, seconds=0.05)
    coarse = "refetch_postgresql_us"  # the kernel counts by hundredths of a second
    assert all(value > 0 for name, value in result["figures"].items() if name != coarse)
    assert "bytes of WAL" in table(result)
