from typing import Any

from cronring.controller.core.model import ClaimResult
from cronring.controller.core.node import effects, events
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.timetable import timetable
from tests.unit.core.told import S_US, T, Told, job, runner, won

DUE = T + 10 * S_US


def _not_won(told: Told, **changes: Any) -> ClaimResult:
    base = ClaimResult(1, False, True, None, told.database_us, False, DUE, DUE, 1)
    return base._replace(**changes)


def test_due_jobs_are_claimed_on_the_instant_in_one_statement() -> None:
    told = Told()
    told.ready(*(job(number) for number in (3, 1, 2)))
    told.wait_renewing(9_900)
    assert not told.take(effects.Claim)
    told.wait(100)
    claim = told.one(effects.Claim)
    assert [request.job_id for request in claim.requests] == [1, 2, 3]
    assert 0 <= told.database_us - DUE < 100_000


def test_what_comes_due_while_claims_are_under_way_is_the_next_batch() -> None:
    told = Told(claim_batch=2, claims_in_flight=2)
    told.ready(*(job(number) for number in range(1, 8)))
    told.wait_renewing(10_000)
    first, second = told.take(effects.Claim)
    assert len(first.requests) == len(second.requests) == 2
    results = [won(request, request.job_id, told.database_us) for request in first.requests]
    told.tell(events.Claimed(first.request_id, told.database_us, results))
    assert len(told.one(effects.Claim).requests) == 2


def test_a_claim_that_came_too_early_is_tried_again_when_it_is_due() -> None:
    """The row decides by PostgreSQL's clock, whatever this controller thinks of it."""
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told, claimed_at=DUE - 3_000))
    told.wait(4)
    assert not told.take(effects.Claim)
    told.wait(2)
    assert len(told.take(effects.Claim)) == 1
    assert told.node.stats().claims_early == 1


def test_a_row_that_someone_else_is_claiming_is_tried_again_soon() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told))
    told.wait(60)
    assert len(told.take(effects.Claim)) == 1


def test_a_job_that_runs_elsewhere_is_tried_again_at_its_next_tick() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told, executing=True))
    told.wait_renewing(9_800)
    assert not told.take(effects.Claim)
    told.wait_renewing(300)
    assert told.one(effects.Claim).requests[0].expected_tick == DUE + 10 * S_US


def test_a_job_that_runs_elsewhere_is_not_tried_from_an_early_run_at_until_its_tick() -> None:
    """An interval's jitter puts run_at up to half an interval before its tick (seed 4 of a year)."""
    told = Told()
    policy = '{"jitter":"±45%"}'
    table = timetable("every 1h", T, policy)
    slots = [table.following("m.j1", T + hours * 3_600 * S_US) for hours in range(40)]
    early = next(slot for slot in slots if slot is not None and slot.tick - slot.run_at > 60 * S_US)
    before = early.tick - 3_600 * S_US
    told.now_ns = (early.run_at - 10 * S_US - T) * 1_000
    told.ready(job(schedule="every 1h", policy=policy, executing=True, next_tick=before, next_run_at=before))
    told.wait_renewing(10_000)
    for _ in range(5):
        for claim in told.take(effects.Claim):
            refusal = ClaimResult(1, False, True, None, told.database_us, True, before, before, 1)
            told.tell(events.Claimed(claim.request_id, told.database_us, [refusal]))
    assert told.node.stats().claims_wasted == 1


def test_what_was_missed_is_no_overlap_before_reports_had_time_to_come() -> None:
    """Runs that ended while nobody was there still count in their job's row (seed 64 of a year)."""
    told = Told()
    policy = '{"overlap":"allow","max_concurrent":1}'
    told.ready(job(due=T - 7_200 * S_US, schedule="10m", policy=policy))
    told.claimed(_not_won(told, executing=True, next_tick=T - 7_200 * S_US, next_run_at=T - 7_200 * S_US))
    told.wait_renewing(200)
    assert not told.take(effects.SkipTicks)
    claim = told.one(effects.Claim)
    (request,) = claim.requests
    assert (request.run_tick, request.skipped[0].reason) == (T, SkipReason.SUPERSEDED)
    refusal = _not_won(told, executing=True, next_tick=T - 7_200 * S_US, next_run_at=T - 7_200 * S_US)
    told.wait_renewing(9_000)
    told.tell(events.Claimed(claim.request_id, told.database_us, [refusal]))
    told.wait(1)
    (skip,) = told.one(effects.SkipTicks).requests
    assert skip.skipped == (Skipped(SkipReason.OVERLAP, T - 7_200 * S_US, T, 13),)


def test_a_row_with_another_tick_is_believed() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told, next_tick=DUE + 3 * S_US, next_run_at=DUE + 3 * S_US))
    told.wait_renewing(3_100)
    assert told.one(effects.Claim).requests[0].expected_tick == DUE + 3 * S_US


def test_a_job_whose_deployment_is_inactive_is_forgotten() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told, active=False))
    assert told.node.stats().window_jobs == 0
    told.wait_renewing(20_000)
    assert not told.take(effects.Claim)


def test_missed_ticks_are_superseded_by_the_latest() -> None:
    told = Told()
    told.ready(job(due=T - 35 * S_US))
    request = told.one(effects.Claim).requests[0]
    assert (request.expected_tick, request.run_tick, request.run_at) == (T - 35 * S_US, T, T)
    (skipped,) = request.skipped
    assert (skipped.reason, skipped.ticks) == (SkipReason.SUPERSEDED, 4)


def test_a_newer_row_makes_the_window_be_read_again() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(_not_won(told, revision=2, next_tick=DUE + 3 * S_US, next_run_at=DUE + 3 * S_US))
    told.wait(30)
    assert len(told.take(effects.FetchWindow)) == 1


def test_a_tick_that_runs_later_by_another_policy_is_claimed_for_when_that_is() -> None:
    """The row came while the claim was under way, and the tick is the same one (seed 3034 with lanes)."""
    told = Told()
    told.ready(job(policy='{"jitter":"2s"}', next_run_at=DUE))
    told.wait_renewing(10_000)
    claim = told.one(effects.Claim)
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(policy='{"overlap":"allow"}', revision=2, next_run_at=DUE + S_US))
    refusal = _not_won(told, revision=2, next_run_at=DUE + S_US)
    told.tell(events.Claimed(claim.request_id, told.database_us, [refusal]))
    told.wait_renewing(1_100)
    (request,) = told.one(effects.Claim).requests
    assert (request.run_tick, request.run_at, request.revision) == (DUE, DUE + S_US, 2)


def test_a_failed_claim_is_repeated_and_looked_after() -> None:
    """It may have been committed: after PostgreSQL is back, the controller adopts from itself, more than once."""
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.fail(told.one(effects.Claim))
    assert not told.take(effects.Adopt)
    told.wait(100)
    assert not told.take(effects.Claim)
    told.renewed()
    assert told.one(effects.Adopt).controller_ids == ("c1",)
    told.wait(100)
    assert len(told.take(effects.Claim)) == 1


def test_a_batch_that_postgresql_refuses_is_halved_until_the_culprit_is_alone() -> None:
    told = Told(claims_in_flight=1)
    told.ready(*(job(number) for number in range(1, 5)))
    told.wait_renewing(10_000)
    sizes = []
    for _ in range(3):
        claim = told.one(effects.Claim)
        sizes.append(len(claim.requests))
        told.fail(claim, connection_lost=False)
        told.wait(300)
        told.renewed()
    assert sizes == [4, 2, 1]
    others = told.one(effects.Claim).requests
    assert [request.job_id for request in others] != [3]


def test_a_job_without_a_runner_waits_and_is_claimed_when_one_comes() -> None:
    told = Told()
    told.ready(job(deployment="other"))
    told.wait_renewing(12_000)
    assert not told.take(effects.Claim)
    assert told.node.stats().awaiting_runner == 1
    told.tell(events.RunnerJoined(runner("r2", "other")))
    assert told.one(effects.Claim).requests[0].runner_id == "r2"


def test_after_its_grace_it_is_skipped_with_all_that_has_come_due() -> None:
    told = Told()
    told.ready(job(deployment="other"))
    told.wait_renewing(20_100)
    skip = told.one(effects.SkipTicks)
    request = skip.requests[0]
    (skipped,) = request.skipped
    assert (skipped.reason, skipped.ticks) == (SkipReason.NO_RUNNER, 2)
    assert request.next_tick == DUE + 20 * S_US
    row = job(deployment="other", next_tick=DUE + 20 * S_US, next_run_at=DUE + 20 * S_US)
    told.tell(events.TicksSkipped(skip.request_id, [row]))
    told.tell(events.RunnerJoined(runner("r2", "other")))
    assert not told.take(effects.Claim)
    told.wait_renewing(10_000)
    assert len(told.take(effects.Claim)) == 1


def test_after_an_outage_runners_have_the_grace_to_come_back() -> None:
    """A PostgreSQL that hangs leaves runners without a stream as long as controllers have no lease."""
    told = Told()
    told.ready(job(), job(2, due=T + 5 * S_US, deployment="other"))
    told.wait_renewing(8_000)
    assert told.node.stats().awaiting_runner == 1, "waits from before the outage"
    told.tell(events.RunnerLeft("r1"))
    told.wait(20_000)
    told.renewed()
    told.wait_renewing(8_000)
    assert not told.take(effects.SkipTicks)
    told.tell(events.RunnerJoined(runner("r1", "d", "other")))
    [one, two] = told.one(effects.Claim).requests
    assert (one.job_id, two.job_id) == (1, 2)


def test_a_draining_runner_gets_nothing() -> None:
    told = Told()
    told.ready(job())
    told.tell(events.RunnerBeat("r1", 1, False, True, 0))
    told.wait_renewing(10_100)
    assert not told.take(effects.Claim)


def test_a_job_without_a_runner_may_have_moved_to_a_newer_deployment() -> None:
    """NOTIFY may be lost: before the grace is over, the window is read again."""
    told = Told()
    told.ready(job(deployment="old"))
    told.wait_renewing(10_100)
    told.fetched(job(deployment="d"))
    assert told.one(effects.Claim).requests[0].runner_id == "r1"
