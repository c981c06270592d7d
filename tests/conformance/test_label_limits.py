"""Limits by label, in every store: so many at once of each value."""

import asyncio

import pytest

from cronring.controller.core.ledger.why import explain
from cronring.controller.core.model import Execution, Job
from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import LimitRow, ValueRow
from cronring.controller.ports.many import JobChange, NewJob
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import TIMEOUT_MS, World
from tests.conformance.rushing import Rush, idle_jobs
from tests.conformance.tampering import hands_of

WORKSPACE = "workspace"


async def _set(world: World, places: int = 1, module: str = "") -> LimitRow:
    return await world.limits.set_limit("default", module, places, "ann", "tenants", label=WORKSPACE)


async def _row(world: World, module: str = "") -> LimitRow:
    (row,) = (row for row in await world.limits.list_limits("default", module) if row.label == WORKSPACE)
    return row


async def _label(world: World, job: Job, workspace: str | None) -> Job:
    return await world.control.update_job(job.key, JobChange.to(labels=_labels(workspace)), "ann")


def _labels(workspace: str | None) -> dict[str, str]:
    return {} if workspace is None else {WORKSPACE: workspace, "team": "x"}


async def _due(world: World, **workspaces: str | None) -> list[Job]:
    """A due job of each name, in this workspace."""
    await world.controller("c1")
    await world.runner("r1")
    module = Module("billing", (Verb("run"),))
    await world.store.create_deployment(module, "a" * 64, 1, TIMEOUT_MS, True)
    policy = Policy(jitter="off").text
    jobs = []
    for name, workspace in workspaces.items():
        spec = JobSpec(
            "every 1h", timeout_ms=TIMEOUT_MS, on_disconnect="stop", policy=policy, labels=_labels(workspace)
        )
        jobs.append((await world.control.make_job(NewJob("default", "billing", "run", name, spec), "ann")).job)
    return [await world.due(job, 5) for job in jobs]


async def _claimed(world: World, *jobs: Job) -> list[bool]:
    return [result.updated for result in await world.claim("c1", *jobs)]


async def _execution(world: World, job: Job) -> Execution:
    ids = [row.execution_id for row in await world.scene.executions() if row.job_id == job.job_id and not row.outcome]
    (execution,) = await world.store.get_unfinished(tuple(ids))
    return execution


async def test_so_many_of_each_value_run_and_what_has_no_such_label_is_not_limited(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_2", d=None, e=None)
    assert (await _set(world)).running == 0
    assert await _claimed(world, *jobs) == [True, False, True, True, True]
    row = await _row(world)
    assert (row.label, row.max_concurrent, row.running, row.values, row.full_values) == (WORKSPACE, 1, 2, 2, 2)
    assert row.fullest == (ValueRow("ws_1", 1), ValueRow("ws_2", 1))
    (refused,) = await world.claim("c1", jobs[1])
    assert refused.full is not None
    assert (await world.end(await _execution(world, jobs[0]))).ended
    assert await _claimed(world, jobs[1]) == [True]
    assert (await _row(world)).fullest == (ValueRow("ws_1", 1), ValueRow("ws_2", 1))


async def test_an_empty_value_is_a_value(world: World) -> None:
    jobs = await _due(world, a="", b="")
    await _set(world)
    assert await _claimed(world, *jobs) == [True, False]


async def test_however_a_run_ends_its_place_is_given_back_once(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_1", d="ws_1")
    await _set(world, 4)
    assert all(await _claimed(world, *jobs))
    outcomes = Outcome.COMPLETED, Outcome.FAILED, Outcome.LOST, Outcome.TIMED_OUT
    for left, (job, outcome) in zip((3, 2, 1, 0), zip(jobs, outcomes, strict=True), strict=True):
        execution = await _execution(world, job)
        assert (await world.end(execution, outcome)).ended
        assert not (await world.end(execution, outcome)).ended
        assert (await _row(world)).running == left
    assert (await _row(world)).values == 0


async def test_a_run_counts_where_it_was_claimed_whatever_its_job_is_labelled_since(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_2")
    await _set(world)
    assert await _claimed(world, jobs[0]) == [True]
    running = await _execution(world, jobs[0])
    await _label(world, jobs[0], "ws_2")
    assert (await _row(world)).fullest == (ValueRow("ws_1", 1),)
    assert await _claimed(world, *jobs[1:]) == [False, True]
    assert (await world.end(running)).ended
    assert (await _row(world)).fullest == (ValueRow("ws_2", 1),)
    idle = await idle_jobs(world)
    moved = await world.due(next(job for job in idle if job.key == "billing.run:a"))
    assert await _claimed(world, moved, jobs[1]) == [False, True]


async def test_a_job_that_loses_its_label_while_it_runs_gives_its_place_back(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1")
    await _set(world)
    await world.limits.set_limit("default", "billing", 9, "ann")
    assert await _claimed(world, *jobs) == [True, False]
    running = await _execution(world, jobs[0])
    await _label(world, jobs[0], None)
    await world.limits.remove_limit("default", "billing", "ann")
    assert (await _row(world)).running == 1
    assert (await world.end(running)).ended
    assert (await _row(world)).running == 0
    assert await _claimed(world, jobs[1]) == [True]


async def test_what_runs_when_the_limit_is_set_counts_and_setting_it_again_moves_nothing(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_1")
    assert all(await _claimed(world, *jobs[:2]))
    row = await _set(world)
    assert (row.running, row.values, row.full_values) == (2, 1, 1)
    await _label(world, jobs[0], "ws_2")
    assert (await _set(world, 3)).fullest == (ValueRow("ws_1", 2),)
    assert await _claimed(world, jobs[2]) == [True]
    for job in jobs:
        await world.end(await _execution(world, job))
    assert (await _row(world)).running == 0


async def test_a_limit_that_is_removed_and_set_again_counts_anew(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_1")
    await _set(world)
    assert await _claimed(world, *jobs) == [True, False, False]
    removed = await world.limits.remove_limit("default", "", "ann", label=WORKSPACE)
    assert (removed.label, removed.running) == (WORKSPACE, 1)
    with pytest.raises(NotFound, match="each workspace of namespace default has no limit"):
        await world.limits.remove_limit("default", "", "ann", label=WORKSPACE)
    assert await _claimed(world, jobs[1]) == [True]
    assert (await _set(world)).fullest == (ValueRow("ws_1", 2),)
    for job in jobs[:2]:
        await world.end(await _execution(world, job))
    assert await _claimed(world, jobs[2]) == [True]
    assert (await _row(world)).running == 1


async def test_a_job_under_limits_of_all_kinds_needs_a_place_of_each(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1", c="ws_2", d="ws_3", e="ws_4")
    await _set(world)
    await _set(world, 1, "billing")
    await world.limits.set_limit("default", "billing", 3, "ann")
    await world.limits.set_limit("default", "", 2, "ann")
    await world.limits.set_limit("default", "", 1, "ann", label="nobody/has-it")
    assert await _claimed(world, *jobs) == [True, False, True, False, False]
    await world.limits.set_limit("default", "", 9, "ann")
    assert await _claimed(world, *jobs[1:2], *jobs[3:]) == [False, True, False]
    rows = {(row.module, row.label): row.running for row in await world.limits.list_limits()}
    assert rows == {
        ("", ""): 3, ("", "nobody/has-it"): 0, ("", WORKSPACE): 3, ("billing", ""): 3, ("billing", WORKSPACE): 3,
    }  # fmt: skip
    for job in (jobs[0], jobs[2], jobs[3]):
        await world.end(await _execution(world, job))
    assert {row.running for row in await world.limits.list_limits()} == {0}


async def test_a_limit_of_another_module_or_namespace_is_none_of_its_business(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1")
    await _set(world, 1, "mail")
    await world.limits.set_limit("prod", "", 1, "ann", label=WORKSPACE)
    assert await _claimed(world, *jobs) == [True, True]


async def test_runs_by_hand_take_places_of_their_value(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1")
    await _set(world)
    assert await _claimed(world, jobs[0]) == [True]
    await world.control.trigger_job(jobs[1].key, "ann", None)
    (result,) = await world.activate("c1", *await world.waiting())
    assert result.execution is None
    assert result.full is not None
    await world.end(await _execution(world, jobs[0]))
    (result,) = await world.activate("c1", *await world.waiting())
    assert result.execution is not None
    assert (await _row(world)).running == 1
    await world.end(result.execution)
    assert (await _row(world)).running == 0


async def test_why_says_which_value_it_waits_for(world: World) -> None:
    jobs = await _due(world, a="ws_1", b="ws_1")
    await _set(world)
    await world.claim("c1", *jobs)
    facts = await hands_of(world.scene).ledger.facts("billing.run:b", None)
    assert facts.subject.full == "workspace=ws_1 of namespace default runs 1 of 1"
    await world.control.trigger_job(jobs[1].key, "ann", None)
    told = " ".join(explain(await hands_of(world.scene).ledger.facts("billing.run:b", None)))
    assert "There is no place for it now: workspace=ws_1 of namespace default runs 1 of 1." in told


async def test_limits_by_label_are_listed_behind_those_of_their_group(world: World) -> None:
    for module, label in (("b", "x"), ("b", ""), ("", "z"), ("", "y"), ("a", "x/y")):
        await world.limits.set_limit("default", module, 3, "me", label=label)
    names = [("", "y"), ("", "z"), ("a", "x/y"), ("b", ""), ("b", "x")]
    assert [(row.module, row.label) for row in await world.limits.list_limits()] == names
    assert await world.limits.count_limits() == len(names), "rules, and not what counts their values"
    for place, (module, label) in enumerate(names):
        rows = await world.limits.list_limits(after=("default", module, label), limit=2)
        assert [(row.module, row.label) for row in rows] == names[place + 1 : place + 3]


async def test_whatever_happens_together_no_value_has_too_many_and_nothing_drifts(world: World) -> None:
    """Claims, ends, new labels and changes of limits, all at once: no deadlock, and the counts are right."""
    await world.controller("c2")
    names = "abcdefghijkl"
    jobs = await _due(world, **{name: f"ws_{place % 3}" for place, name in enumerate(names)})
    jobs = [await world.due(job, 3_000) for job in jobs]
    await _set(world, 2)
    await world.limits.set_limit("default", "", 5, "ann")
    rush = Rush(world)

    async def label(turn: int) -> None:
        await _label(world, jobs[turn % 12], None if turn % 7 == 0 else f"ws_{turn % 4}")

    for turn in range(60):
        await asyncio.gather(
            rush.claim("c1", turn), rush.claim("c2", turn + 5), rush.end(turn), rush.end(turn + 1),
            rush.claim("c1", turn + 3), label(turn), label(turn + 4), *([_set(world, 2)] if turn % 5 == 0 else []),
        )  # fmt: skip
        unfinished = sum(row.outcome is None for row in await world.scene.executions())
        everything, by_label = await world.limits.list_limits()
        assert everything.running == unfinished <= 5
        assert by_label.running <= unfinished
        assert all(value.running <= 2 for value in by_label.fullest)
    assert rush.claimed > 25
    for _ in range(3):
        await rush.end(0)
    assert [(row.running, row.values) for row in await world.limits.list_limits()] == [(0, 0), (0, 0)]
