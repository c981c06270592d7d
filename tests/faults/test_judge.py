"""The judge finds what is wrong with a story, and nothing in one where all is well."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.bounds import Bounds, Excuse
from tests.faults.judge import Finding, judge_skips, judge_starts, percentile
from tests.support.judge import JournalRun

T = 1_800_000_000.0
PERIODS_S = {"brief": 1, "long": 2}
Story = tuple[list[dict[str, Any]], list[dict[str, Any]], list[JournalRun]]


def execution(number: int, verb: str, tick: float, ended_at: float | None, started_at: float | None = None) -> Any:
    began = tick + 0.01 if started_at is None else started_at
    return {
        "id": number, "verb": verb, "trigger": "schedule", "tick": tick, "run_at": tick, "claimed_at": began,
        "started_at": began, "ended_at": ended_at, "outcome": None if ended_at is None else "completed",
    }  # fmt: skip


def well() -> Story:
    """Brief ones each second; one long run from T to T + 3, beside which T + 2 is passed over."""
    executions = [execution(number, "brief", T + number, T + number + 0.05) for number in range(4)]
    executions.append(execution(10, "long", T, T + 3))
    skips = [{"verb": "long", "reason": "overlap", "first_tick": T + 2, "last_tick": T + 2, "ticks": 1}]
    runs = [JournalRun(e["verb"], e["id"], e["tick"], e["claimed_at"], e["ended_at"]) for e in executions]
    return executions, skips, runs


def judged(story: Story, bounds: Bounds | None = None) -> Finding:
    executions, skips, runs = story
    bounds = bounds or Bounds(PERIODS_S)
    finding = Finding()
    judge_starts(finding, executions, runs, T + 10, bounds)
    judge_skips(finding, skips, executions, runs, T + 10, bounds)
    return finding


def test_where_all_is_well_nobody_is_guilty() -> None:
    finding = judged(well())
    assert finding.guilty() == {}
    assert len(finding.lateness_s) == 5
    assert finding.excused == 0


def begin_late(story: Story) -> None:
    story[2][1] = JournalRun("brief", 1, T + 1, T + 2.2, T + 2.3)


def pass_over(story: Story) -> None:
    story[1].append({"verb": "brief", "reason": "superseded", "first_tick": T + 4, "last_tick": T + 5, "ticks": 2})


def say_overlap(story: Story) -> None:
    story[1].append({"verb": "brief", "reason": "overlap", "first_tick": T + 5, "last_tick": T + 5, "ticks": 1})


def say_no_runner_beside_a_run(story: Story) -> None:
    story[1][0]["reason"] = "no_runner"


@pytest.mark.parametrize(
    ("tamper", "kind", "found"),
    [
        (begin_late, "late", 1),
        (pass_over, "unexcused", 2),
        (say_overlap, "unexcused", 1),
        (say_no_runner_beside_a_run, "unexcused", 1),
    ],
)
def test_what_is_wrong_is_found(tamper: Callable[[Story], None], kind: str, found: int) -> None:
    story = well()
    tamper(story)
    guilty = judged(story).guilty()
    assert list(guilty) == [kind]
    assert len(guilty[kind]) == found


def test_what_is_excused_is_counted_and_not_held_against_anybody() -> None:
    story = well()
    begin_late(story)
    pass_over(story)
    bounds = Bounds(PERIODS_S, excuses=[Excuse(T + 1.5, T + 5, "away", frozenset({"brief"}))])
    finding = judged(story, bounds)
    assert finding.guilty() == {}
    assert finding.excused == 5, "ticks 1, 2 and 3 that ran, 4 and 5 that did not"


def test_where_a_tick_may_be_later_than_its_period_the_next_one_may_overtake_it() -> None:
    story = well()
    story[1].append({"verb": "brief", "reason": "superseded", "first_tick": T + 2, "last_tick": T + 2, "ticks": 1})
    story[2][2:4] = [JournalRun("brief", 3, T + 3, T + 3.9, T + 3.95)]
    assert set(judged(story, Bounds(PERIODS_S, late_s=1.0)).guilty()) == {"unexcused"}
    assert judged(story, Bounds(PERIODS_S, late_s=1.2)).guilty() == {}
    pass_over(story)
    assert set(judged(story, Bounds(PERIODS_S, late_s=1.2)).guilty()) == {"unexcused"}, "nothing ran thereafter"


def test_an_excuse_holds_for_its_time_and_its_verbs_only() -> None:
    excuse = Excuse(T, T + 5, "away", frozenset({"brief"}))
    assert not excuse.covers("long", T + 1, 1.0)
    assert excuse.covers("brief", T - 1, 1.0)
    assert not excuse.covers("brief", T - 2, 1.0)
    assert not excuse.covers("brief", T + 6, 1.0)


def test_where_clocks_differ_the_books_alone_count() -> None:
    executions, skips, _ = well()
    elsewhere = [
        JournalRun(e["verb"], e["id"], e["tick"], e["claimed_at"] + 60, e["ended_at"] + 60) for e in executions
    ]
    assert judged((executions, skips, elsewhere), Bounds(PERIODS_S, one_clock=False)).guilty() == {}
    assert set(judged((executions, skips, elsewhere)).guilty()) == {"late", "unexcused"}


def test_percentiles() -> None:
    assert percentile([], 0.99) == 0.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.99) == 4.0
