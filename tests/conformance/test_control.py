"""What operators do to jobs: behaviour that every store has."""

import pytest

from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import Conflict, NotFound, Outdated
from cronring.controller.ports.many import JobChange, NewJob, Seen
from cronring.schema.execution import Trigger
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World

MINUTE = 60 * SECOND
NIGHTLY = NewJob(
    "default",
    "billing",
    "a",
    "nightly",
    JobSpec("every 1m", timeout_ms=1_000, on_disconnect="stop", labels={"team": "x"}, payload='{"n": 1}'),
)
OFF = Policy(jitter="off")


async def module(world: World, digest: str = "a", *verbs: str) -> None:
    declared = Module("billing", tuple(Verb(name) for name in verbs or ("a", "b")))
    await world.store.create_deployment(declared, digest * 64, 1, TIMEOUT_MS, True)


async def test_a_job_is_made_for_a_verb_of_an_active_module(world: World) -> None:
    await module(world)
    before = await world.scene.now()
    job = (await world.control.make_job(NIGHTLY, "me")).job
    assert (job.key, job.verb, job.schedule, job.payload) == ("billing.a:nightly", "a", "every 1m", '{"n": 1}')
    assert (job.timeout_ms, job.on_disconnect, job.revision) == (1_000, "stop", 1)
    assert job.next_tick is not None
    assert before < job.next_tick <= await world.scene.now() + MINUTE
    assert await world.job(job.job_id) == job
    (span,) = await world.scene.spans(job.job_id)
    assert (span.schedule, span.anchor, span.until_at) == ("every 1m", job.anchor, None)
    await world.controller("c1")
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.updated


async def test_making_the_same_job_again_is_nothing_and_another_is_a_conflict(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    assert (await world.control.make_job(NIGHTLY, "you")).job == job
    assert await world.control.make_job(NIGHTLY, "you") == (job, True)
    assert not (await world.control.make_job(NIGHTLY._replace(name="other"), "you")).unchanged
    assert (
        await world.control.make_job(NIGHTLY._replace(spec=NIGHTLY.spec._replace(anchor=job.anchor)), "you")
    ).job == job
    for other in (
        NIGHTLY._replace(spec=NIGHTLY.spec._replace(schedule="every 2m")),
        NIGHTLY._replace(spec=NIGHTLY.spec._replace(labels={})),
    ):
        with pytest.raises(Conflict, match=r"billing\.a:nightly"):
            await world.control.make_job(other, "me")


async def test_a_job_may_run_once_at_once_beside_its_schedule_and_only_if_it_is_new(world: World) -> None:
    await module(world)
    at_once = NIGHTLY._replace(run_now=True)
    job = (await world.control.make_job(at_once, "me", "why")).job
    (waiting,) = await world.waiting()
    assert (waiting.job.key, waiting.trigger, waiting.payload) == (job.key, Trigger.MANUAL, "")
    assert job.next_tick is not None
    assert waiting.run_at <= await world.scene.now() < job.next_tick + MINUTE
    assert (await world.job(job.job_id)).next_tick == job.next_tick, "its schedule goes on as it was"
    assert (await world.control.make_job(at_once, "you")).job == job
    assert await world.waiting() == [waiting]
    assert [each.action for each in await world.scene.actions()] == ["deploy", "create", "trigger"]
    await world.controller("c1")
    await world.runner("r1")
    (begun,) = await world.activate("c1", waiting)
    assert begun.execution is not None
    over = NIGHTLY.spec._replace(schedule="at 2020-01-01T00:00:00Z")
    with pytest.raises(NeverRuns):
        await world.control.make_job(at_once._replace(name="over", spec=over), "me")
    assert await world.waiting() == [], "what isn't made isn't run"


@pytest.mark.parametrize(
    ("job", "why"),
    [(NIGHTLY._replace(module="other"), "isn't active"), (NIGHTLY._replace(verb="nope"), "no verb 'nope'")],
)
async def test_a_job_for_what_is_not_there_is_a_conflict(world: World, job: NewJob, why: str) -> None:
    await module(world)
    with pytest.raises(Conflict, match=why):
        await world.control.make_job(job, "me")


async def test_a_job_of_another_namespace_has_its_own_key(world: World) -> None:
    declared = Module("billing", (Verb("a"),), "staging")
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)
    job = (await world.control.make_job(NIGHTLY._replace(namespace="staging"), "me")).job
    assert job.key == "staging/billing.a:nightly"


async def test_a_new_schedule_takes_effect_at_its_next_tick_and_the_old_one_is_over(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    due = await world.due(job)
    changed = await world.control.update_job(job.key, JobChange.to(schedule="every 2h", timeout_ms=2_000), "me")
    assert (changed.schedule, changed.revision, changed.timeout_ms) == ("every 2h", job.revision + 1, 2_000)
    assert changed.next_tick is not None
    assert changed.next_tick > await world.scene.now() + 7_000 * SECOND
    await world.controller("c1")
    assert not (await world.claim("c1", due))[0].updated
    old, new = await world.scene.spans(job.job_id)
    assert (old.schedule, new.schedule, old.until_at) == ("every 1m", "every 2h", new.from_at)
    (skip,) = await world.scene.skips()
    assert (skip.reason, skip.first_tick, skip.ticks) == ("superseded", due.next_tick, 1)


async def test_a_change_while_it_runs_is_not_undone_by_the_end(world: World) -> None:
    await module(world)
    await world.controller("c1")
    await world.runner("r1")
    job = (await world.control.make_job(NIGHTLY, "me")).job
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    changed = await world.control.update_job(job.key, JobChange.to(schedule="every 2h"), "me")
    result = await world.end(execution)
    assert (result.next_tick, result.revision) == (changed.next_tick, changed.revision)


async def test_a_change_of_nothing_but_what_it_is_given_keeps_its_ticks(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    changed = await world.control.update_job(job.key, JobChange.to(payload="{}", labels={"a": "b"}), "me")
    assert changed == job._replace(payload="{}")
    same = await world.control.update_job(job.key, JobChange.to(schedule=job.schedule, policy=""), "me")
    assert same == changed
    assert len(await world.scene.spans(job.job_id)) == 1
    assert (
        await world.control.make_job(
            NIGHTLY._replace(spec=NIGHTLY.spec._replace(payload="{}", labels={"a": "b"})), "me"
        )
    ).job == changed


async def test_a_change_to_what_is_so_already_is_none(world: World) -> None:
    await module(world)
    job = (
        await world.control.make_job(
            NIGHTLY._replace(spec=NIGHTLY.spec._replace(payload="{}", labels={"a": "b"})), "me"
        )
    ).job
    change = JobChange.to(schedule="every 2h", payload='{"n": 1}', labels={"a": "c"}, timeout_ms=2_000)
    changed = await world.control.update_job(job.key, change, "me")
    assert await world.control.update_job(job.key, change, "you", "again") == changed
    assert await world.control.update_job(job.key, JobChange.to(on_disconnect=changed.on_disconnect), "you") == changed
    assert [each.actor for each in await world.scene.actions() if each.action == "update"] == ["me"]
    await world.control.update_job(job.key, JobChange.to(labels={}), "you")
    assert [each.actor for each in await world.scene.actions() if each.action == "update"] == ["me", "you"]


async def test_a_change_that_was_judged_by_what_is_no_more_changes_nothing(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    spec = JobSpec(job.schedule, job.anchor, job.timeout_ms, job.on_disconnect, job.policy, {"team": "x"}, job.payload)
    seen = Seen(job.job_id, job.deployment, spec)
    first = JobChange.to(labels={"team": "x", "a": "1"}, seen=seen)
    second = JobChange.to(labels={"team": "x", "b": "2"}, seen=seen)
    await world.control.update_job(job.key, first, "me")
    with pytest.raises(Outdated, match="try again"):
        await world.control.update_job(job.key, second, "you")
    now_seen = seen._replace(spec=spec._replace(labels={"a": "1", "team": "x"}))
    second = JobChange.to(labels={"team": "x", "b": "2"}, timeout_ms=7, seen=now_seen)
    await world.control.update_job(job.key, second, "you")
    assert (await world.job(job.job_id)).timeout_ms == 7
    await module(world, "b")  # its verb may take another payload now
    with pytest.raises(Outdated, match="try again"):
        await world.control.update_job(
            job.key, first._replace(seen=now_seen._replace(spec=spec._replace(labels={"b": "2"}))), "me"
        )


async def test_of_two_deletions_of_what_was_seen_one_is_too_late(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    spec = JobSpec(
        job.schedule, job.anchor, job.timeout_ms, job.on_disconnect, job.policy, NIGHTLY.spec.labels, job.payload
    )
    seen = Seen(job.job_id, job.deployment, spec)
    await world.control.update_job(job.key, JobChange.to(timeout_ms=7), "me")
    with pytest.raises(Outdated, match="try again"):
        await world.control.delete_job(job.key, "me", "", seen)
    await world.control.delete_job(job.key, "me", "", seen._replace(spec=spec._replace(timeout_ms=7)))


@pytest.mark.parametrize(
    ("schedule", "policy"),
    [
        ("at 2020-01-01T00:00:00Z", ""),
        ("0 0 1 1 * 2020", ""),
        ("every 1h", Policy(end_at="2020-01-01T00:00:00Z").text),
    ],
)
async def test_what_would_never_run_is_refused(world: World, schedule: str, policy: str) -> None:
    await module(world)
    with pytest.raises(NeverRuns, match="would never run; give a later time"):
        await world.control.make_job(
            NIGHTLY._replace(spec=NIGHTLY.spec._replace(schedule=schedule, policy=policy)), "me"
        )
    job = (await world.control.make_job(NIGHTLY, "me")).job
    with pytest.raises(NeverRuns, match="would never run; give a later time"):
        await world.control.update_job(job.key, JobChange.to(schedule=schedule, policy=policy), "me")
    assert await world.job(job.job_id) == job
    await world.control.make_job(NIGHTLY._replace(name="by_hand", spec=NIGHTLY.spec._replace(schedule="manual")), "me")


async def test_a_policy_takes_effect_as_a_schedule_does(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    policy = Policy(overlap="allow", max_concurrent=3, jitter="off")
    changed = await world.control.update_job(job.key, JobChange.to(policy=policy.text), "me")
    assert (changed.policy, changed.revision, changed.anchor) == (policy.text, job.revision + 1, job.anchor)
    assert changed.next_tick == changed.next_run_at
    await world.controller("c1")
    assert (await world.claim_next("c1", await world.due(changed))).updated
    assert (await world.scene.job(job.job_id)).running == 1


async def test_a_deleted_job_is_gone_and_its_key_is_free(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(NIGHTLY, "me")).job
    await world.control.trigger_job(job.key, "me", None)
    await world.control.delete_job(job.key, "me")
    assert await world.scene.activations() == []
    with pytest.raises(NotFound, match=r"billing\.a:nightly"):
        await world.control.delete_job(job.key, "me")
    again = (await world.control.make_job(NIGHTLY, "me")).job
    assert again.job_id != job.job_id
    (span,) = await world.scene.spans(job.job_id)
    assert span.until_at is not None


async def test_what_a_module_declares_is_changed_by_deploying(world: World) -> None:
    (job,) = await world.jobs("a")
    with pytest.raises(Conflict, match="declared in its module"):
        await world.control.update_job(job.key, JobChange.to(payload="1"), "me")
    with pytest.raises(Conflict, match="declared in its module"):
        await world.control.delete_job(job.key, "me")


async def test_jobs_made_through_the_api_live_as_long_as_their_verb(world: World) -> None:
    await module(world)
    first = (await world.control.make_job(NIGHTLY, "me")).job
    second = (await world.control.make_job(NIGHTLY._replace(verb="b"), "me")).job
    await module(world, "b", "a", "c")
    assert (await world.job(first.job_id)).deployment == "billing@bbbbbbbbbbbb"
    assert (await world.job(first.job_id)).next_tick == first.next_tick
    with pytest.raises(KeyError):
        await world.job(second.job_id)


async def test_a_paused_job_has_no_tick_until_it_is_resumed(world: World) -> None:
    (job,) = await world.jobs("a", policy=OFF)
    due = await world.due(job)
    paused = await world.control.pause_job(job.key, "me", "too noisy")
    assert (paused.next_tick, paused.revision) == (None, job.revision + 1)
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.paused_by, booked.paused_note) == (True, "me", "too noisy")
    assert booked.paused_tick == due.next_tick
    assert await world.control.pause_job(job.key, "you", "") == paused
    await world.controller("c1")
    assert not (await world.claim("c1", due))[0].updated
    resumed = await world.control.resume_job(job.key, "me")
    assert resumed.revision == paused.revision + 1
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.paused_tick, booked.paused_by) == (False, None, "")
    assert await world.control.resume_job(job.key, "me") == resumed
    assert len(await world.scene.spans(job.job_id)) == 1, "a pause closes no books"


async def test_ticks_since_the_pause_are_one_range(world: World) -> None:
    (job,) = await world.jobs("a", schedule="* * * * * *", policy=OFF)
    await world.control.pause_job(job.key, "me", "")
    now = await world.scene.now()
    first = now - now % SECOND - 100 * SECOND
    await world.scene.set_paused_tick(job.job_id, first)
    resumed = await world.control.resume_job(job.key, "me")
    assert resumed.next_tick is not None
    last = resumed.next_tick - SECOND
    assert await world.scene.skips() == [
        (job.job_id, "paused", first, last, (last - first) // SECOND + 1, "")
    ]  # fmt: skip
    assert last <= await world.scene.now()
    assert resumed.next_tick > now


async def test_a_pause_while_it_runs_is_not_undone_by_the_end(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    job = execution.job
    await world.control.pause_job(job.key, "me", "")
    result = await world.end(execution)
    assert (result.ended, result.next_tick, result.revision) == (True, None, job.revision + 1)
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.executing, booked.next_tick) == (True, False, None)
    assert booked.paused_tick is not None
    assert booked.paused_tick > execution.tick
    resumed = await world.control.resume_job(job.key, "me")
    assert resumed.next_tick is not None


async def test_paused_and_resumed_while_it_runs_it_goes_on_behind_both(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    await world.control.pause_job(execution.job.key, "me", "")
    resumed = await world.control.resume_job(execution.job.key, "me")
    assert (resumed.executing, resumed.revision) == (True, execution.job.revision + 2)
    result = await world.end(execution)
    assert (result.next_tick, result.revision) == (resumed.next_tick, resumed.revision)


async def test_a_paused_job_stays_so_through_a_redeployment(world: World) -> None:
    (job,) = await world.jobs("a", policy=OFF)
    await world.control.pause_job(job.key, "me", "why")
    declared = Module("billing", (Verb("a", schedule="every 7m", policy=OFF),))
    (carried,) = (await world.store.create_deployment(declared, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    assert (carried.schedule, carried.next_tick) == ("every 7m", None)
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.paused_note) == (True, "why")
    assert booked.paused_tick == carried.anchor // SECOND * SECOND + 7 * MINUTE


async def test_what_is_not_there_is_said(world: World) -> None:
    for attempt in (
        world.control.pause_job("billing.x", "me", ""),
        world.control.resume_job("billing.x", "me"),
        world.control.trigger_job("billing.x", "me", None),
        world.control.update_job("billing.x", JobChange.to(), "me"),
        world.control.list_activations("billing.x"),
        world.control.cancel_activation("billing.x", 1),
    ):
        with pytest.raises(NotFound, match=r"billing\.x"):
            await attempt


async def test_a_resumed_job_keeps_its_distance_from_its_latest_run(world: World) -> None:
    """That one was late, so the next may start a second after its start, and not with the next second."""
    await world.controller("c1")
    (job,) = await world.jobs("a", schedule="* * * * * *")
    job = await world.due(job, 5)
    (claimed,) = await world.claim("c1", job)
    await world.control.pause_job(job.key, "me", "")
    resumed = await world.control.resume_job(job.key, "me")
    assert resumed.next_run_at is not None
    assert resumed.next_run_at >= claimed.claimed_at + SECOND
