"""What is coming: starts, load and herds, as schedules and measured durations say."""

from cronring.controller.core.ledger.coming import ComingSpan, ComingStep, Group, coming, ticking

SECOND = 1_000_000
HOUR = 3_600 * SECOND
AT = 1_790_002_800 * SECOND  # 2026-09-21T15:00:00Z


def group(schedule: str, jobs: int, *, policy: str = "", running_s: int = 0, name: str = "m.v") -> Group:
    return Group(schedule, 0, policy, jobs, 0, running_s * SECOND, (name,))


def reckoned(groups: list[Group], from_at: int, step_us: int, steps: int) -> list[ComingStep]:
    span = ComingSpan(from_at, step_us, steps)
    return coming(ticking(groups, span), span)


def test_starts_and_load_are_those_of_all_jobs() -> None:
    hourly = group("0 * * * *", 10, running_s=600)
    steps = reckoned([hourly, group("30 * * * *", 5)], AT, HOUR, 3)
    assert [step.starts for step in steps] == [15, 15, 15]
    assert [step.load for step in steps] == [600 / 3_600] * 3
    assert [step.at for step in steps] == [AT, AT + HOUR, AT + 2 * HOUR]


def test_a_herd_is_what_begins_in_one_second() -> None:
    steps = reckoned([group("20 15 * * *", 40, name="a.a"), group("20 * * * *", 2, name="b.b")], AT, HOUR, 2)
    assert steps[0].herd == 42
    assert steps[0].herd_at == AT + 1_200 * SECOND
    assert set(steps[0].herd_keys) == {"a.a", "b.b"}
    assert steps[1].herd == 2


def test_what_jitter_would_do_is_told_beside_it() -> None:
    (plain,) = reckoned([group("20 15 * * *", 4_000)], AT, HOUR, 1)
    (spread,) = reckoned([group("20 15 * * *", 4_000, policy='{"jitter":"auto"}')], AT, HOUR, 1)
    assert plain.herd == 4_000
    assert plain.spread == 134, "spread over 30 s"
    assert (spread.herd, spread.spread) == (plain.spread, plain.spread)


def test_what_ticks_all_the_time_is_counted_and_not_looked_at_one_by_one() -> None:
    steps = reckoned([group("* * * * * *", 3, running_s=3)], AT, HOUR, 4)
    assert [step.starts for step in steps] == [3 * 3_600] * 4
    assert [step.load for step in steps] == [3.0] * 4
    assert [step.herd for step in steps] == [3] * 4


def test_nothing_comes_of_no_jobs() -> None:
    (step,) = reckoned([], AT, HOUR, 1)
    assert step[1:] == (0, 0.0, 0, AT, (), 0)


def test_the_first_instant_is_in_the_first_step_and_the_last_in_none() -> None:
    steps = reckoned([group("20 15 * * *", 1)], AT + 1_200 * SECOND, HOUR, 24)
    assert [step.starts for step in steps] == [1, *[0] * 23]
