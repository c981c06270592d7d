"""The modules and the table of `bench.herd`, and the jobs that it puts into the tables by itself."""

from pathlib import Path

import pytest

from bench.herd import PERIOD_S, by_second, make_asleep, modules, table
from cronring.schema.keys import slot_of
from cronring.schema.validate import VERBS_LIMIT
from tests.support.looking import look

AT_ONCE = {
    "missed": 0, "skipped": {}, "drained_s": 2.5, "per_second": 8_000, "p50_ms": 1_200.0, "p99_ms": 2_400.0,
    "max_ms": 2_450.0, "seconds": [[0, 20_000, 9_000], [1, 0, 8_000], [2, 0, 3_000]],
}  # fmt: skip
SPREAD = {
    "missed": 3, "skipped": {"overlap": 3}, "drained_s": 8.1, "per_second": 2_469, "p50_ms": 8.0, "p99_ms": 30.0,
    "max_ms": 40.0, "seconds": [[0, 2_500, 2_480], [1, 2_500, 2_510]],
}  # fmt: skip


def test_a_herd_of_more_verbs_than_a_module_takes_is_in_several(tmp_path: Path) -> None:
    first, second = modules(tmp_path, VERBS_LIMIT + 5, "")
    assert first.read_text().count("async def ") == VERBS_LIMIT
    assert second.read_text().count("async def ") == 5
    assert f'@cron("*/{PERIOD_S} * * * * *")\n' in second.read_text()


def test_the_spread_herd_is_the_same_modules_with_a_jitter(tmp_path: Path) -> None:
    (together,), (spread,) = modules(tmp_path, 3, ""), modules(tmp_path, 3, "8s")
    assert together.name == spread.name
    assert spread.read_text().replace(', jitter="8s"', "") == together.read_text()


def test_the_table_says_when_they_started_second_by_second() -> None:
    result = {
        "name": "herd",
        "shape": {"jobs": 100_000, "due at once": 20_000, "jitter": "8s", "controllers": 3, "runners": 2},
        "machine": {"date": "2026-11-22"},
        "load": {"before": 0.1, "after": 1.0},
        "at_once": AT_ONCE,
        "spread": SPREAD,
    }
    lines = table(result).splitlines()
    assert "the other 80,000 jobs are rows put into the tables by SQL" in lines[4]
    assert lines[6] == (
        "Without a jitter, 8,000 a second: the last end was committed 2.5 s after the tick, 0 missed; "
        "lateness after run_at p50 1200 ms, p99 2400, max 2450."
    )
    assert lines[8:12] == by_second(AT_ONCE)
    assert lines[11] == "| started | 9,000 | 8,000 | 3,000 |"
    assert "3 missed (3 as overlap); lateness after run_at p50 8 ms" in lines[13]


async def test_those_that_sleep_are_jobs_as_the_store_makes_them(database_url: str) -> None:
    connection = await look(database_url)
    try:
        last = await make_asleep(database_url, connection, 50)
        made = await connection.fetch("SELECT * FROM cron_jobs ORDER BY id")
        assert len(made) == 50
        assert made[-1]["id"] == last
        assert all(job["slot"] == slot_of(job["key"]) for job in made)
        hours = {(job["next_tick"] - job["created_at"]).total_seconds() / 3_600 for job in made}
        assert all(each == pytest.approx(6, abs=0.1) for each in hours)
        first, *copies = made
        differ = {"id", "key", "slot", "created_at", "changed_at"}
        for copy in copies:
            assert {name for name in first.keys() if first[name] != copy[name]} <= differ  # noqa: SIM118  (a record)
        assert await connection.fetchval("SELECT count(*) FROM cron_schedules WHERE until_at IS NULL") == 50
    finally:
        await connection.close()
