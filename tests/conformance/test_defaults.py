"""What jobs have that don't say it: from the cluster's one row, in every store."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.core.node.ending import request_of
from cronring.controller.ports.defaults import DefaultsRow
from cronring.schema.execution import Outcome
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import GRACE_MS, TIMEOUT_MS, World, end_of

MS = 1_000


class Refused(Exception):
    """What a caller raises while it is asked."""


def to(**values: int | None) -> Callable[[DefaultsRow], DefaultsRow]:
    def decide(row: DefaultsRow) -> DefaultsRow:
        return row._replace(**values)  # type: ignore[arg-type]  # these are its columns

    return decide


async def ready(world: World, *verbs: Verb, digest: str = "a") -> dict[str, int]:
    """Jobs of these verbs, and who may claim them: ids by key."""
    await world.controller("c1")
    await world.runner("r1")
    deployed = await world.store.create_deployment(Module("billing", verbs), digest * 64, 1, TIMEOUT_MS, True)
    return {job.key: job.job_id for job in deployed.jobs}


async def granted_ms(world: World, execution: Execution) -> int:
    """From the claim to the hard timeout, without its grace."""
    deadline = await world.scene.hard_deadline(execution.execution_id)
    return (deadline - execution.claimed_at) // MS - GRACE_MS


async def begun(world: World, job_id: int) -> Execution:
    (claimed,) = await world.claim("c1", await world.due(await world.job(job_id)))
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    return execution


HOURLY = Verb("a", schedule="every 1h")
STATED = Verb("b", schedule="every 1h", timeout_ms=7_000)


async def test_what_is_set_is_kept_until_it_is_unset(world: World) -> None:
    assert await world.scene.defaults.get_defaults() == DefaultsRow()
    row = await world.scene.defaults.set_defaults(to(timeout_ms=600_000), "ada", "slow")
    assert (row.timeout_ms, row.late_after_ms, row.revision, row.changed_by, row.note) == (
        600_000, None, 1, "ada", "slow",
    )  # fmt: skip
    assert row.changed_at is not None
    both = await world.scene.defaults.set_defaults(to(late_after_ms=30_000), "eve")
    assert (both.timeout_ms, both.late_after_ms, both.revision, both.note) == (600_000, 30_000, 2, "")
    assert await world.scene.defaults.get_defaults() == both
    none = await world.scene.defaults.set_defaults(to(timeout_ms=None, late_after_ms=None), "eve")
    assert (none.timeout_ms, none.late_after_ms, none.revision) == (None, None, 3)
    tried = await world.scene.defaults.set_defaults(to(retries=3), "eve")
    assert (tried.retries, tried.revision) == (3, 4)
    found = [(each.subject, each.namespace, each.before, each.after) for each in await world.scene.changes()]
    assert found == [
        ("defaults", "", {"timeout_ms": None}, {"timeout_ms": 600_000}),
        ("defaults", "", {"late_after_ms": None}, {"late_after_ms": 30_000}),
        ("defaults", "", {"timeout_ms": 600_000, "late_after_ms": 30_000}, {"timeout_ms": None, "late_after_ms": None}),
        ("defaults", "", {"retries": 0}, {"retries": 3}),
    ]


async def test_nothing_new_is_no_change_and_who_refuses_changes_nothing(world: World) -> None:
    row = await world.scene.defaults.set_defaults(to(timeout_ms=1_000), "ada")
    assert await world.scene.defaults.set_defaults(to(timeout_ms=1_000), "eve", "again") == row

    def refuse(there: DefaultsRow) -> DefaultsRow:
        assert there == row
        raise Refused

    with pytest.raises(Refused):
        await world.scene.defaults.set_defaults(refuse, "eve")
    assert await world.scene.defaults.get_defaults() == row
    assert len(await world.scene.changes()) == 1


async def test_a_default_is_of_jobs_that_say_nothing_and_is_taken_back(world: World) -> None:
    ids = await ready(world, HOURLY, STATED)
    said, unsaid = ids["billing.b"], ids["billing.a"]
    for default, expected in ((None, TIMEOUT_MS), (600_000, 600_000), (1_000, 1_000), (None, TIMEOUT_MS)):
        await world.scene.defaults.set_defaults(to(timeout_ms=default), "ada")
        assert (await world.job(unsaid)).timeout_ms == expected
        assert (await world.job(said)).timeout_ms == 7_000
        revision = (await world.job(unsaid)).revision
        assert revision == 1, "no job is written"


async def test_a_claim_takes_what_is_in_force_then_and_keeps_it(world: World) -> None:
    ids = await ready(world, HOURLY, STATED)
    await world.scene.defaults.set_defaults(to(timeout_ms=600_000), "ada")
    first, other = await begun(world, ids["billing.a"]), await begun(world, ids["billing.b"])
    assert (first.job.timeout_ms, other.job.timeout_ms) == (600_000, 7_000)
    assert (await granted_ms(world, first), await granted_ms(world, other)) == (600_000, 7_000)
    await world.scene.defaults.set_defaults(to(timeout_ms=1_000), "ada")
    assert await granted_ms(world, first) == 600_000


async def test_who_says_no_retries_has_the_clusters_and_who_says_zero_has_none(world: World) -> None:
    refusing, once = Policy(retries=0), Policy(retries=1)
    verbs = [HOURLY, replace(STATED, policy=refusing), Verb("c", schedule="every 1h", policy=once)]
    ids = await ready(world, *verbs)
    executions = [await begun(world, ids[key]) for key in ("billing.a", "billing.b", "billing.c")]

    async def retried(attempt: int) -> list[bool]:
        """Of each, as whoever ends it finds it."""
        found = await world.store.get_unfinished(tuple(each.execution_id for each in executions))
        by_id = {each.execution_id: each._replace(attempt=attempt) for each in found}
        ends = [
            request_of(by_id[each.execution_id], end_of(each, Outcome.FAILED).report, each.claimed_at)
            for each in executions
        ]
        return [end.retry_at is not None for end in ends]

    for default, first, second in (
        (0, [False, False, True], [False, False, False]),
        (2, [True, False, True], [True, False, False]),
        (0, [False, False, True], [False, False, False]),
    ):
        await world.scene.defaults.set_defaults(to(retries=default), "ada")
        assert (await retried(1), await retried(2)) == (first, second)
    assert [(await world.job(job_id)).revision for job_id in ids.values()] == [1, 1, 1], "no job is written"


async def test_a_retry_that_waits_knows_the_default(world: World) -> None:
    ids = await ready(world, HOURLY)
    await world.scene.defaults.set_defaults(to(retries=2), "ada")
    execution = await begun(world, ids["billing.a"])
    assert execution.job.default_retries == 2
    end = end_of(execution, Outcome.FAILED)._replace(retry_at=execution.claimed_at)
    (ended,) = await world.store.end_cron_jobs("c1", [end])
    assert ended.retry_id is not None
    (waiting,) = await world.waiting()
    assert (waiting.attempt, waiting.job.default_retries) == (2, 2)
    await world.scene.defaults.set_defaults(to(retries=0), "ada")
    (waiting,) = await world.waiting()
    assert waiting.job.default_retries == 0


async def test_a_run_by_hand_has_it_as_well(world: World) -> None:
    await ready(world, HOURLY)
    await world.scene.defaults.set_defaults(to(timeout_ms=600_000), "ada")
    await world.control.trigger_job("billing.a", "", "ada", "")
    (result,) = await world.activate("c1", *await world.waiting())
    assert result.execution is not None
    assert await granted_ms(world, result.execution) == 600_000


async def test_a_deployment_leaves_it_unsaid_and_a_verb_may_say_it_or_not_any_more(world: World) -> None:
    await world.scene.defaults.set_defaults(to(timeout_ms=600_000), "ada")
    job_id = (await ready(world, HOURLY))["billing.a"]
    for digest, verb, expected in (
        ("b", HOURLY, 600_000),
        ("c", replace(HOURLY, timeout_ms=7_000), 7_000),
        ("d", HOURLY, 600_000),
    ):
        await ready(world, verb, digest=digest)
        assert (await world.job(job_id)).timeout_ms == expected
    await world.scene.defaults.set_defaults(to(timeout_ms=None), "ada")
    assert (await world.job(job_id)).timeout_ms == TIMEOUT_MS
