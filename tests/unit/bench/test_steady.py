"""The plan, the reckoning and the table of `bench.steady`, from books that are made up."""

import re
from collections import Counter
from typing import Any

import pytest

from bench.steady import Phase, Spent, figures_of, module, table
from cronring.schema.timetable import timetable

PHASE = Phase(500, 1_800_000_000, 60)


def books(**changed: Any) -> dict[str, Any]:
    return {
        "executions": 30_000,
        "completed": 30_000,
        "last_end": PHASE.ends + 0.25,
        "claims": [0.004, 0.021, 0.03],
        "starts": [0.0312, 0.0871, 0.12],
    } | changed


def figures(**changed: Any) -> dict[str, Any]:
    before = Spent(100.0, {"controllers": 10.0, "runners": 1.0, "postgresql": 5.0}, 50.0, 1_000)
    after = Spent(160.0, {"controllers": 16.0, "runners": 4.0, "postgresql": 8.0}, 92.0, 4_000)
    return figures_of(PHASE, books(**changed), before, after)


def test_each_second_has_as_many_ticks_as_the_rate_is() -> None:
    patterns = re.findall(r'@cron\("(.+?)"\)\nasync def job_', module(4, "off"))
    ticks: Counter[int] = Counter()
    for pattern in patterns:
        slot = timetable(pattern, 0, "").following("job", -1)
        while slot is not None and slot.tick < 60_000_000:
            ticks[slot.tick] += 1
            slot = timetable(pattern, 0, "").following("job", slot.tick)
    assert ticks == {second * 1_000_000: 4 for second in range(60)}


def test_without_a_jitter_jobs_have_no_policy_at_all() -> None:
    assert "jitter" not in module(4, "off")
    assert module(4, "900ms").count(', jitter="900ms")') == module(4, "off").count("@cron(")


def test_figures_are_by_execution_and_what_is_not_there_was_missed() -> None:
    found = figures()
    assert (found["per_second"], found["missed"], found["not_completed"]) == (500.0, 0, 0)
    assert (found["claim_p99_ms"], found["p50_ms"], found["p99_ms"], found["max_ms"]) == (21.0, 31.2, 87.1, 120.0)
    assert found["cpu_s"] == {"controllers": 0.2, "runners": 0.1, "postgresql": 0.1}
    assert found["commits"] == 0.1
    assert found["other_cores"] == 0.5
    short = figures(executions=29_990, completed=29_980)
    assert (short["missed"], short["not_completed"]) == (10, 10)
    with pytest.raises(AssertionError, match="nothing of 30000 has run"):
        figures(executions=0, completed=0, last_end=None, claims=None, starts=None)


def test_a_rate_that_is_not_kept_up_shows() -> None:
    assert figures(last_end=PHASE.begins + 120.0)["per_second"] == 250.0


def test_the_table_holds_the_goals_beside_what_was_measured() -> None:
    audit = {"ticks": 30_075, "executed": 30_075, "unaccounted": 0, "duplicates": 0, "early": 0, "undue": 0}
    result = {
        "name": "steady",
        "shape": {"executions/s": "500, 1000", "controllers": 3, "runners": 1, "jitter": "off"},
        "machine": {"date": "2026-11-22", "machine": "2 cores"},
        "load": {"before": 0.1, "after": 1.0},
        "rates": [figures(), figures() | {"rate": 100}, figures() | {"rate": 1_000}],
        "audit": audit,
    }
    lines = table(result).splitlines()
    assert lines[0] == "### steady: 500, 1000 executions/s, 3 controllers, 1 runners, off jitter"
    assert "all that is due in a second is due at :00.000 of it" in lines[4]
    of_500, of_100, of_1000 = lines[8:11]
    assert "| 87.1 | 100: met | 120.0 |" in of_500
    assert "| 87.1 | 25: missed | 120.0 |" in of_100
    assert "| 87.1 |  | 120.0 |" in of_1000
    assert "executed 30,075, unaccounted 0, duplicates 0, early 0, undue 0." in lines[12]
    assert "APScheduler 18 ms" in lines[13]
    assert "not of this run" in lines[13]
