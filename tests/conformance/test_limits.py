"""Limits of modules and namespaces, in every store."""

import asyncio
from typing import Final

import pytest

from cronring.controller.core.ledger.why import explain
from cronring.controller.core.model import Execution, Job, RunnerInfo
from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.store import Backfill
from cronring.schema.execution import Outcome
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World, claim_of, end_of
from tests.conformance.rushing import Rush, idle_jobs
from tests.conformance.tampering import hands_of

TURNS: Final = 120
TURNS_MAX: Final = 2_000
ENOUGH: Final = 25  # claims


async def _set(world: World, places: int, module: str = "billing", namespace: str = "default") -> LimitRow:
    return await world.limits.set_limit(namespace, module, places, "ann", "too much")


async def _running(world: World, module: str = "billing", namespace: str = "default") -> int:
    (row,) = await world.limits.list_limits(namespace, module)
    return row.running


async def _due(world: World, *names: str, policy: Policy = Policy()) -> list[Job]:  # noqa: B008  # it is frozen
    await world.controller("c1")
    await world.runner("r1")
    return await world.due_jobs(*names, policy=policy, seconds_ago=5)


async def _executions(world: World, *jobs: Job) -> list[Execution]:
    wanted = {job.job_id for job in jobs}
    ids = tuple(row.execution_id for row in await world.scene.executions() if row.job_id in wanted)
    return await world.store.get_unfinished(ids)


async def test_as_many_are_claimed_as_there_are_places_and_the_others_wait(world: World) -> None:
    jobs = await _due(world, "a", "b", "c")
    assert await _set(world, 2) == (await world.limits.list_limits())[0]
    results = await world.claim("c1", *jobs)
    assert [result.updated for result in results] == [True, True, False]
    refused = results[2]
    assert refused.full is not None
    assert (refused.executing, refused.next_tick, refused.next_run_at) == (
        False,
        jobs[2].next_tick,
        jobs[2].next_run_at,
    )
    assert await _running(world) == 2
    assert [result.updated for result in await world.claim("c1", jobs[2])] == [False]
    (execution,) = await _executions(world, jobs[0])
    assert (await world.end(execution)).ended
    assert await _running(world) == 1
    assert [result.updated for result in await world.claim("c1", jobs[2])] == [True]
    assert await _running(world) == 2


async def test_an_end_gives_its_place_back_once_however_it_ended(world: World) -> None:
    jobs = await _due(world, "a", "b", "c", "d")
    await _set(world, 4)
    await world.claim("c1", *jobs)
    executions = await _executions(world, *jobs)
    outcomes = Outcome.COMPLETED, Outcome.FAILED, Outcome.LOST, Outcome.TIMED_OUT
    for left, (execution, outcome) in zip((3, 2, 1, 0), zip(executions, outcomes, strict=True), strict=True):
        assert (await world.end(execution, outcome)).ended
        assert not (await world.end(execution, outcome)).ended
        assert await _running(world) == left


async def test_the_place_goes_to_who_has_waited_longest_and_a_level_of_priority_is_worth_a_second(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    verbs = (
        Verb("a", schedule="every 1h"),
        Verb("b", schedule="every 1h", policy=Policy(priority=20)),
        Verb("c", schedule="every 1h"),
        Verb("d", schedule="every 1h", policy=Policy(priority=-8)),
    )
    deployed = await world.store.create_deployment(Module("billing", verbs), "a" * 64, 1, TIMEOUT_MS, True)
    names = {job.verb: job for job in deployed.jobs}
    ages = {"a": 10, "b": 1, "c": 16, "d": 14}  # as if 10, 21, 16 and 6: far apart, as ticks are whole seconds
    jobs = sorted([await world.due(names[name], age) for name, age in ages.items()])
    await _set(world, 1)
    order = []
    while jobs:
        results = {result.job_id: result.updated for result in await world.claim("c1", *jobs)}
        (winner,) = [job for job in jobs if results[job.job_id]]
        order.append(winner.verb)
        jobs.remove(winner)
        (execution,) = await _executions(world, winner)
        await world.end(execution)
    assert order == ["b", "c", "a", "d"]


async def test_a_job_under_two_limits_needs_a_place_of_each(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    jobs = await _due(world, "a", "b")
    other = Module("mail", (Verb("x", schedule="every 1h"), Verb("y", schedule="every 1h")))
    mails = sorted((await world.store.create_deployment(other, "c" * 64, 1, TIMEOUT_MS, True)).jobs)
    mails = [await world.due(mail) for mail in mails]
    await _set(world, 1)
    await _set(world, 2, module="")
    results = await world.claim("c1", *jobs, *mails)
    assert [result.updated for result in results] == [True, False, True, False]
    module_limit, namespace_limit = results[1].full, results[3].full
    assert None not in {module_limit, namespace_limit}
    assert module_limit != namespace_limit
    assert (await _running(world), await _running(world, "")) == (1, 2)
    (mail,) = await _executions(world, mails[0])
    await world.end(mail)
    assert (await _running(world), await _running(world, "")) == (1, 1)
    assert [result.full for result in await world.claim("c1", jobs[1])] == [module_limit]
    assert [result.updated for result in await world.claim("c1", mails[1])] == [True]


async def test_limits_of_other_groups_are_none_of_a_jobs_business(world: World) -> None:
    jobs = await _due(world, "a", "b")
    await _set(world, 1, module="mail")
    await _set(world, 1, module="billing", namespace="prod")
    await _set(world, 1, module="", namespace="prod")
    assert all(result.updated for result in await world.claim("c1", *jobs))


async def test_what_runs_when_a_limit_is_set_counts(world: World) -> None:
    jobs = await _due(world, "a", "b", "c")
    await world.claim("c1", jobs[0], jobs[1])
    assert (await _set(world, 2)).running == 2
    assert not (await world.claim("c1", jobs[2]))[0].updated
    for execution in await _executions(world, *jobs):
        await world.end(execution)
    assert await _running(world) == 0


async def test_a_limit_may_be_raised_lowered_and_removed_while_it_is_full(world: World) -> None:
    jobs = await _due(world, "a", "b", "c", "d")
    await _set(world, 1)
    await world.claim("c1", *jobs)
    assert (await _set(world, 3)).running == 1
    assert sum(result.updated for result in await world.claim("c1", *jobs[1:])) == 2
    assert (await _set(world, 2)).running == 3
    (first,) = await _executions(world, jobs[0])
    await world.end(first)
    assert not (await world.claim("c1", jobs[3]))[0].updated
    removed = await world.limits.remove_limit("default", "billing", "ann")
    assert (removed.max_concurrent, removed.running) == (2, 2)
    assert await world.limits.list_limits() == []
    assert (await world.claim("c1", jobs[3]))[0].updated
    assert (await _set(world, 1)).running == 3
    with pytest.raises(NotFound, match="module prod/billing has no limit"):
        await world.limits.remove_limit("prod", "billing", "ann")


async def test_a_job_that_comes_later_has_the_limits_of_its_module(world: World) -> None:
    await _set(world, 1)
    await _set(world, 5, module="")
    jobs = await _due(world, "a", "b")
    assert [result.updated for result in await world.claim("c1", *jobs)] == [True, False]
    assert (await _running(world), await _running(world, "")) == (1, 1)
    (execution,) = await _executions(world, *jobs)
    await world.end(execution)
    more = Module("billing", tuple(Verb(name, schedule="every 1h") for name in "abc"))
    deployed = await world.store.create_deployment(more, "b" * 64, 1, TIMEOUT_MS, True)
    found = [await world.due(job) for job in sorted(deployed.jobs)]
    assert sum(result.updated for result in await world.claim("c1", *found)) == 1


async def test_what_was_removed_while_it_ran_gives_its_place_back(world: World) -> None:
    jobs = await _due(world, "a", "b")
    await _set(world, 2)
    await world.claim("c1", *jobs)
    executions = await _executions(world, *jobs)
    await world.store.kill_deployment(jobs[0].deployment)
    assert await _running(world) == 2
    assert (await _set(world, 3)).running == 2
    for execution in executions:
        await world.end(execution)
    assert await _running(world) == 0


async def test_runs_by_hand_and_backfills_take_places_too(world: World) -> None:
    (job,) = await _due(world, "a", policy=Policy(overlap="allow", max_concurrent=5, jitter="off"))
    await _set(world, 2)
    await world.claim_next("c1", job)
    for _ in range(2):
        await world.control.trigger_job("billing.a", "ann", None)
    now = await world.scene.now()
    backfill = Backfill(now - 7_200 * SECOND, now - 3_600 * SECOND, False, False)
    await world.control.backfill_job("billing.a", "ann", backfill)
    waiting = await world.waiting()
    results = await world.activate("c1", *waiting)
    assert [result.execution is not None for result in results] == [True] + [False] * (len(waiting) - 1)
    assert all(result.full is not None and not result.gone for result in results[1:])
    assert await _running(world) == 2
    execution = results[0].execution
    assert execution is not None
    await world.end(execution)
    assert await _running(world) == 1
    assert len(await world.waiting()) == len(waiting) - 1


async def test_of_two_controllers_one_gets_the_last_place(world: World) -> None:
    await world.controller("c2")
    jobs = await _due(world, *"abcdefgh")
    await _set(world, 1)
    for _ in range(5):
        answers = await asyncio.gather(
            *(world.store.start_cron_jobs(f"c{1 + n % 2}", [claim_of(job)], 30_000) for n, job in enumerate(jobs))
        )
        won = [result for _, results in answers for result in results if result.updated]
        assert len(won) == 1
        assert await _running(world) == 1
        ids = tuple(result.execution_id for result in won if result.execution_id is not None)
        (execution,) = await world.store.get_unfinished(ids)
        jobs = [job for job in jobs if job.job_id != execution.job.job_id]
        await world.store.end_cron_jobs("c1", [end_of(execution)])
        assert await _running(world) == 0


async def test_whatever_happens_together_the_count_is_right(world: World) -> None:
    """Claims, ends and changes of the limits, all at once: no deadlock, never too many, and nothing drifts."""
    await world.controller("c2")
    jobs = [await world.due(job, 3_000) for job in await _due(world, *"abcdefghijkl")]
    await _set(world, 3)
    await _set(world, 4, module="")
    rush = Rush(world)

    for turn in range(TURNS_MAX):
        if turn >= TURNS and rush.claimed > ENOUGH:  # who is short of cores claims less in a turn
            break
        await asyncio.gather(
            rush.claim("c1", turn), rush.claim("c2", turn + 5), rush.end(turn), rush.end(turn), rush.end(turn + 1),
            rush.claim("c1", turn + 3), _set(world, 3), _set(world, 4, module=""),
        )  # fmt: skip
        unfinished = sum(row.outcome is None for row in await world.scene.executions())
        assert await _running(world) == await _running(world, "") == unfinished <= 3
    assert rush.claimed > ENOUGH
    await rush.end(0)
    await rush.end(0)
    await rush.end(0)
    assert (await _running(world), await _running(world, "")) == (0, 0)
    assert len(jobs) == len(await idle_jobs(world))


async def test_why_says_which_limit_a_tick_waits_for(world: World) -> None:
    jobs = await _due(world, "a", "b")
    await world.store.register_runner(RunnerInfo("r1", "host", 8, "0.1.0", (jobs[0].deployment,)))
    assert (await _full(world)) == ""
    await _set(world, 1)
    assert (await _full(world)) == ""
    await world.claim("c1", *jobs)
    assert (await _full(world)) == "module billing runs 1 of 1"
    await world.limits.remove_limit("default", "billing", "ann")
    await _set(world, 1, module="")
    assert (await _full(world)) == "namespace default runs 1 of 1"
    await _set(world, 2, module="")
    assert (await _full(world)) == ""


async def _full(world: World) -> str:
    return (await hands_of(world.scene).ledger.facts("billing.b", None)).subject.full


async def test_why_says_which_limit_a_run_by_hand_waits_for(world: World) -> None:
    first, second = await _due(world, "a", "b")
    await _set(world, 1)
    await world.claim("c1", first)
    await world.control.trigger_job(second.key, "ada", None)
    before = " ".join(explain(await hands_of(world.scene).ledger.facts(second.key, None)))
    assert "A run triggered by ada" in before
    assert "There is no place for it now: module billing runs 1 of 1. See what runs: cronring limits list" in before
    (running,) = await _executions(world, first)
    await world.end(running)
    after = " ".join(explain(await hands_of(world.scene).ledger.facts(second.key, None)))
    assert "no place" not in after


async def test_limits_are_listed_in_pages(world: World) -> None:
    for namespace, module in (("b", ""), ("a", "y"), ("a", ""), ("a", "x"), ("c", "z")):
        await world.limits.set_limit(namespace, module, 3, "me")
    first = await world.limits.list_limits(limit=3)
    rest = await world.limits.list_limits(after=(first[-1].namespace, first[-1].module, ""), limit=3)
    names = [(row.namespace, row.module) for row in (*first, *rest)]
    assert names == [("a", ""), ("a", "x"), ("a", "y"), ("b", ""), ("c", "z")]
    assert len(first) == 3
    assert [row.module for row in await world.limits.list_limits("a", after=("a", "", ""), limit=1)] == ["x"]
