"""Jobs that run after others: behaviour that every store has."""

import asyncio

import pytest

from cronring.controller.core.model import Activation, Execution, Job
from cronring.controller.core.orders.orders import Cancel, Pause
from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, SLOTS, TIMEOUT_MS, World

MINUTE = 60 * SECOND
OFF = Policy(jitter="off")
CLOSE, REPORT, MAIL = "billing.close", "reports.month", "reports.mail"


def after(key: str, **policies: object) -> Policy:
    return Policy(after=key, **policies)  # type: ignore[arg-type]  # by the fields' kinds


def reports(*verbs: Verb) -> Module:
    return Module("reports", verbs or (Verb("month", schedule="manual", policy=after(CLOSE)),))


BILLING = Module("billing", (Verb("close", schedule="* * * * *", policy=OFF),))


async def deploy(world: World, module: Module, digest: str = "a") -> dict[str, Job]:
    """The module's jobs by key, with a controller and a runner there."""
    await world.controller("c1")
    await world.runner("r1")
    deployed = await world.store.create_deployment(module, digest * 64, 1, TIMEOUT_MS, True)
    return {job.key: job for job in deployed.jobs}


async def run(world: World, job: Job, seconds_ago: int = 1) -> Execution:
    """An execution of a tick that came due."""
    (claimed,) = await world.claim("c1", await world.due(job, seconds_ago))
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    return execution


async def start(world: World, waiting: Activation) -> Execution:
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None, result
    return result.execution


async def followers(world: World, execution: Execution, outcome: Outcome = Outcome.COMPLETED) -> list[Activation]:
    """What this end makes: as it says itself, and as it waits."""
    result = await world.end(execution, outcome)
    assert result.ended
    ids = tuple(result.followers or ())
    _, found = await world.store.get_followers(ids)
    assert {each.activation_id for each in found} <= set(ids)
    assert bool(found) or not [each for each in await world.waiting() if each.activation_id in ids]
    return sorted(found)


async def test_a_tick_that_succeeded_is_followed_with_itself(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    month = (await deploy(world, reports()))[REPORT]
    assert month.next_tick is None
    execution = await run(world, close)
    (waiting,) = await followers(world, execution)
    assert (waiting.trigger, waiting.tick, waiting.attempt) == (Trigger.AFTER, execution.tick, 1)
    assert (waiting.job.key, waiting.beside, waiting.until_tick) == (REPORT, False, None)
    assert await world.waiting() == [waiting]
    followed = await start(world, waiting)
    assert (followed.trigger, followed.tick, followed.of_schedule) == (Trigger.AFTER, execution.tick, True)
    assert (followed.holds_job, followed.job.executing) == (True, True)
    assert await world.scene.activations() == []
    await world.end(followed)
    assert (await world.scene.job(month.job_id)).last_success == execution.tick


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.LOST])
async def test_a_tick_without_success_is_not_followed(world: World, outcome: Outcome) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    assert await followers(world, await run(world, close), outcome) == []
    assert await world.waiting() == []


async def test_a_retry_that_succeeds_is_followed(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    failed = await run(world, close)
    await world.end(failed, Outcome.FAILED, retry_at=await world.scene.now())
    (retry,) = await world.waiting()
    (waiting,) = await followers(world, await start(world, retry))
    assert (waiting.trigger, waiting.tick) == (Trigger.AFTER, failed.tick)


async def test_a_run_by_hand_is_not_followed(world: World) -> None:
    await deploy(world, BILLING)
    await deploy(world, reports())
    by_hand = await start(world, await world.control.trigger_job(CLOSE, "me", None))
    assert await followers(world, by_hand) == []


async def test_a_backfill_is_followed_once_for_each_tick(world: World) -> None:
    await deploy(world, BILLING)
    await deploy(world, reports())
    now = await world.scene.now()
    tick = now - now % MINUTE - MINUTE
    for again in (False, True):
        backfill = await world.control.backfill_job(CLOSE, "me", Backfill(tick, tick, beside=True, again=again))
        assert backfill is not None
        found = await followers(world, await start(world, backfill))
        assert [each.tick for each in found] == ([] if again else [tick])
        if found:
            await world.end(await start(world, found[0]))
    assert [each.trigger for each in await world.scene.executions()] == ["backfill", "after", "backfill"]


async def test_it_follows_once_though_its_run_has_not_begun(world: World) -> None:
    await deploy(world, BILLING)
    await deploy(world, reports())
    now = await world.scene.now()
    tick = now - now % MINUTE - MINUTE
    made = []
    for _ in range(2):
        backfill = await world.control.backfill_job(CLOSE, "me", Backfill(tick, tick, beside=True, again=True))
        assert backfill is not None
        made.append(await followers(world, await start(world, backfill)))
    assert [len(each) for each in made] == [1, 0]
    assert len(await world.waiting()) == 1


async def test_an_end_that_is_repeated_makes_no_more(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    execution = await run(world, close)
    assert len(await followers(world, execution)) == 1
    again = await world.end(execution)
    assert (again.ended, again.followers) == (False, None)
    assert len(await world.waiting()) == 1


async def test_several_follow_one_and_each_end_names_its_own(world: World) -> None:
    two = Module("billing", tuple(Verb(name, schedule="* * * * *", policy=OFF) for name in ("close", "open")))
    jobs = await deploy(world, two)
    verbs = [Verb(name, schedule="manual", policy=after(CLOSE)) for name in ("month", "mail")]
    await deploy(world, reports(*verbs, Verb("opened", schedule="manual", policy=after("billing.open"))))
    closed, opened = await run(world, jobs[CLOSE]), await run(world, jobs["billing.open"])
    assert [each.job.key for each in await followers(world, opened)] == ["reports.opened"]
    assert sorted(each.job.key for each in await followers(world, closed)) == [MAIL, REPORT]


async def test_a_chain_passes_the_tick_on(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    month = Verb("month", schedule="manual", policy=after(CLOSE))
    await deploy(world, reports(month, Verb("mail", schedule="manual", policy=after(REPORT))))
    execution = await run(world, close)
    (second,) = await followers(world, execution)
    (third,) = await followers(world, await start(world, second))
    assert (third.job.key, third.tick, third.trigger) == (MAIL, execution.tick, Trigger.AFTER)
    assert await followers(world, await start(world, third)) == []


async def test_a_retry_of_the_follower_is_followed_and_superseded_by_no_later_tick(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    month = Verb("month", schedule="manual", policy=after(CLOSE, retries=2))
    await deploy(world, reports(month, Verb("mail", schedule="manual", policy=after(REPORT))))
    (first,) = await followers(world, await run(world, close, 30))
    failed = await start(world, first)
    await world.end(failed, Outcome.FAILED, retry_at=await world.scene.now())
    (later,) = await followers(world, await run(world, close, 1))
    assert later.tick > failed.tick
    await world.end(await start(world, later))
    (retry,) = [each for each in await world.waiting() if each.trigger is Trigger.RETRY]
    (mail,) = await followers(world, await start(world, retry))
    assert (mail.job.key, mail.tick) == (MAIL, failed.tick)


async def test_the_follower_may_be_deployed_first_and_go_and_come_back(world: World) -> None:
    await deploy(world, reports())
    close = (await deploy(world, BILLING))[CLOSE]
    (found,) = await followers(world, await run(world, close, 40))
    assert found.job.key == REPORT
    await deploy(world, reports(Verb("month", schedule="manual", policy=Policy(retries=1))), "b")
    assert await followers(world, await run(world, close, 30)) == []
    await deploy(world, reports(), "c")
    assert len(await followers(world, await run(world, close, 20))) == 1
    await deploy(world, reports(Verb("other", schedule="manual")), "d")  # it is removed, and what waited goes
    assert await followers(world, await run(world, close, 10)) == []
    assert await world.waiting() == []


async def test_jobs_made_by_hand_follow_and_are_followed(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports(Verb("month")))
    spec = JobSpec("manual", timeout_ms=TIMEOUT_MS, on_disconnect="stop", policy=after(CLOSE).text)
    wanted = NewJob("default", "reports", "month", "eu", spec)
    made = (await world.control.make_job(wanted, "me")).job
    assert [each.job.key for each in await followers(world, await run(world, close, 20))] == [made.key]
    await world.control.update_job(made.key, JobChange.to(policy=""), "me")
    assert await followers(world, await run(world, close, 10)) == []
    await world.control.update_job(made.key, JobChange.to(policy=after(CLOSE).text), "me")
    await world.control.delete_job(made.key, "me")
    assert await followers(world, await run(world, close, 1)) == []


async def test_while_it_is_paused_what_it_follows_waits(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    await world.control.pause_job(REPORT, "me", "")
    result = await world.end(await run(world, close))
    assert await world.waiting() == []  # none that may run
    assert len(await world.scene.activations()) == 1
    assert (await world.store.get_followers(tuple(result.followers or ())))[1] == []
    await world.control.resume_job(REPORT, "me")
    (waiting,) = await world.waiting()
    await start(world, waiting)


async def test_a_pause_with_an_end_makes_it_wait_until_then(world: World) -> None:
    """And for no refetch after it: that may be a minute later."""
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    soon, later = [await world.scene.now() + seconds * SECOND for seconds in (60, 3_600)]
    await world.control.order_job(REPORT, Pause("", soon), "me")
    made = tuple((await world.end(await run(world, close))).followers or ())
    (waiting,) = (await world.store.get_activations(SLOTS, 90_000))[1]
    assert waiting.run_at == soon
    assert [each.run_at for each in (await world.store.get_followers(made))[1]] == [soon]
    assert (await world.store.get_activations(SLOTS, 1_000))[1] == []
    await world.control.order_job(REPORT, Pause("", later), "me")
    assert (await world.store.get_activations(SLOTS, 90_000))[1] == []
    assert (await world.store.get_followers(made))[1] == []


async def test_one_that_has_run_can_be_paused_too(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    job = (await deploy(world, reports()))[REPORT]
    (waiting,) = await followers(world, await run(world, close, 20))
    await world.end(await start(world, waiting), next_tick=None, next_run_at=None)
    assert await world.scene.state(job.job_id) == "pending"
    await world.control.pause_job(REPORT, "me", "")
    await world.end(await run(world, close, 10))
    assert await world.waiting() == []
    await world.control.resume_job(REPORT, "me")
    assert await world.scene.state(job.job_id) == "pending"
    (waiting,) = await world.waiting()
    await start(world, waiting)


async def test_a_follower_that_keeps_failing_is_paused(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    month = Verb("month", schedule="manual", policy=after(CLOSE, pause_after_failures=2))
    job = (await deploy(world, reports(month)))[REPORT]
    for seconds_ago in (30, 20):
        (waiting,) = await followers(world, await run(world, close, seconds_ago))
        result = await world.end(await start(world, waiting), Outcome.FAILED, next_tick=None, next_run_at=None)
    assert result.paused
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.failures, booked.paused_by) == (True, 2, "cronring")


async def test_a_cancelled_follower_follows_nothing(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    month = (await deploy(world, reports()))[REPORT]
    (waiting,) = await followers(world, await run(world, close, 20))
    await world.control.order_job(month.key, Cancel(), "me")
    assert await followers(world, await run(world, close, 10)) == []
    assert await world.scene.activations() == []
    assert (await world.activate("c1", waiting))[0].gone


async def test_while_it_runs_the_next_tick_waits_its_turn(world: World) -> None:
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    (first,) = await followers(world, await run(world, close, 20))
    running = await start(world, first)
    (second,) = await followers(world, await run(world, close, 10))
    (busy,) = await world.activate("c1", second)
    assert (busy.execution, busy.gone) == (None, False)
    await world.end(running)
    assert (await start(world, second)).tick == second.tick > running.tick


async def test_a_visible_cycle_is_refused_and_leaves_nothing_behind(world: World) -> None:
    await deploy(world, reports())
    circle = Module("billing", (Verb("close", schedule="manual", policy=after(REPORT)),))
    with pytest.raises(Conflict, match="runs after"):
        await deploy(world, circle)
    close = (await deploy(world, BILLING, "b"))[CLOSE]
    assert len(await followers(world, await run(world, close, 20))) == 1
    with pytest.raises(Conflict, match=r"billing\.close runs after reports\.month, which runs after billing\.close"):
        await deploy(world, circle, "c")
    assert len(await followers(world, await run(world, close, 10))) == 1
    spec = JobSpec("manual", timeout_ms=TIMEOUT_MS, on_disconnect="stop", policy=after("billing.close:me").text)
    wanted = NewJob("default", "billing", "close", "me", spec)
    with pytest.raises(Conflict, match="after itself"):
        await world.control.make_job(wanted, "me")


async def test_a_turned_edge_is_no_cycle(world: World) -> None:
    one, other = Verb("month", schedule="* * * * *"), Verb("mail", schedule="manual", policy=after(REPORT))
    await deploy(world, reports(one, other))
    turned = Verb("month", schedule="manual", policy=after(MAIL)), Verb("mail", schedule="* * * * *")
    assert set(await deploy(world, reports(*turned), "b")) == {MAIL, REPORT}


async def test_a_cycle_that_nobody_saw_ends_by_itself(world: World) -> None:
    """Two jobs that follow each other, one of which still runs a tick of the schedule that it had before."""
    close = (await deploy(world, BILLING))[CLOSE]
    await deploy(world, reports())
    execution = await run(world, close)
    await world.scene.set_followed(close.job_id, REPORT)
    (waiting,) = await followers(world, execution)
    assert await followers(world, await start(world, waiting)) == []
    assert [each.job_id for each in await world.scene.executions()] == [close.job_id, waiting.job.job_id]


async def test_many_ends_at_once_are_each_followed_once(world: World) -> None:
    names = [f"close{number}" for number in range(20)]
    jobs = await deploy(world, Module("billing", tuple(Verb(n, schedule="* * * * *", policy=OFF) for n in names)))
    await deploy(world, reports(*(Verb(name, schedule="manual", policy=after(f"billing.{name}")) for name in names)))
    executions = [await run(world, job) for job in jobs.values()]
    twice = [*executions, *executions]
    results = await asyncio.gather(*(world.end(execution) for execution in twice))
    made = [each for result in results for each in result.followers or ()]
    assert len(made) == len(set(made)) == len(names)
    waiting = await world.waiting()
    assert sorted(each.job.key for each in waiting) == sorted(f"reports.{name}" for name in names)
    assert {each.tick % SECOND for each in waiting} == {0}
