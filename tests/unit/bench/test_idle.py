"""The reckoning and the table of `python -m bench.idle`."""

from typing import Any

import pytest

from bench.idle import LINES, Span, gauge, minute, table
from bench.statement_log import Spent, spent
from cronring import sql


def logged(took_ms: float, text: str, how: str = "execute __asyncpg_stmt_1__") -> str:
    text = text.replace("\n", "\n\t")
    return f"2026-11-22 22:45:00.123 +0545 [77] LOG:  duration: {took_ms:.3f} ms  {how}: {text}\n"


def test_statements_are_told_apart_by_their_whole_text() -> None:
    log = (
        logged(1.5, sql.statement("RenewLease"))
        + "2026-11-22 22:45:00.124 +0545 [77] LOG:  duration: 0.010 ms  bind x: not run yet\n"
        + logged(0.5, sql.statement("RenewLease"))
        + logged(0.02, "BEGIN;", "statement")
        + "2026-11-22 22:45:00.125 +0545 [77] LOG:  checkpoint starting: time\n"
        + logged(7.25, sql.statement("GetCronJobs"))
        + logged(0.1, "SELECT 1\nFROM something_else")
    )
    assert spent(log) == {
        "RenewLease": Spent(2, 2.0, 1.5),
        "BEGIN": Spent(1, 0.02, 0.02),
        "GetCronJobs": Spent(1, 7.25, 7.25),
        "other": Spent(1, 0.1, 0.1),
    }
    assert spent("") == {}


def spans(reading_cpu_s: float = 0.15) -> tuple[Span, Span]:
    quiet = Span(10.0, {"RenewLease": Spent(30, 9.0, 1.0), "GetCronJobs": Spent(1, 9.0, 9.0)}, 31, 0.6, 0.1)
    read = Span(
        2.0, {"GetCronJobs": Spent(30, 60.0, 4.0), "GetActivations": Spent(30, 3.0, 1.0)}, 60, reading_cpu_s, 0.08
    )
    return quiet, read


def test_a_minute_is_sixty_quiet_seconds_and_one_refetch_of_each_controller() -> None:
    found = minute(*spans(), controllers=3)
    # A refetch that came by itself while it was quiet is not counted beside the one of the minute.
    assert found["per_s"] == {"RenewLease": 3.0, "GetCronJobs": 0.05, "GetActivations": 0.05}
    assert found["statements_per_s"] == 3.1
    assert found["refetch_ms"] == 2.0
    # Of 150 ms in two seconds 120 are idling's: 1 ms for each of 30 refetches.
    assert found["refetch_cpu_ms"] == 1.0
    assert found["controller_cpu_ms_per_s"] == pytest.approx(20.0, abs=0.1)
    assert found["postgres_cpu_ms_per_s"] == pytest.approx(10.1)


def test_reading_never_costs_less_than_nothing() -> None:
    assert minute(*spans(0.05), controllers=3)["refetch_cpu_ms"] == 0.0


def test_a_gauge_is_found_by_its_whole_name() -> None:
    text = "# TYPE cronring_node_runners gauge\ncronring_node_runners 2.0\ncronring_node_runners_more 3.0\n"
    assert gauge(text, "node_runners") == 2.0
    with pytest.raises(AssertionError, match="ring_members"):
        gauge(text, "ring_members")


def size(jobs: int, times: float) -> dict[str, Any]:
    return {
        "jobs": jobs,
        **{line.name: times * number for number, line in enumerate(LINES)},
        "per_s": {"RenewLease": 3.0, "GetNow": 0.2} if jobs == 1_000 else {"RenewLease": 3.0, "GetModuleJobs": 0.1},
        "load": 0.5,
    }


def test_the_table_has_a_column_for_each_size_and_says_the_goals() -> None:
    result = {
        "name": "idle", "shape": {"controllers": 3, "runner": 1}, "machine": {"date": "2026-11-22"},
        "sizes": [size(1_000, 1), size(1_000_000, 2)],
    }  # fmt: skip
    lines = table(result).splitlines()
    assert lines[0] == "### idle: 3 controllers, 1 runner"
    assert "|  | 1,000 jobs | 1,000,000 jobs | last by first | goal |" in lines
    assert "| statements per second, whole cluster | 0 | 0 | - | flat |" in lines
    assert any("until it is ready" in line and line.endswith("| 2.00 | <= 3 |") for line in lines)
    # The most frequent first; what only one size had is in there, too.
    assert lines[-6:-2] == [
        "|---|---|---|",
        "| RenewLease | 3.0 | 3.0 |",
        "| GetNow | 0.2 | 0 |",
        "| GetModuleJobs | 0 | 0.1 |",
    ]
