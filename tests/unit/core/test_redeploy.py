"""What a new version of a module does to its jobs."""

import pytest

from cronring.controller.core.orders.redeploy import Existing, deployment_key, plan_redeploy, plan_removal
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import format_instant
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy

SECOND = 1_000_000
NOW = 1_790_000_000 * SECOND + 400_000
DEFAULT_MS = 300_000


def at(seconds: int) -> int:
    return 1_790_000_000 * SECOND + seconds * SECOND


def existing(key: str = "billing.a", **changes: object) -> Existing:
    """A job every 10 s, idle, whose next tick is still to come."""
    job = Existing(7, key, "every 10s", at(-100), False, at(10), at(0))._replace(**changes)  # type: ignore[arg-type]  # by name
    return job._replace(next_run_at=job.next_tick)


def module(*verbs: Verb) -> Module:
    return Module("billing", verbs)


@pytest.mark.parametrize(
    ("namespace", "key"), [("default", "billing@3fa9c1d2e4b5"), ("staging", "staging/billing@3fa9c1d2e4b5")]
)
def test_a_deployment_is_named_for_its_module_and_digest(namespace: str, key: str) -> None:
    assert deployment_key(Module("billing", (), namespace), "3fa9c1d2e4b5" + "0" * 52) == key


def test_only_verbs_with_a_schedule_become_jobs_with_the_next_tick_after_now() -> None:
    plan = plan_redeploy(module(Verb("a", schedule="every 10s"), Verb("b")), [], NOW, DEFAULT_MS)
    (added,) = plan.added
    assert (added.key, added.next_tick, added.spec.anchor, added.spec.timeout_ms) == (
        "billing.a",
        at(10),
        NOW,
        -DEFAULT_MS,
    ), "nobody says it"
    assert (plan.carried, plan.removed) == ([], [])


def test_a_one_shot_that_has_passed_is_deployed_and_has_no_tick() -> None:
    (added,) = plan_redeploy(module(Verb("a", schedule="at 2020-01-01T00:00:00Z")), [], NOW, DEFAULT_MS).added
    assert (added.next_tick, added.next_run_at) == (None, None)


def test_nothing_is_due_before_its_schedule_was_deployed() -> None:
    """An interval's jitter would have had it run earlier: counted from then, its runner's grace was over at once (seeds
    13 and 26 of a year).
    """
    anchor = format_instant(at(0))
    policy = Policy(jitter="±45%")
    verbs = [Verb(f"v{number}", schedule="every 1h", policy=policy, anchor=anchor) for number in range(20)]
    late = at(3_500)
    run_ats = [added.next_run_at for added in plan_redeploy(module(*verbs), [], late, DEFAULT_MS).added]
    assert min(run_at for run_at in run_ats if run_at is not None) == late
    before = [existing(f"billing.{verb.name}", schedule="every 2h", next_tick=late + SECOND) for verb in verbs]
    carried = plan_redeploy(module(*verbs), before, late, DEFAULT_MS).carried
    assert min(job.next_run_at for job in carried if job.next_run_at is not None) == late


def test_an_unchanged_schedule_keeps_its_tick_and_owes_nothing() -> None:
    job = existing(next_tick=at(-50))
    (carried,) = plan_redeploy(module(Verb("a", schedule="every 10s", timeout_ms=5)), [job], NOW, DEFAULT_MS).carried
    assert (carried.rescheduled, carried.next_tick, carried.spec.anchor) == (False, job.next_tick, job.anchor)
    assert (carried.spec.timeout_ms, carried.skipped) == (5, ())


@pytest.mark.parametrize(
    ("job", "skipped"),
    [
        (existing(), ()),
        (existing(next_tick=None), ()),
        (existing(next_tick=at(0)), (Skipped(SkipReason.SUPERSEDED, at(0), at(0), 1),)),
        (existing(next_tick=at(-50)), (Skipped(SkipReason.SUPERSEDED, at(-50), at(0), 6),)),
        (existing(executing=True, next_tick=at(0)), ()),
        (
            existing(executing=True, next_tick=at(-50), last_tick=at(-50)),
            (Skipped(SkipReason.OVERLAP, at(-40), at(0), 5),),
        ),
        # Rescheduled before, while it ran: its next tick is the first of the books that are open.
        (
            existing(executing=True, next_tick=at(-10), last_tick=at(-50)),
            (Skipped(SkipReason.OVERLAP, at(-10), at(0), 2),),
        ),
        (existing(paused=True, next_tick=None, paused_tick=at(-20)), (Skipped(SkipReason.PAUSED, at(-20), at(0), 3),)),
    ],
)
def test_a_changed_or_removed_schedule_closes_its_books(job: Existing, skipped: tuple[Skipped, ...]) -> None:
    plan = plan_redeploy(module(Verb("a", schedule="every 7s")), [job], NOW, DEFAULT_MS)
    (carried,) = plan.carried
    tick, paused_tick = (None, at(7)) if job.paused else (at(7), None)
    assert (carried.rescheduled, carried.spec.anchor) == (True, NOW)
    assert (carried.next_tick, carried.paused_tick) == (tick, paused_tick)
    assert carried.skipped == skipped
    assert plan_removal([job], NOW) == plan_redeploy(module(), [job], NOW, DEFAULT_MS).removed
    (removed,) = plan_removal([job], NOW)
    reasons = {SkipReason.SUPERSEDED: SkipReason.DEPLOYMENT_REMOVED}
    assert removed.skipped == tuple(part._replace(reason=reasons.get(part.reason, part.reason)) for part in skipped)


@pytest.mark.parametrize(
    "job",
    [
        existing(last_tick=at(3600), next_tick=at(3610)),
        existing(last_tick=at(-10), next_tick=at(3610)),  # all after it were skipped
        existing(last_tick=at(-10), next_tick=None, paused=True, paused_tick=at(3610)),
        existing(schedule="every 1d", next_tick=at(86_300), opened_at=at(3600)),  # another schedule was in force before
        existing(executing=True, last_tick=at(-10), next_tick=at(3610), opened_at=at(3600)),
    ],
)
def test_a_tick_that_was_decided_does_not_come_again_when_the_clock_was_set_back(job: Existing) -> None:
    (carried,) = plan_redeploy(module(Verb("a", schedule="every 60s")), [job], NOW, DEFAULT_MS).carried
    first = carried.paused_tick if job.paused else carried.next_tick
    assert first is not None
    assert at(3600) < first <= at(3660)
    assert (carried.closes_at, carried.skipped) == (at(3600), ())
    assert [(job.closes_at, job.skipped) for job in plan_removal([job], NOW)] == [(at(3600), ())]


def test_a_changed_policy_opens_new_books_and_keeps_the_anchor() -> None:
    verb = Verb("a", schedule="every 10s", policy=Policy(retries=2))
    (carried,) = plan_redeploy(module(verb), [existing()], NOW, DEFAULT_MS).carried
    assert (carried.rescheduled, carried.spec.anchor, carried.next_tick) == (True, at(-100), at(10))
    assert carried.spec.policy == '{"retries":2}'


@pytest.mark.parametrize(
    ("job", "closes_at"),
    [
        (existing(), at(0)),
        (existing(next_tick=at(-50), last_tick=at(-60)), at(-60)),  # it waits for a place
        (existing(executing=True, next_tick=at(-20), last_tick=at(-20)), at(-20)),
        (existing(executing=True, next_tick=at(-10), last_tick=at(-60), opened_at=at(-30)), at(-20)),  # a run by hand
        (existing(executing=True, next_tick=None), NOW),
        (existing(paused=True, next_tick=None, paused_tick=at(-20), last_tick=at(-50)), at(-30)),
        (existing(next_tick=at(20), ahead_from=at(10), ahead_until=at(10)), at(0)),
        (existing(paused=True, next_tick=at(50), paused_until=at(45), paused_tick=at(10), ahead_from=at(10),
                  ahead_until=at(40)), at(0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", [Policy(priority=5), Policy(overlap="buffer_one"), Policy(window="00:00-01:00")])
def test_a_policy_that_leaves_the_ticks_as_they_are_decides_about_none(
    job: Existing, closes_at: int, policy: Policy
) -> None:
    """One that waited for a place was superseded; what passed during a run was decided twice, by either policy."""
    verb = Verb("a", schedule="every 10s", policy=policy)
    (carried,) = plan_redeploy(module(verb), [job], NOW, DEFAULT_MS).carried
    if policy.window and job.ahead_until is not None:  # ticks outside the old window may be among those
        assert carried.takes_back
        return
    assert (carried.rescheduled, carried.takes_back, carried.skipped) == (True, False, ())
    assert (carried.next_tick, carried.next_run_at) == (job.next_tick, job.next_run_at)
    assert (carried.paused_tick, carried.ahead_from, carried.ahead_until) == job[11:12] + job[15:17]
    assert carried.closes_at == closes_at


def test_a_job_that_may_have_several_runs_by_now_goes_on_beside_the_one() -> None:
    """Its end doesn't decide about that tick any more."""
    job = existing(executing=True, next_tick=at(-20), last_tick=at(-20))
    verb = Verb("a", schedule="every 10s", policy=Policy(overlap="allow"))
    (carried,) = plan_redeploy(module(verb), [job], NOW, DEFAULT_MS).carried
    assert (carried.next_tick, carried.closes_at, carried.skipped) == (at(-10), at(-20), ())


def test_another_jitter_moves_what_is_still_to_come() -> None:
    policy = Policy(jitter="30s")
    verb, job = Verb("a", schedule="* * * * *", policy=policy), existing(schedule="* * * * *", next_tick=at(40))
    (carried,) = plan_redeploy(module(verb), [job], NOW, DEFAULT_MS).carried
    assert carried.next_run_at is not None
    assert at(40) < carried.next_run_at < at(70)
    (carried,) = plan_redeploy(module(verb), [job], at(41), DEFAULT_MS).carried
    assert carried.next_run_at == at(40)


@pytest.mark.parametrize("policy", [Policy(timezone="Europe/Berlin"), Policy(start_at=format_instant(at(30)))])
def test_a_policy_that_changes_the_ticks_closes_the_books(policy: Policy) -> None:
    verb, job = Verb("a", schedule="*/10 * * * * *", policy=policy), existing(schedule="*/10 * * * * *")
    (carried,) = plan_redeploy(module(verb), [job], NOW, DEFAULT_MS).carried
    assert (carried.takes_back, carried.closes_at) == (True, NOW)


def test_the_clusters_jitter_is_that_of_jobs_that_state_none() -> None:
    verbs = Verb("a", schedule="every 10m"), Verb("b", schedule="every 10m", policy=Policy(jitter="off"))
    added = {job.verb: job for job in plan_redeploy(module(*verbs), [], NOW, DEFAULT_MS, "5m:3s").added}
    assert added["a"].spec.policy == '{"jitter":"3s"}'
    assert added["b"].spec.policy == '{"jitter":"off"}'
    assert added["b"].next_run_at == added["b"].next_tick
    again = existing(schedule="every 10m", anchor=NOW, policy=added["a"].spec.policy)
    (carried,) = plan_redeploy(module(verbs[0]), [again], NOW, DEFAULT_MS, "5m:3s").carried
    assert not carried.rescheduled


@pytest.mark.parametrize("schedule", ["every 30m", "0 6 * * *", "*/5 * * * *", "at 2030-01-01T00:00:00Z"])
def test_of_a_cluster_as_it_comes_every_run_is_on_its_tick(schedule: str) -> None:
    default = ClusterSettings().default_jitter
    (added,) = plan_redeploy(module(Verb("a", schedule=schedule)), [], NOW, DEFAULT_MS, default).added
    assert added.spec.policy == ""
    assert added.next_run_at == added.next_tick


def test_jobs_made_through_the_api_are_orphaned_without_their_verb_and_come_back_with_it() -> None:
    job = existing("billing.b:acme", source="api", verb="b", schedule="every 7s")
    plan = plan_redeploy(module(Verb("b")), [job], NOW, DEFAULT_MS)
    assert [(each.key, each.rescheduled, each.keeps) for each in plan.carried] == [(job.key, False, True)]
    assert (plan.added, plan.removed) == ([], [])
    plan = plan_redeploy(module(Verb("c")), [job], NOW, DEFAULT_MS)
    assert (plan.removed, plan.orphaned, plan.back) == ([], [job], [])
    orphan = job._replace(orphaned=True, next_tick=None)
    plan = plan_redeploy(module(Verb("c")), [orphan], NOW, DEFAULT_MS)
    assert plan == ([], [], [], [], [])  # it stays what it is
    plan = plan_redeploy(module(Verb("b")), [orphan], NOW, DEFAULT_MS)
    assert (plan.removed, plan.carried, plan.back) == ([], [], [orphan])
