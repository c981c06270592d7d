"""The audit of one job: what was due by its schedules, held against its books, counted and walked."""

from typing import NamedTuple

import pytest

from cronring.controller.core.ledger.audit import Audit, RunCounts, Scope, add_closed, counted
from cronring.controller.core.ledger.audit_walk import AuditRun, SkipRange, Walk
from cronring.controller.core.ledger.books import Closed, JobStanding, Span, TickTimeline
from cronring.schema.policy import Policy

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
NOW = T0 + 100 * SECOND
DAY = 86_400 * SECOND
# T0 is 2026-09-21T14:13:20Z; the last of its ticks is 7:00 UTC of the 16th.
BERLIN = Policy(timezone="Europe/Berlin", end_at="2026-09-16T07:30:00Z").text
JITTERED = Policy(jitter="±10%").text
EACH_SECOND = (Span("1s", T0, T0, None),)
IDLE = JobStanding(1, "billing.a", False, "", False, T0 + 100 * SECOND, T0 + 101 * SECOND)


def at(seconds: float) -> int:
    return T0 + int(seconds * SECOND)


class Case(NamedTuple):
    """A job's books: by default one each second since T0, idle, whose next tick is at 101 s, all 100 executed."""

    job: JobStanding = IDLE
    spans: tuple[Span, ...] = EACH_SECOND
    runs: tuple[AuditRun, ...] = ()
    skips: tuple[SkipRange, ...] = ()
    scope: Scope = Scope(None, NOW, NOW)
    closed: Closed | None = None


def run(second: float, **changes: object) -> AuditRun:
    tick = at(second)
    made = AuditRun(int(second) + 1, tick, 1, "schedule", tick, tick + 5, tick + 900, "completed")
    return made._replace(**changes)  # type: ignore[arg-type]  # fields by name


def runs(first: int, last: int) -> tuple[AuditRun, ...]:
    return tuple(run(second) for second in range(first, last + 1))


def skip(reason: str, first: int, last: int, ticks: int | None = None) -> SkipRange:
    return SkipRange(first, reason, at(first), at(last), last - first + 1 if ticks is None else ticks)


def standing(**changes: object) -> JobStanding:
    return IDLE._replace(**changes)  # type: ignore[arg-type]  # fields by name


def walked(case: Case) -> Audit:
    walk = Walk(case.scope, case.job, TickTimeline(list(case.spans)), case.closed)
    in_scope = [each for each in case.runs if walk.start < each.tick <= case.scope.until]
    items: list[AuditRun | SkipRange] = [*case.skips, *in_scope]
    items.sort(key=lambda item: (item.tick, 1) if isinstance(item, AuditRun) else (item.first_tick, 0))
    for item in items:
        if isinstance(item, AuditRun):
            walk.run(item)
        else:
            walk.skip(item)
    return walk.finish()


def counts(case: Case) -> RunCounts:
    """What the database counts."""
    timeline = TickTimeline(list(case.spans))
    start = Walk(case.scope, case.job, timeline, case.closed).start
    found = [each for each in case.runs if start < each.tick <= case.scope.until]
    scheduled = [each for each in found if each.trigger in {"schedule", "catch_up"}]
    ended = [each for each in scheduled if each.outcome is not None]
    on_time = [each for each in ended if each.trigger == "schedule" and each.lateness_us <= case.scope.late_after]
    caught_up = sum(each.trigger == "catch_up" for each in ended)
    return RunCounts(
        len(on_time), len(ended) - len(on_time) - caught_up, caught_up, len(scheduled) - len(ended),
        sum(each.attempt > 1 for each in scheduled), sum(each.trigger == "backfill" for each in found),
        max((each.run_at - each.began_at for each in found), default=-1),
        max((each.tick - each.began_at for each in scheduled), default=-1),
    )  # fmt: skip


def by_count(case: Case) -> Audit | None:
    timeline = TickTimeline(list(case.spans))
    start = Walk(case.scope, case.job, timeline, case.closed).start
    skipped: dict[str, int] = {}
    for part in case.skips:
        first, last = max(part.first_tick, start + 1), min(part.last_tick, case.scope.until)
        is_cut = (first, last) != (part.first_tick, part.last_tick)
        ticks = timeline.count(first - 1, last) if is_cut and first <= last else part.ticks * (first <= last)
        skipped[part.reason] = skipped.get(part.reason, 0) + ticks
    return counted(case.scope, case.job, timeline, counts(case), skipped, case.closed)


def figures(found: Audit) -> dict[str, object]:
    """What isn't zero."""
    names = (
        "ticks", "on_time", "late", "caught_up", "backfilled", "running", "pending", "unaccounted", "duplicates",
        "early", "undue",
    )  # fmt: skip
    shown: dict[str, object] = {name: getattr(found, name) for name in names if getattr(found, name)}
    skipped = {reason: ticks for reason, ticks in sorted(found.skipped.items()) if ticks}
    return shown | ({"skipped": skipped} if skipped else {})


AGREEING = {
    "all executed": (Case(runs=runs(1, 100)), {"ticks": 100, "on_time": 100}),
    "skipped for two reasons": (
        Case(runs=runs(11, 100), skips=(skip("overlap", 1, 6), skip("no_runner", 7, 10))),
        {"ticks": 100, "on_time": 90, "skipped": {"no_runner": 4, "overlap": 6}},
    ),
    "late, caught up, and a further attempt": (
        Case(
            runs=(
                *runs(1, 97), run(98, started_at=at(98 + 11)), run(99, trigger="catch_up"),
                run(100, outcome="failed"),
                run(100, trigger="retry", attempt=2, run_at=at(100.5), claimed_at=at(101), started_at=at(101)),
            )
        ),
        {"ticks": 100, "on_time": 98, "late": 1, "caught_up": 1},
    ),
    "its last tick runs since 60 s, and what passes meanwhile isn't decided": (
        Case(
            standing(executing=True, last_tick=at(60), undecided_tick=at(60)),
            runs=(*runs(1, 59), run(60, outcome=None, started_at=None)),
        ),
        {"ticks": 100, "on_time": 59, "running": 1, "pending": 40},
    ),
    "due less than 2 s ago": (
        Case(standing(last_tick=at(98), undecided_tick=at(99)), runs=runs(1, 98)),
        {"ticks": 100, "on_time": 98, "pending": 2},
    ),
    "it waits for a runner, or for its turn: its job stands before it": (
        Case(standing(last_tick=at(89), undecided_tick=at(90)), runs=runs(1, 89)),
        {"ticks": 100, "on_time": 89, "pending": 11},
    ),
    "run at once": (
        Case(standing(last_tick=at(99), undecided_tick=at(100)), runs=runs(1, 99)),
        {"ticks": 100, "on_time": 99, "pending": 1},
    ),
    "as many run as may, and the next ones wait for a place": (
        Case(
            standing(last_tick=at(89), undecided_tick=at(90)),
            runs=(*runs(1, 87), run(88, outcome=None), run(89, outcome=None)),
        ),
        {"ticks": 100, "on_time": 87, "running": 2, "pending": 11},
    ),
    "its turn has come after an outage, by a schedule that is new since 95 s": (
        Case(
            standing(last_tick=at(95), undecided_tick=at(96)),
            (Span("1s", T0, T0, at(95)), Span("1s", T0, at(95), None)),
            runs(1, 95),
        ),
        {"ticks": 100, "on_time": 95, "pending": 5},
    ),
    "it waits since before the span of time": (
        Case(standing(last_tick=at(14), undecided_tick=at(15)), runs=runs(1, 14), scope=Scope(at(20), at(30), NOW)),
        {"ticks": 11, "pending": 11},
    ),
    "it waits since within the span of time": (
        Case(standing(last_tick=at(24), undecided_tick=at(25)), runs=runs(1, 24), scope=Scope(at(20), at(30), NOW)),
        {"ticks": 11, "on_time": 5, "pending": 6},
    ),
    "removed at 50 s, and its last run goes on": (
        Case(
            standing(removed=True, executing=True, last_tick=at(50), undecided_tick=None),
            (Span("1s", T0, T0, at(50)),),
            (*runs(1, 49), run(50, outcome=None)),
        ),
        {"ticks": 50, "on_time": 49, "running": 1},
    ),
    "rescheduled at 50 s": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)),
            (*runs(1, 50), *(run(second) for second in range(60, 101, 10))),
        ),
        {"ticks": 55, "on_time": 55},
    ),
    "rescheduled while it runs": (
        Case(
            standing(executing=True, last_tick=at(40), undecided_tick=at(60)),
            (Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)),
            (*runs(1, 39), run(40, outcome=None)),
            (skip("overlap", 41, 50),),
        ),
        {"ticks": 55, "on_time": 39, "running": 1, "pending": 5, "skipped": {"overlap": 10}},
    ),
    "paused since 40 s": (
        Case(standing(kept="paused", undecided_tick=at(40)), runs=runs(1, 39)),
        {"ticks": 100, "on_time": 39, "skipped": {"paused": 61}},
    ),
    "paused at 40 s, while the tick before ran on": (
        Case(
            standing(kept="paused", executing=True, last_tick=at(39), undecided_tick=at(40)),
            runs=(*runs(1, 38), run(39, outcome=None)),
        ),
        {"ticks": 100, "on_time": 38, "running": 1, "skipped": {"paused": 61}},
    ),
    "paused until later: the books say so ahead": (
        Case(standing(undecided_tick=at(200)), runs=runs(1, 39), skips=(skip("paused", 40, 199),)),
        {"ticks": 100, "on_time": 39, "skipped": {"paused": 61}},
    ),
    "a manual run holds it since 60 s": (
        Case(
            standing(executing=True, last_tick=at(60), undecided_tick=at(61)),
            runs=(*runs(1, 60), run(60.5, trigger="manual", outcome=None)),
        ),
        {"ticks": 100, "on_time": 60, "pending": 40},
    ),
    "late by its jitter only": (
        Case(standing(undecided_tick=at(90)), runs=runs(1, 89)),
        {"ticks": 100, "on_time": 89, "pending": 11},
    ),
    "several run at once": (
        Case(runs=(*runs(1, 98), run(99, outcome=None), run(100, outcome=None))),
        {"ticks": 100, "on_time": 98, "running": 2},
    ),
    "hours of a zone, until a bound": (
        Case(
            standing(undecided_tick=None, last_tick=T0),
            (Span("0 9 * * *", T0, T0 - 10 * DAY, None, BERLIN),),
            skips=(SkipRange(1, "paused", T0 - 10 * DAY, T0, 5),),
        ),
        {"ticks": 5, "skipped": {"paused": 5}},
    ),
    "a schedule that is past": (
        Case(standing(undecided_tick=None, last_tick=None), (Span("0 0 1 1 * 2020", T0, T0, None),)),
        {},
    ),
    "a span of time": (
        Case(runs=runs(1, 100), scope=Scope(at(20), at(30), NOW)),
        {"ticks": 11, "on_time": 11},
    ),
    "in the future": (Case(runs=runs(1, 100), scope=Scope(at(200), at(300), NOW)), {}),
    "ranges that reach beyond the span of time": (
        Case(
            runs=runs(23, 27),
            skips=(skip("overlap", 10, 22), skip("overlap", 28, 40)),
            scope=Scope(at(20), at(30), NOW),
        ),
        {"ticks": 11, "on_time": 5, "skipped": {"overlap": 6}},
    ),
    "one range around the span of time": (
        Case(skips=(skip("overlap", 10, 40),), scope=Scope(at(20), at(30), NOW)),
        {"ticks": 11, "skipped": {"overlap": 11}},
    ),
    "a cut range is counted by the schedule of its time": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)),
            runs(30, 50),
            (SkipRange(1, "no_runner", at(60), at(90), 4),),
            Scope(at(30), at(80), NOW),
        ),
        {"ticks": 24, "on_time": 21, "skipped": {"no_runner": 3}},
    ),
    "an interval's jitter goes both ways": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("every 50s", T0, T0, None, JITTERED),),
            (run(50, run_at=at(47), claimed_at=at(47.1), started_at=at(47.2)), run(100, run_at=at(104))._replace(
                claimed_at=at(104), started_at=at(104))),
        ),
        {"ticks": 2, "on_time": 2},
    ),
    "retention has summarised until 40 s": (
        Case(
            runs=runs(35, 100),
            closed=Closed(1, at(40), 40, 30, 4, 1, {"overlap": 10}, {"completed": 30}),
        ),
        {"ticks": 100, "on_time": 85, "late": 1, "caught_up": 4, "skipped": {"overlap": 10}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREEING)
def test_books_that_agree_are_counted_and_walked_alike(name: str) -> None:
    case, expected = AGREEING[name]
    found = by_count(case)
    assert found is not None, "counting is enough"
    assert figures(found) == expected
    assert figures(walked(case)) == expected
    assert all(finding.kind == "unaccounted" for finding in walked(case).findings)


VIOLATIONS = {
    "a tick that is nowhere": (
        Case(runs=(*runs(1, 49), *runs(51, 100))),
        {"ticks": 100, "on_time": 99, "unaccounted": 1},
        ["unaccounted 50 1: was due: neither executed nor skipped"],
    ),
    "several in a row, and the last ones": (
        Case(runs=(*runs(1, 49), *runs(53, 98))),
        {"ticks": 100, "on_time": 95, "unaccounted": 5},
        [
            "unaccounted 50 3: was due, and so were the ticks after it until "
            "2026-09-21T14:14:12Z: neither executed nor skipped",
            "unaccounted 99 2: was due, and so were the ticks after it until "
            "2026-09-21T14:15:00Z: neither executed nor skipped",
        ],
    ),
    "one that its job has gone past, while others wait for a runner": (
        Case(standing(last_tick=at(89), undecided_tick=at(90)), runs=(*runs(1, 49), *runs(51, 89))),
        {"ticks": 100, "on_time": 88, "pending": 11, "unaccounted": 1},
        ["unaccounted 50 1: was due: neither executed nor skipped"],
    ),
    "one that its job has gone past, while it runs": (
        Case(
            standing(executing=True, last_tick=at(60), undecided_tick=at(60)),
            runs=(*runs(1, 49), *runs(51, 59), run(60, outcome=None)),
        ),
        {"ticks": 100, "on_time": 58, "running": 1, "pending": 40, "unaccounted": 1},
        ["unaccounted 50 1: was due: neither executed nor skipped"],
    ),
    "removed, and its books end too early": (
        Case(standing(removed=True, undecided_tick=None), (Span("1s", T0, T0, at(50)),), runs(1, 49)),
        {"ticks": 50, "on_time": 49, "unaccounted": 1},
        ["unaccounted 50 1: was due: neither executed nor skipped"],
    ),
    "executed twice by schedule": (
        Case(runs=(*runs(1, 100), run(100, attempt=2, execution_id=500))),
        {"ticks": 100, "on_time": 100, "duplicates": 1},
        ["duplicates 100 1: ran by schedule as execution 101, and as execution 500"],
    ),
    "executed and skipped": (
        Case(runs=runs(1, 100), skips=(skip("overlap", 50, 50),)),
        {"ticks": 100, "on_time": 100, "duplicates": 1, "skipped": {"overlap": 1}},
        ["duplicates 50 1: ran as execution 51, and is skipped (overlap)"],
    ),
    "executed amid a range": (
        Case(runs=(*runs(1, 50), *runs(55, 55), *runs(61, 100)), skips=(skip("overlap", 51, 60),)),
        {"ticks": 100, "on_time": 91, "duplicates": 1, "skipped": {"overlap": 10}},
        ["duplicates 55 1: ran as execution 56, and is skipped (overlap)"],
    ),
    "skipped twice": (
        Case(runs=runs(21, 100), skips=(skip("overlap", 1, 12), skip("paused", 11, 20))),
        {"ticks": 100, "on_time": 80, "duplicates": 2, "skipped": {"overlap": 12, "paused": 10}},
        [
            "duplicates 11 2: skipped (paused) from 2026-09-21T14:13:31Z to 2026-09-21T14:13:40Z, and in another range"
        ],
    ),
    "a range that counts more than was due": (
        Case(runs=runs(11, 100), skips=(skip("overlap", 1, 10, 12),)),
        {"ticks": 100, "on_time": 90, "undue": 2, "skipped": {"overlap": 12}},
        [
            "undue 1 2: skipped (overlap) from 2026-09-21T14:13:21Z to 2026-09-21T14:13:30Z: "
            "the range counts 12 ticks, and 10 were due"
        ],
    ),
    "a range that counts fewer": (
        Case(runs=runs(11, 100), skips=(skip("overlap", 1, 10, 9),)),
        {"ticks": 100, "on_time": 90, "unaccounted": 1, "skipped": {"overlap": 9}},
        [
            "unaccounted 1 1: skipped (overlap) from 2026-09-21T14:13:21Z to 2026-09-21T14:13:30Z: "
            "the range counts 9 ticks, and 10 were due"
        ],
    ),
    "claimed before its run_at": (
        Case(runs=(*runs(1, 99), run(100, run_at=at(100.5), claimed_at=at(100.4), started_at=None))),
        {"ticks": 100, "on_time": 100, "early": 1},
        ["early 100 1: execution 101 began 100ms before its run_at"],
    ),
    "begun before its run_at, though claimed after it": (
        Case(runs=(*runs(1, 99), run(100, started_at=at(99.9)))),
        {"ticks": 100, "on_time": 100, "early": 1},
        ["early 100 1: execution 101 began 100ms before its run_at"],
    ),
    "a pattern's tick is never early, whatever its run_at": (
        Case(runs=(*runs(1, 99), run(100, run_at=at(99.5), claimed_at=at(99.5), started_at=at(99.6)))),
        {"ticks": 100, "on_time": 100, "early": 1},
        ["early 100 1: execution 101 began 500ms before its tick"],
    ),
    "earlier than an interval's jitter": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("every 50s", T0, T0, None, JITTERED),),
            (run(50, run_at=at(40), claimed_at=at(40), started_at=at(40)), run(100)),
        ),
        {"ticks": 2, "on_time": 2, "early": 1},
        ["early 50 1: execution 51 began 10s before its tick"],
    ),
    "earlier than its policy allows, and it was not the first by it": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("every 50s", T0, T0, at(10), JITTERED), Span("every 50s", T0, at(10), None)),
            (run(50), run(100, run_at=at(96), claimed_at=at(96), started_at=at(96))),
        ),
        {"ticks": 2, "on_time": 2, "early": 1},
        ["early 100 1: execution 101 began 4s before its tick"],
    ),
    "by the schedule of before": (
        Case(
            standing(undecided_tick=at(110)),
            (Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None)),
            (*runs(1, 50), run(55), *(run(second) for second in range(60, 101, 10))),
        ),
        {"ticks": 55, "on_time": 56, "undue": 1},
        ["undue 55 1: execution 56 ran by schedule, and no schedule of the job had this tick"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_each_kind_of_violation_is_found(name: str) -> None:
    case, expected, findings = VIOLATIONS[name]
    assert by_count(case) is None, "the counts must not agree"
    found = walked(case)
    assert figures(found) == expected
    shown = [f"{each.kind} {(each.tick - T0) // SECOND} {each.ticks}: {each.text}" for each in found.findings]
    assert shown == findings


def test_a_pair_that_cancels_out_is_found_by_a_walk_alone() -> None:
    spans = (Span("1s", T0, T0, at(50)), Span("every 10s", at(50), at(50), None))
    ran = (*runs(1, 50), run(55), *(run(second) for second in range(70, 101, 10)))
    case = Case(standing(undecided_tick=at(110)), spans, ran)
    assert by_count(case) is not None, "why a thorough audit walks"
    assert figures(walked(case)) == {"ticks": 55, "on_time": 55, "unaccounted": 1, "undue": 1}


EARLY = run(50, run_at=at(46), claimed_at=at(46), started_at=at(46))
EACH_50_S = Span("every 50s", T0, at(-20), None)
FROM_10_S = EACH_50_S._replace(from_at=at(10))
BEFORE = EACH_50_S._replace(until_at=at(10), policy=JITTERED)
OTHERS = (BEFORE._replace(until_at=at(5)), BEFORE._replace(from_at=at(5), policy=Policy(overlap="skip").text))


@pytest.mark.parametrize(
    ("before", "early"), [((BEFORE,), 0), (OTHERS, 0), ((BEFORE._replace(schedule="every 20s"),), 1)]
)
def test_what_had_come_due_stays_due_by_another_policy_of_the_same_ticks(before: tuple[Span, ...], early: int) -> None:
    # Seed 6100111 with few places: a deployment took `±` away between the run_at and the claim.
    case = Case(standing(undecided_tick=at(110)), (*before, FROM_10_S), (EARLY, run(100)))
    assert by_count(case) is None, "it may have begun too early"
    assert (walked(case).ticks, walked(case).on_time, walked(case).early) == (2, 2, early)


def test_what_retention_took_away_may_have_let_a_tick_come_due() -> None:
    job, spans = standing(undecided_tick=at(110)), (FROM_10_S,)
    closed = Closed(1, at(10), 1, 1, 0, 0, {}, {"completed": 1})
    assert figures(walked(Case(job, spans, (EARLY, run(100)), closed=closed))) == {"ticks": 3, "on_time": 3}
    later = run(100, run_at=at(96), claimed_at=at(96), started_at=at(96))
    assert walked(Case(job, spans, (run(50), later), closed=closed)).early == 1


def test_what_a_backfill_made_up_for_is_executed_and_not_skipped() -> None:
    made_up = tuple(run(second, trigger="backfill", claimed_at=at(90), started_at=at(90)) for second in range(11, 15))
    again = run(12, trigger="backfill", attempt=2, claimed_at=at(91), started_at=at(91))
    going_on = run(15, trigger="backfill", claimed_at=at(92), started_at=None, outcome=None)
    ran = (*runs(1, 10), *made_up, again, going_on, *runs(31, 100), run(40, trigger="backfill", attempt=2))
    case = Case(runs=ran, skips=(skip("superseded", 11, 30),))
    assert by_count(case) is None
    found = walked(case)
    assert figures(found) == {"ticks": 100, "on_time": 80, "backfilled": 4, "skipped": {"superseded": 16}}
    assert found.executed == 84


def test_what_somebody_decided_ahead_leaves_the_ticks_before_it_undecided() -> None:
    # It runs since 60 s, and 70 s is not to run.
    job = standing(executing=True, last_tick=at(60), undecided_tick=at(61))
    case = Case(job, runs=(*runs(1, 59), run(60, outcome=None)), skips=(skip("cancelled", 70, 70),))
    found = walked(case)
    assert figures(found) == {"ticks": 100, "on_time": 59, "running": 1, "pending": 39, "skipped": {"cancelled": 1}}


def test_jobs_add_up_and_findings_of_a_kind_are_few() -> None:
    total = Audit()
    for _ in range(30):
        total.add(walked(Case(runs=runs(2, 100))))
    total.add(walked(Case(runs=(*runs(1, 100), run(100, attempt=2)))))
    assert (total.ticks, total.executed, total.unaccounted, total.duplicates) == (3_100, 3_070, 30, 1)
    assert [finding.kind for finding in total.findings] == ["unaccounted"] * 20 + ["duplicates"]
    assert (total.jobs, total.walked, total.clean) == (31, 31, False)


def test_books_that_were_closed_keep_what_was_wrong() -> None:
    found = Audit()
    add_closed(found, Scope(None, NOW, NOW), Closed(0, at(40), 40, 30, 0, 0, {"overlap": 9}, {}))
    add_closed(found, Scope(None, NOW, NOW), Closed(0, at(40), 40, 41, 0, 0, {}, {}))
    assert (found.unaccounted, found.duplicates, found.summarised_until) == (1, 1, at(40))


def test_of_a_part_of_what_is_summarised_nothing_is_said_but_that_it_is() -> None:
    closed = Closed(1, at(40), 40, 30, 0, 0, {"overlap": 10}, {})
    case = Case(runs=runs(1, 100), scope=Scope(at(20), NOW, NOW), closed=closed)
    found = by_count(case)
    assert found is not None
    assert (figures(found), found.summarised_until) == ({"ticks": 60, "on_time": 60}, at(40))
