"""Which ticks passed while a run went on is a fact, whatever is made of its job meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.node.ending import request_of
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.ports.many import JobChange, NewJob
from cronring.schema.execution import Report
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World, claim_of, end_of
from tests.support.waiting import TIMEOUT_S

Edit = Callable[[World, str], Awaitable[object]]
OFF = Policy(jitter="off")
HIGH = Policy(jitter="off", priority=7).text


def change(**fields: object) -> Edit:
    return lambda world, key: world.control.update_job(key, JobChange.to(**fields), "me")  # type: ignore[arg-type]  # fields by name


async def toggle(world: World, key: str) -> None:
    await no_tick_soon(world)
    await world.control.order_job(key, Pause(), "me")
    await world.control.order_job(key, Resume(), "me")


async def restore(world: World, key: str) -> None:
    await no_tick_soon(world)
    await world.control.order_job(key, Cancel(), "me")
    await world.control.order_job(key, Restore(), "me")


async def pause_shortly(world: World, key: str) -> None:
    await no_tick_soon(world)
    now = await world.scene.now()
    await world.control.order_job(key, Pause("", now - now % SECOND + SECOND), "me")


async def skip_next(world: World, key: str) -> None:
    await world.control.order_job(key, SkipNext(), "me")


# What each tick of the second half comes to: the first of these is the one that an order decided ahead.
EDITS: dict[str, tuple[Edit, set[str]]] = {
    "nothing": (change(), set()),
    "labels": (change(labels={"a": "b"}), set()),
    "payload": (change(payload="{}"), set()),
    "priority": (change(policy=HIGH), set()),
    "missed": (change(policy=Policy(jitter="off", on_missed="skip").text), set()),
    "toggle": (toggle, set()),
    "shortly": (pause_shortly, set()),
    "skip": (skip_next, {"cancelled"}),
    "restore": (restore, set()),
    "schedule": (change(schedule="every 1s"), set()),
}


async def until(world: World, instant: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while (now := await world.scene.now()) < instant:
            await asyncio.sleep(min(0.2, (instant - now) / SECOND) if world.is_real else 0)


async def no_tick_soon(world: World) -> None:
    """Half a second for orders between which no tick may come."""
    now = await world.scene.now()
    if now % SECOND > SECOND // 2:
        await until(world, now - now % SECOND + SECOND)


async def claimed(world: World, job: Job) -> Execution:
    (result,) = await world.claim("c1", job)
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    return execution


async def ended(world: World, execution: Execution) -> None:
    now = await world.scene.now()
    report = end_of(execution).report._replace(ended_at=now)
    (result,) = await world.store.end_cron_jobs("c1", [request_of(execution, report, now)])
    if result.stale:
        (known,) = await world.store.get_unfinished((execution.execution_id,))
        (result,) = await world.store.end_cron_jobs("c1", [request_of(known, report, now)])
    assert result.ended


async def made(world: World, names: list[str], policy: Policy = OFF, schedule: str = "1s") -> list[Job]:
    """A job each second for every name, of one verb, with a tick that is due."""
    await world.controller("c1")
    await world.runner("r1")
    await world.store.create_deployment(Module("billing", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    jobs = [
        (
            await world.control.make_job(
                NewJob(
                    "default",
                    "billing",
                    "a",
                    name,
                    JobSpec(schedule, timeout_ms=TIMEOUT_MS, on_disconnect="stop", policy=policy.text),
                ),
                "me",
            )
        ).job
        for name in names
    ]
    await until(world, max(job.next_tick or 0 for job in jobs))
    return jobs


async def fates(world: World, job: Job) -> dict[int, str]:
    """Of each tick behind its first run: why it didn't run."""
    found: dict[int, str] = {}
    for skip in await world.scene.skips():
        if skip.job_id == job.job_id:
            for tick in range(skip.first_tick, skip.last_tick + 1, SECOND):
                assert tick not in found, f"{tick} is in the books twice"
                found[tick] = skip.reason
    return found


async def test_ticks_that_pass_during_a_run_overlap_whatever_is_changed_meanwhile(world: World) -> None:
    jobs = await made(world, list(EDITS))
    runs = {name: await claimed(world, job) for name, job in zip(EDITS, jobs, strict=True)}
    await until(world, max(run.tick for run in runs.values()) + int(2.3 * SECOND))
    for name, (edit, _) in EDITS.items():
        await edit(world, runs[name].job.key)
    await until(world, max(run.tick for run in runs.values()) + int(5.3 * SECOND))
    for name, run in runs.items():
        before = await world.scene.now()
        await ended(world, run)
        row, why = await world.scene.job(run.job.job_id), await fates(world, run.job)
        last = before - before % SECOND
        assert row.next_tick is not None, name
        assert last < row.next_tick <= last + 2 * SECOND, f"{name}: a tick that passed is still to come"
        assert set(why.values()) == {"overlap"} | EDITS[name][1], f"{name}: {why}"
        assert sorted(why) == list(range(run.tick + SECOND, row.next_tick, SECOND)), f"{name}: {why}"


async def test_a_pause_has_its_ticks_and_the_run_before_and_behind_it_the_others(world: World) -> None:
    (job,) = await made(world, ["x"])
    run = await claimed(world, job)
    await until(world, run.tick + int(1.5 * SECOND))
    await world.control.order_job(job.key, Pause(), "me")
    await until(world, run.tick + int(3.5 * SECOND))
    await world.control.order_job(job.key, Resume(), "me")
    await until(world, run.tick + int(5.5 * SECOND))
    await ended(world, run)
    why = await fates(world, job)
    reasons = [why[tick] for tick in sorted(why)]
    assert reasons[0] == reasons[-1] == "overlap"
    assert "paused" in reasons
    assert sorted(set(reasons), key=reasons.index) == ["overlap", "paused"]
    assert sorted(why) == [run.tick + SECOND * (1 + at) for at in range(len(why))]


async def test_what_waits_for_the_end_of_a_run_still_does_once_its_priority_is_another(world: World) -> None:
    (job,) = await made(world, ["x"], Policy(jitter="off", overlap="buffer_one"))
    run = await claimed(world, job)
    await until(world, run.tick + int(2.3 * SECOND))
    policy = Policy(jitter="off", overlap="buffer_one", priority=3)
    await world.control.update_job(job.key, JobChange.to(policy=policy.text), "me")
    before = await world.scene.now()
    await ended(world, run)
    after = await world.scene.now()
    row = await world.scene.job(job.job_id)
    assert row.next_tick in range(before - before % SECOND, after + 1, SECOND), "the latest one that came due"
    assert set((await fates(world, job)).values()) <= {"overlap"}


async def test_several_runs_that_go_on_when_only_one_may_cost_their_ticks(world: World) -> None:
    (job,) = await made(world, ["x"], Policy(jitter="off", overlap="allow", max_concurrent=3), "3s")
    first = await claimed_beside(world, job)
    second = await claimed_beside(world, await world.job(job.job_id))
    await world.control.update_job(job.key, JobChange.to(policy=OFF.text), "me")
    await until(world, second.tick + 7 * SECOND)
    await ended(world, first)
    assert await fates(world, job) == {}, "the other one still goes on"
    before = await world.scene.now()
    await ended(world, second)
    row = await world.scene.job(job.job_id)
    assert row.next_tick is not None
    assert row.next_tick > before - 3 * SECOND
    assert [(skip.reason, skip.ticks) for skip in await world.scene.skips()] == [("overlap", 2)]
    assert row.running == 0


async def claimed_beside(world: World, job: Job) -> Execution:
    assert job.next_tick is not None
    await until(world, job.next_tick)
    await world.controller("c1")  # its lease is short
    following = job.next_tick + 3 * SECOND
    request = claim_of(job)._replace(next_tick=following, next_run_at=following)
    _, (result,) = await world.store.start_cron_jobs("c1", [request], 0)
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    return execution


async def test_a_moved_run_stays_moved_though_its_priority_is_another(world: World) -> None:
    """`ctx.next_in` of a run that began before."""
    (execution,) = await world.running("c1", "a", policy=OFF)
    job = execution.job
    declared = Module("billing", (Verb("a", schedule="every 1h", policy=Policy(jitter="off", priority=1)),))
    await world.store.create_deployment(declared, "b" * 64, 1, TIMEOUT_MS, True)
    now = await world.scene.now()
    report: Report = end_of(execution).report._replace(ended_at=now, next_in_ms=120_000)
    assert (await world.store.end_cron_jobs("c1", [request_of(execution, report, now)]))[0].stale
    (known,) = await world.store.get_unfinished((execution.execution_id,))
    (result,) = await world.store.end_cron_jobs("c1", [request_of(known, report, now)])
    assert (result.ended, result.moved) == (True, True)
    assert result.next_tick is not None
    assert now + 120 * SECOND <= result.next_tick <= now + 121 * SECOND
    assert (await world.scene.job(job.job_id)).anchor == result.next_tick - 3600 * SECOND
