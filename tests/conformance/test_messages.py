"""Jobs whose target is a queue: what every store makes of their ticks, and of what consumers say."""

import json

import pytest

from cronring.controller.core import ticks
from cronring.controller.core.model import (
    ActivationRequest,
    EnqueueRequest,
    EnqueueResult,
    Execution,
    Job,
    MessageFate,
)
from cronring.controller.core.node.ending import request_of
from cronring.controller.ports.many import JobChange, JobDone, NewJob
from cronring.schema.execution import Outcome, Report, Skipped, SkipReason, Trigger
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.queues import module_of_queue, verb_of_workspace
from cronring.schema.timetable import PlannedTick
from tests.conformance.harness import GRACE_MS, SECOND, TIMEOUT_MS, PostgresScene, World, claim_of
from tests.conformance.messages import queues_of

AWAITED = '{"completes":"consumed"}'
SPEC = JobSpec("every 1m", timeout_ms=60_000, on_disconnect="stop", payload='{"a":1}')


async def queue_job(
    world: World, name: str = "n", workspace: str = "", *, queue: str = "reports", policy: str = "",
    namespace: str = "default", seconds_ago: int = 1, payload: str = '{"a":1}',
) -> Job:  # fmt: skip
    """One that is due."""
    await world.controller("c1")
    spec = SPEC._replace(policy=policy, payload=payload)
    module, verb = module_of_queue(queue), verb_of_workspace(workspace)
    job = (await world.control.make_job(NewJob(namespace, module, verb, name, spec), "me")).job
    return await world.due(job, seconds_ago)


def enqueue_of(job: Job, *skipped: Skipped, gap: int = 60 * SECOND) -> EnqueueRequest:
    assert job.next_tick is not None
    assert job.next_run_at is not None
    following = job.next_tick + gap
    return EnqueueRequest(
        job.job_id, job.next_tick, job.next_tick, job.next_run_at, job.deployment, skipped, Trigger.SCHEDULE, (),
        following, following, job.revision,
    )  # fmt: skip


async def enqueue(world: World, *jobs: Job) -> list[EnqueueResult]:
    requests = [enqueue_of(job) for job in sorted(jobs)]
    return (await world.store.enqueue_cron_jobs("c1", requests))[1]


async def await_consumer(world: World, job: Job) -> Execution:
    """A tick of which the consumer is to say how it ended."""
    (result,) = await world.claim("c1", job, runner_id="")
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    assert execution.runner_id == ""
    return execution


async def reports(world: World, controller_id: str = "c1", known: tuple[int, ...] = ()) -> list[Report]:
    return await world.store.get_queue_reports(controller_id, known, 100)


async def end_by(world: World, execution: Execution, report: Report, fate: MessageFate) -> bool:
    request = request_of(execution, report, await world.scene.now())._replace(message=fate)
    (result,) = await world.store.end_cron_jobs("c1", [request])
    return result.ended


def withdrawal(execution: Execution, outcome: Outcome = Outcome.TIMED_OUT) -> Report:
    at = execution.claimed_at
    return Report(execution.execution_id, execution.job.job_id, at, outcome, at, at, "HardTimeout", "too long")


async def test_a_tick_is_completed_once_its_message_is_there(world: World) -> None:
    job = await queue_job(world, workspace="ws_3")
    (result,) = await enqueue(world, job)
    assert (result.updated, result.executing, result.refused) == (True, False, False)
    (message,) = await queues_of(world.scene).messages()
    assert message[1:] == (
        "default", "reports", "ws_3", job.job_id, result.execution_id, job.next_tick, job.next_run_at, 1, '{"a":1}',
        False, None,
    )  # fmt: skip
    (execution,) = await world.scene.executions()
    assert (execution.outcome, execution.tick, execution.number) == (Outcome.COMPLETED, job.next_tick, 1)
    booked = await world.scene.job(job.job_id)
    assert job.next_tick is not None
    assert (booked.executing, booked.next_tick, booked.last_tick, booked.last_success) == (
        False, job.next_tick + 60 * SECOND, job.next_tick, job.next_tick,
    )  # fmt: skip
    assert await world.scene.state(job.job_id) == "scheduled"
    assert await reports(world) == []


async def test_a_tick_has_one_message_whoever_asks_again(world: World) -> None:
    job = await queue_job(world)
    assert (await enqueue(world, job))[0].updated
    again = (await enqueue(world, job))[0]
    assert not again.updated
    assert again.active
    assert job.next_tick is not None
    assert again.next_tick == job.next_tick + 60 * SECOND
    assert len(await queues_of(world.scene).messages()) == 1


async def test_nobody_enqueues_without_a_lease_before_its_time_or_by_an_older_row(world: World) -> None:
    job = await queue_job(world)
    await world.scene.expire_lease("c1", 1)
    assert not (await enqueue(world, job))[0].updated
    await world.controller("c1")
    now = await world.scene.now()
    early = enqueue_of(job)._replace(run_at=now + 60 * SECOND)
    assert not (await world.store.enqueue_cron_jobs("c1", [early]))[1][0].updated
    older = enqueue_of(job)._replace(revision=job.revision + 1)
    assert not (await world.store.enqueue_cron_jobs("c1", [older]))[1][0].updated
    assert await queues_of(world.scene).messages() == []
    assert await world.scene.executions() == []


async def test_what_is_passed_over_is_booked_with_the_message(world: World) -> None:
    job = await queue_job(world, seconds_ago=180)
    assert job.next_tick is not None
    first, run = job.next_tick, job.next_tick + 120 * SECOND
    before = Skipped(SkipReason.SUPERSEDED, first, first + 60 * SECOND, 2)
    after = Skipped(SkipReason.SUPERSEDED, run + 60 * SECOND, run + 60 * SECOND, 1)
    request = enqueue_of(job, before)._replace(
        run_tick=run, run_at=run, passed=(after,), trigger=Trigger.CATCH_UP, next_tick=run + 120 * SECOND,
        next_run_at=run + 120 * SECOND,
    )  # fmt: skip
    (result,) = (await world.store.enqueue_cron_jobs("c1", [request]))[1]
    assert result.updated
    skips = await world.scene.skips()
    assert [(skip.first_tick, skip.ticks) for skip in skips] == [(first, 2), (after.first_tick, 1)]
    (execution,) = await world.scene.executions()
    assert (execution.missed, execution.trigger) == (2, "catch_up")
    (message,) = await queues_of(world.scene).messages()
    assert message.tick == run


async def test_who_follows_a_queues_job_runs_for_its_tick(world: World) -> None:
    job = await queue_job(world)
    declared = Module("billing", (Verb("close", schedule="manual"),))
    (follower,) = (await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)).jobs
    await world.scene.set_followed(follower.job_id, job.key)
    (result,) = await enqueue(world, job)
    (waiting,) = await world.scene.activations()
    assert (waiting.job_id, waiting.tick, waiting.trigger) == (follower.job_id, job.next_tick, "after")
    assert result.followers == [waiting.activation_id]
    assert len(await queues_of(world.scene).messages()) == 1


async def test_a_message_that_is_refused_fails_its_own_tick(world: World) -> None:
    """Its end is one of the node's, by its report: so retries, pauses and the next tick are as for any run."""
    bad = await queue_job(world, "bad", queue="broken")
    others = [await queue_job(world, f"n{number}") for number in range(6)]
    await queues_of(world.scene).refuse("broken")
    results = {result.job_id: result for result in await enqueue(world, bad, *others)}
    assert [results[job.job_id].refused for job in others] == [False] * 6
    assert all(result.updated for result in results.values())
    assert results[bad.job_id].refused
    messages = await queues_of(world.scene).messages()
    assert sorted(message.job_id for message in messages) == sorted(job.job_id for job in others)
    (report,) = await reports(world)
    assert (report.outcome, report.error_type, report.error_message) == (
        Outcome.FAILED, "EnqueueRefused", "not today",
    )  # fmt: skip
    assert (await world.renewed("c1")).queue_reports
    (execution,) = await world.store.get_unfinished((report.execution_id,))
    assert await end_by(world, execution, report, MessageFate.SETTLED)
    assert (await world.scene.job(bad.job_id)).failures == 1
    assert await reports(world) == []
    assert not (await world.renewed("c1")).queue_reports


async def test_what_many_raise_leaves_each_of_the_others_with_one_message(world: World) -> None:
    jobs = [await queue_job(world, f"n{at}", queue="broken" if at in {1, 2, 5} else "reports") for at in range(8)]
    await queues_of(world.scene).refuse("broken")
    results = await enqueue(world, *jobs)
    assert [result.refused for result in results] == [at in {1, 2, 5} for at in range(8)]
    assert len(await queues_of(world.scene).messages()) == 5
    assert len(await reports(world)) == 3


async def test_an_awaited_tick_ends_by_what_its_consumer_says(world: World) -> None:
    job = await queue_job(world, policy=AWAITED)
    execution = await await_consumer(world, job)
    (message,) = await queues_of(world.scene).messages()
    assert (message.awaited, message.execution_id, message.payload) == (True, execution.execution_id, '{"a":1}')
    assert message.hard_deadline == execution.claimed_at + 60_000 * 1_000
    assert (await world.scene.job(job.job_id)).executing
    assert await reports(world) == []
    assert not (await world.renewed("c1")).queue_reports
    await queues_of(world.scene).consume(message, Outcome.COMPLETED, output='{"rows":3}')
    assert (await world.renewed("c1")).queue_reports
    assert await reports(world, "c2") == []
    assert await reports(world, known=(execution.execution_id,)) == []
    (report,) = await reports(world)
    assert (report.execution_id, report.claimed_at, report.outcome, report.output) == (
        execution.execution_id, execution.claimed_at, Outcome.COMPLETED, '{"rows":3}',
    )  # fmt: skip
    assert await end_by(world, execution, report, MessageFate.SETTLED)
    assert await queues_of(world.scene).messages() == []
    assert await reports(world) == []
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.last_success) == (False, job.next_tick)


@pytest.mark.parametrize(("said", "retried"), [("", True), ('"retries":0,', False)])
async def test_the_clusters_retries_are_those_of_queues_as_well(world: World, said: str, retried: bool) -> None:
    await world.scene.defaults.set_defaults(lambda row: row._replace(retries=1), "ada")
    job = await queue_job(world, policy=f'{{{said}"completes":"consumed"}}')
    execution = await await_consumer(world, job)
    (message,) = await queues_of(world.scene).messages()
    await queues_of(world.scene).consume(message, Outcome.FAILED, error="no")
    (report,) = await reports(world)
    assert (request_of(execution, report, await world.scene.now()).retry_at is not None) is retried


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.LOST])
async def test_a_consumers_failure_is_tried_again_with_another_message(world: World, outcome: Outcome) -> None:
    job = await queue_job(world, policy='{"retries":2,"backoff":"1s","completes":"consumed"}')
    execution = await await_consumer(world, job)
    (message,) = await queues_of(world.scene).messages()
    await queues_of(world.scene).consume(message, outcome, error="no")
    (report,) = await reports(world)
    request = request_of(execution, report, await world.scene.now())
    assert request.retry_at is not None
    request = request._replace(message=MessageFate.SETTLED, retry_at=execution.claimed_at)
    (result,) = await world.store.end_cron_jobs("c1", [request])
    assert result.ended
    assert result.retry_id is not None
    (waiting,) = await world.waiting()
    asked = ActivationRequest(waiting.activation_id, job.job_id, waiting.tick, "", job.deployment, None)
    _, (started,) = await world.store.start_activations("c1", [asked], GRACE_MS)
    assert started.execution is not None
    assert started.execution.runner_id == ""
    (second,) = await queues_of(world.scene).messages()
    assert (second.attempt, second.tick, second.awaited) == (2, job.next_tick, True)


async def test_a_run_by_hand_puts_a_message_and_is_completed_by_that(world: World) -> None:
    job = await queue_job(world)
    await world.control.trigger_job(job.key, "ann", '{"by":"hand"}')
    (waiting,) = await world.waiting()
    asked = ActivationRequest(waiting.activation_id, job.job_id, waiting.tick, "", job.deployment, None)
    _, (started,) = await world.store.start_activations("c1", [asked], GRACE_MS)
    assert started.execution is not None
    (message,) = await queues_of(world.scene).messages()
    assert (message.payload, message.awaited) == ('{"by":"hand"}', False)
    (report,) = await reports(world)
    assert (report.execution_id, report.outcome) == (started.execution.execution_id, Outcome.COMPLETED)
    assert await end_by(world, started.execution, report, MessageFate.SETTLED)
    assert len(await queues_of(world.scene).messages()) == 1
    assert await reports(world) == []


async def test_an_activation_that_is_refused_fails(world: World) -> None:
    job = await queue_job(world, queue="broken")
    await queues_of(world.scene).refuse("broken")
    await world.control.trigger_job(job.key, "ann", None)
    (waiting,) = await world.waiting()
    asked = ActivationRequest(waiting.activation_id, job.job_id, waiting.tick, "", job.deployment, None)
    _, (started,) = await world.store.start_activations("c1", [asked], GRACE_MS)
    assert started.execution is not None
    (report,) = await reports(world)
    assert (report.outcome, report.error_message) == (Outcome.FAILED, "not today")


async def test_a_message_is_withdrawn_with_the_end_of_its_execution(world: World) -> None:
    job = await queue_job(world, policy=AWAITED)
    execution = await await_consumer(world, job)
    assert await end_by(world, execution, withdrawal(execution), MessageFate.WITHDRAWN)
    assert await queues_of(world.scene).messages() == []


async def test_what_a_consumer_has_said_comes_before_a_timeout(world: World) -> None:
    job = await queue_job(world, policy=AWAITED)
    execution = await await_consumer(world, job)
    (message,) = await queues_of(world.scene).messages()
    await queues_of(world.scene).consume(message, Outcome.COMPLETED)
    request = request_of(execution, withdrawal(execution), await world.scene.now())
    (result,) = await world.store.end_cron_jobs("c1", [request._replace(message=MessageFate.WITHDRAWN)])
    assert (result.ended, result.busy) == (False, True)
    (report,) = await reports(world)
    assert await end_by(world, execution, report, MessageFate.SETTLED)


async def test_another_controller_collects_what_it_has_adopted(world: World) -> None:
    job = await queue_job(world, policy=AWAITED)
    execution = await await_consumer(world, job)
    (message,) = await queues_of(world.scene).messages()
    await queues_of(world.scene).consume(message, Outcome.COMPLETED)
    await world.controller("c2")
    (adopted,) = await world.store.adopt_executions("c2", ("c1",))
    assert adopted == execution
    assert [report.execution_id for report in await reports(world, "c2")] == [execution.execution_id]
    assert await reports(world) == []


async def test_limits_count_what_is_awaited_and_nothing_else(world: World) -> None:
    awaited = [await queue_job(world, f"a{at}", policy=AWAITED) for at in range(2)]
    plain = [await queue_job(world, f"p{at}") for at in range(2)]
    await world.limits.set_limit("default", "@reports", 1, "ann")
    results = await world.claim("c1", *awaited, runner_id="")
    assert [result.updated for result in results] == [True, False]
    assert results[1].full is not None
    assert [result.updated for result in await enqueue(world, *plain)] == [True, True]
    assert len(await queues_of(world.scene).messages()) == 3
    (row,) = await world.limits.list_limits("default", "@reports")
    assert row.running == 1


async def test_no_runner_that_is_lost_takes_a_message_with_it(world: World) -> None:
    job = await queue_job(world, policy=AWAITED)
    await await_consumer(world, job)
    await world.runner("r1")
    await world.scene.last_saw_runner("r1", 60)
    assert (await world.renewed("c2")).lost_runners == ()
    assert await world.store.get_lost(1) == []


async def test_what_was_awaited_and_is_no_more_ends_by_its_claim(world: World) -> None:
    """The claim was made by an older row: it says so, and nobody waits for a consumer that says nothing."""
    job = await queue_job(world, policy=AWAITED)
    await world.control.update_job(job.key, JobChange.to(policy=""), "ann")
    job = await world.due(job)
    (result,) = (await world.store.start_cron_jobs("c1", [claim_of(job, "")], GRACE_MS))[1]
    assert result.updated
    (message,) = await queues_of(world.scene).messages()
    assert not message.awaited
    (report,) = await reports(world)
    assert (report.execution_id, report.outcome) == (result.execution_id, Outcome.COMPLETED)


async def test_a_queue_of_another_namespace_is_another_queue(world: World) -> None:
    job, other = await queue_job(world, namespace="team-a"), await queue_job(world)
    assert (job.key, job.deployment, other.key) == ("team-a/@reports.-:n", "team-a/@reports", "@reports.-:n")
    await enqueue(world, job, other)
    messages = await queues_of(world.scene).messages()
    assert sorted((message.namespace, message.queue) for message in messages) == [
        ("default", "reports"),
        ("team-a", "reports"),
    ]


async def test_made_again_a_job_is_changed_alone_and_among_many(world: World) -> None:
    def new(schedule: str, name: str = "n", module: str = "@reports") -> NewJob:
        return NewJob("default", module, "-", name, SPEC._replace(schedule=schedule))

    made = (await world.control.make_job(new("every 1m"), "me")).job
    tried = await world.control.create_jobs([new("every 2m"), new("every 1m", "m")], "me", dry_run=True)
    assert tried == [JobDone(made.key, updated=True), JobDone("@reports.-:m")]
    whole = await world.control.create_jobs([new("every 2m"), new("at 2001-01-01T00:00:00Z", "m")], "me", whole=True)
    assert [isinstance(each, Exception) for each in whole] == [False, True]
    assert (await world.job(made.job_id)).schedule == "every 1m"
    done = await world.control.create_jobs([new("every 2m"), new("every 1m", "m")], "me", whole=True)
    assert done[0] == JobDone(made.key, made.job_id, updated=True)
    changed = await world.job(made.job_id)
    assert (changed.schedule, changed.revision) == ("every 2m", made.revision + 1)
    again = await world.control.create_jobs([new("every 2m"), new("every 2m")], "me")
    assert again[0] == JobDone(made.key, made.job_id, unchanged=True)
    (other, *_) = await world.control.create_jobs([new("every 1m", module="billing")], "me")
    assert isinstance(other, Exception)
    spans = await world.scene.spans(made.job_id)
    assert [(span.schedule, span.until_at is None) for span in spans] == [("every 1m", False), ("every 2m", True)]


async def test_payloads_are_those_of_the_claim(world: World) -> None:
    job = await queue_job(world)
    await world.control.update_job(job.key, JobChange.to(payload=json.dumps({"b": 2})), "ann")
    await enqueue(world, await world.due(job))
    await world.control.update_job(job.key, JobChange.to(payload=json.dumps({"c": 3})), "ann")
    (message,) = await queues_of(world.scene).messages()
    assert json.loads(message.payload) == {"b": 2}


async def test_a_message_that_its_consumer_has_locked_is_withdrawn_later(world: World) -> None:
    """Whoever ends executions waits for no transaction of a consumer's: others would wait behind it."""
    if not isinstance(world.scene, PostgresScene):
        return
    execution = await await_consumer(world, await queue_job(world, policy=AWAITED))
    request = request_of(execution, withdrawal(execution), await world.scene.now())
    request = request._replace(message=MessageFate.WITHDRAWN)
    async with world.scene._connection.transaction():
        await world.scene._connection.execute("SELECT FROM cron_queue FOR UPDATE")
        (result,) = await world.store.end_cron_jobs("c1", [request])
        assert (result.ended, result.busy) == (False, True)
    (result,) = await world.store.end_cron_jobs("c1", [request])
    assert (result.ended, result.busy) == (True, False)
    assert await queues_of(world.scene).messages() == []


def test_what_comes_after_a_message_is_what_comes_after_a_run_that_takes_no_time() -> None:
    job = Job(1, "@q.-:n", 1, "@q", "-", "every 1s", 0, 1, 1_000, "stop", False, 10 * SECOND, 10 * SECOND)
    planned = PlannedTick(10 * SECOND, 10 * SECOND)
    assert ticks.after_enqueue(job, planned, 10 * SECOND + 300_000).next == PlannedTick(11 * SECOND, 11 * SECOND)
    late = ticks.after_enqueue(job, planned, 13 * SECOND)
    assert late.next == PlannedTick(14 * SECOND, 14 * SECOND)
    assert sum(part.ticks for part in late.skipped) == 3
