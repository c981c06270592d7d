"""The plan, the reckoning and the table of `bench.steady`, from books that are made up."""

import re
from collections import Counter
from typing import Any

import pytest

from bench.steady import GAP_S, Phase, Spent, figures_of, module, plan, table
from schema.policy import read_policy
from schema.timetable import timetable

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


def test_rates_come_one_after_the_other() -> None:
    phases = plan([(25, 30), (100, 60)], 1_000)
    assert phases == [Phase(25, 1_000, 30), Phase(100, 1_030 + GAP_S, 60)]
    assert phases[0].ends == 1_029
    assert phases[1].due == 6_000


@pytest.mark.parametrize("warm_s", [0, 3])
def test_each_second_of_a_phase_has_as_many_ticks_as_its_rate_and_none_comes_before_or_after(warm_s: int) -> None:
    phase = Phase(4, 1_800_000_007, 11)
    declared = re.findall(
        r'@cron\("(.+?)", start_at="(.+?)", end_at="(.+?)", jitter="off"\)\nasync def job_',
        module(phase, warm_s, "off"),
    )
    ticks: Counter[int] = Counter()
    for pattern, start, end in declared:
        times = timetable(pattern, 0, read_policy({"start_at": start, "end_at": end}).text)
        slot = times.following("job", 0)
        while slot is not None:
            ticks[slot.tick] += 1
            slot = times.following("job", slot.tick)
    seconds = range(phase.begins - warm_s, phase.ends + 1)
    assert ticks == {second * 1_000_000: phase.rate for second in seconds}


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
