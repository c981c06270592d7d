"""Totals: what was due by the schedules, held against the books."""

import pytest

from controller.core.totals import Books, Cut, Span, Totals, total
from schema.policy import Policy

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
NOW = T0 + 100 * SECOND


DAY = 86_400 * SECOND
# T0 is 2026-09-21T14:13:20Z; the last of its ticks is 7:00 UTC of the 16th.
BERLIN = Policy(timezone="Europe/Berlin", end_at="2026-09-16T07:30:00Z").text


def at(seconds: float) -> int:
    return T0 + int(seconds * SECOND)


def books(**changes: object) -> Books:
    """A job each second since T0, idle, whose next tick is at 101 s, all 100 ticks executed."""
    whole = Books([Span("1s", T0, T0, None)], False, at(100), at(101), 100, 0, {}, [], at(101))
    changed = whole._replace(**changes)  # type: ignore[arg-type]  # fields by name, as each test says
    return changed if "next_run_at" in changes else changed._replace(next_run_at=changed.undecided_tick)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (books(), Totals(100, 100, 0, {}, 0)),
        (books(executed=97), Totals(100, 97, 0, {}, 3)),
        (
            books(executed=90, skipped={"overlap": 6, "no_runner": 4}),
            Totals(100, 90, 0, {"no_runner": 4, "overlap": 6}, 0),
        ),
        # Its last tick runs since 60 s: what passed meanwhile isn't decided yet.
        (
            books(executing=True, last_tick=at(60), undecided_tick=at(60), executed=59, running=1),
            Totals(60, 59, 1, {}, 0),
        ),
        (
            books(executing=True, last_tick=at(60), undecided_tick=at(60), executed=58, running=1),
            Totals(60, 58, 1, {}, 1),
        ),
        # Ticks that came due less than 2 s ago and are idle still count as nothing; older ones wait for a runner, say.
        (books(undecided_tick=at(99), executed=98), Totals(98, 98, 0, {}, 0)),
        (books(undecided_tick=at(90), executed=89), Totals(98, 89, 0, {}, 0, 9)),
        (books(undecided_tick=at(90), executed=88), Totals(98, 88, 0, {}, 1, 9)),
        # A tick run at once is counted at once.
        (books(undecided_tick=at(100), executed=99), Totals(99, 99, 0, {}, 0)),
        # Removed at 50 s, with its run of that tick still going on.
        (
            books(
                spans=[Span("1s", T0, T0, at(50))],
                executing=True,
                last_tick=at(50),
                undecided_tick=None,
                executed=49,
                running=1,
            ),
            Totals(50, 49, 1, {}, 0),
        ),
        (books(spans=[Span("1s", T0, T0, at(50))], undecided_tick=None, executed=49), Totals(50, 49, 0, {}, 1)),
        # Rescheduled at 50 s from each second to each 10 s.
        (
            books(
                spans=[Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)],
                undecided_tick=at(110),
                executed=55,
            ),
            Totals(55, 55, 0, {}, 0),
        ),
        # Rescheduled while it runs: the old schedule's ticks are closed, the new one's are open.
        (
            books(
                spans=[Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)],
                executing=True,
                last_tick=at(40),
                undecided_tick=at(60),
                executed=39,
                running=1,
                skipped={"overlap": 10},
            ),
            Totals(50, 39, 1, {"overlap": 10}, 0),
        ),
        # Paused since 40 s: what passes meanwhile is decided when it is resumed.
        (books(undecided_tick=at(40), next_run_at=None, executed=39), Totals(39, 39, 0, {}, 0)),
        (books(undecided_tick=at(40), next_run_at=None, executed=38), Totals(39, 38, 0, {}, 1)),
        # Paused at 40 s, while the tick before ran on.
        (
            books(executing=True, last_tick=at(39), undecided_tick=at(40), next_run_at=None, executed=38, running=1),
            Totals(39, 38, 1, {}, 0),
        ),
        # A manual run holds it since 60 s: the tick of 61 s is the first that is undecided.
        (books(executing=True, last_tick=at(60), undecided_tick=at(61), executed=60), Totals(60, 60, 0, {}, 0)),
        # Its next tick is late by its jitter only.
        (books(undecided_tick=at(90), next_run_at=at(120), executed=89), Totals(89, 89, 0, {}, 0)),
        # Several run at once: the next tick is known while they do.
        (books(executed=98, running=2), Totals(100, 98, 2, {}, 0)),
        # As many run as may, and the next ones wait for a place.
        (books(undecided_tick=at(90), executed=87, running=2), Totals(98, 87, 2, {}, 0, 9)),
        # A buffered tick's run_at is the end of the run that it waited for; so it is none that is late.
        (books(undecided_tick=at(90), next_run_at=at(99), executed=89), Totals(89, 89, 0, {}, 0)),
        # Its turn has come after an outage, but nobody has claimed it; its schedule is a new one since 95 s.
        (
            books(
                spans=[Span("1s", T0, T0, at(95)), Span("1s", T0, at(95), None)],
                undecided_tick=at(96),
                executed=95,
            ),
            Totals(98, 95, 0, {}, 0, 3),
        ),
        # Each ninth hour of Berlin, until a bound in its policy.
        (
            books(
                spans=[Span("0 9 * * *", T0, T0 - 10 * DAY, None, BERLIN)],
                last_tick=T0,
                undecided_tick=None,
                executed=3,
                skipped={"paused": 2},
            ),
            Totals(5, 3, 0, {"paused": 2}, 0),
        ),
        # A schedule that is past.
        (
            books(spans=[Span("0 0 1 1 * 2020", T0, T0, None)], undecided_tick=None, last_tick=None, executed=0),
            Totals(0, 0, 0, {}, 0),
        ),
    ],
)
def test_every_tick_is_counted_once(job: Books, expected: Totals) -> None:
    assert total([job], None, NOW, NOW) == expected


def test_jobs_add_up_and_none_makes_up_for_another() -> None:
    # The first has two executions too many (of a clock set back, say): they must not hide the other's missing one.
    found = total([books(executed=102), books(executed=99)], None, NOW, NOW)
    assert (found.executed, found.unaccounted) == (201, 1)
    assert found.due == 202


def test_a_span_of_time_counts_its_ticks_alone() -> None:
    found = total([books(executed=11)], at(20), at(30), NOW)
    assert found == Totals(11, 11, 0, {}, 0)
    assert total([books(executed=10)], at(20), at(30), NOW).unaccounted == 1
    assert total([books(executed=0)], at(200), at(300), NOW).due == 0
    waits = books(undecided_tick=at(15), executed=0)
    assert total([waits], at(20), at(30), NOW) == Totals(11, 0, 0, {}, 0, 11)
    assert total([waits], at(10), at(30), NOW).pending == 16


def test_ranges_that_reach_beyond_the_span_are_cut() -> None:
    job = books(executed=5, cuts=[Cut("overlap", at(10), at(22)), Cut("overlap", at(28), at(40))])
    assert total([job], at(20), at(30), NOW) == Totals(11, 5, 0, {"overlap": 6}, 0)


def test_a_cut_range_is_counted_by_the_schedule_of_its_time() -> None:
    spans = [Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)]
    job = books(spans=spans, undecided_tick=at(110), executed=20, cuts=[Cut("no_runner", at(60), at(90))])
    # Ticks from 30 s to 50 s each second, then at 60, 70 and 80 s.
    assert total([job], at(30), at(80), NOW) == Totals(24, 20, 0, {"no_runner": 3}, 1)
