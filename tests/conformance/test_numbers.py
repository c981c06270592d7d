"""Executions are numbered by job, in order of their claims, whatever made them run."""

from cronring.controller.core.model import ActivationRequest
from tests.conformance.harness import GRACE_MS, World, end_of


async def test_executions_of_a_job_are_numbered_from_one(world: World) -> None:
    first, other = await world.running("c1", "a", "b")
    await world.store.end_cron_jobs("c1", [end_of(first), end_of(other)])
    activation = await world.control.trigger_job("billing.a", "somebody", None)
    request = ActivationRequest(
        activation.activation_id, first.job.job_id, activation.tick, "r1", first.deployment, None
    )
    _, (started,) = await world.store.start_activations("c1", [request], GRACE_MS)
    assert started.execution is not None
    await world.store.end_cron_jobs("c1", [end_of(started.execution)])
    claimed = await world.claim("c1", await world.due(await world.job(first.job.job_id), seconds_ago=0))
    assert claimed[0].updated
    numbers = [(row.job_id, row.number) for row in await world.scene.executions()]
    assert sorted(numbers) == [(1, 1), (1, 2), (1, 3), (2, 1)]
