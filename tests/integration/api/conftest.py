"""Two namespaces with everything in them: `billing`, and `hush`, of which a caller of the first must hear nothing."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import grpc
import pytest

from cronring.controller.ports.templates import TemplateValues
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from cronring.schema.identity import Role, RoleGrant
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import TIMEOUT_MS, PostgresScene, World
from tests.support.callers import NamedCallers, judge_of
from tests.support.guarded import guarded
from tests.support.rested import Rested, rested

CALLERS = {
    "viewer": (RoleGrant(Role.VIEWER, "billing"),),
    "outputs": (RoleGrant(Role.OUTPUTS_VIEWER, "billing"),),
    "operator": (RoleGrant(Role.OPERATOR, "billing"),),
    "deployer": (RoleGrant(Role.DEPLOYER, "billing"),),
    "admin": (RoleGrant(Role.ADMIN, "billing"),),
    "elsewhere": (RoleGrant(Role.ADMIN, "other"),),
    "both": (RoleGrant(Role.OPERATOR, "billing"), RoleGrant(Role.VIEWER, "hush")),
    "root": (RoleGrant(Role.ADMIN),),
}


class Scene(NamedTuple):
    """`billing` and `hush`: ids of an execution that has ended, and of one that runs."""

    database: Database
    world: World
    billing: tuple[int, int]
    hush: tuple[int, int]
    deployment: str
    hidden_deployment: str


class Filled(NamedTuple):
    """The scene, behind a door: `callers` are who may call on `channel`."""

    channel: grpc.aio.Channel
    callers: NamedCallers
    database: Database
    world: World
    billing: tuple[int, int]
    hush: tuple[int, int]
    deployment: str
    hidden_deployment: str


async def _fill(world: World, connection: Any, namespace: str, word: str) -> tuple[tuple[int, int], str]:
    """Every name but the namespace begins with the word."""
    verbs = (
        Verb(f"{word}a", schedule="every 1h"),
        Verb(f"{word}b", schedule="every 1h", policy=Policy(after="")),
        Verb(f"{word}c", schedule="every 1h"),
    )
    module = Module(f"{word}m", verbs, namespace)
    deployed = await world.store.create_deployment(
        module, ("a" if word == "x" else "b") * 64, 1, TIMEOUT_MS, True, by=f"{word}ann"
    )
    await world.runner(f"{word}r", deployed.key)
    jobs = [await world.due(job) for job in sorted(deployed.jobs)]
    claimed = await world.claim("c1", *jobs[:2], runner_id=f"{word}r")
    ids = tuple(result.execution_id for result in claimed if result.execution_id is not None)
    ended, running = await world.store.get_unfinished(ids)
    await world.end(ended, Outcome.COMPLETED)
    await connection.execute(
        "UPDATE cron_executions SET output = $2, error_message = $2, stack = $2, payload = $2 WHERE id = $1",
        ended.execution_id, f"{word} wrote this",
    )  # fmt: skip
    spec = JobSpec(payload='"what is nobody\'s business"', labels={f"{word}label": "1"})
    await world.templates.set_template(namespace, f"{word}t", TemplateValues(f"{word}d", spec), None, f"{word}ann")
    await connection.execute(
        "INSERT INTO cron_sets (namespace, name, revision, applied_at, applied_by) VALUES ($1, $2, 1, now(), $3)",
        namespace, f"{word}s", f"{word}ann",
    )  # fmt: skip
    await world.limits.set_limit(namespace, f"{word}m", 9, f"{word}ann")
    await world.control.pause_job(jobs[2].key, f"{word}ann", f"{word}why")
    await connection.execute(
        "UPDATE cron_jobs SET labels = jsonb_build_object('workspace', $2::text) WHERE id = $1",
        jobs[2].job_id, f"{word}workspace",
    )  # fmt: skip
    webhook = await connection.fetchval(
        "INSERT INTO cron_webhooks"
        " (name, origin, encrypted, events, reasons, namespace, module, job, labels, created_by)"
        " VALUES ($1, 'http://127.0.0.1:1', 'cronring1$plain$$', '{}', '{}', '', '', '', '{}', '') RETURNING id",
        f"{word}w",
    )
    await connection.execute(
        "INSERT INTO cron_deliveries (webhook_id, event_id, event, job, body, next_try_at)"
        " VALUES ($1, $2, 'completed', $3, '{}', now())",
        webhook, f"{word}e", jobs[0].key,
    )  # fmt: skip
    return (ended.execution_id, running.execution_id), deployed.key


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    database = await Database.open(database_url, "cronring test", controller_id="c1")
    connection = await connect(database_url, "cronring test scene")
    world = World(PostgresScene(database, connection))
    await world.controller("c1")
    billing, deployment = await _fill(world, connection, "billing", "x")
    hush, hidden = await _fill(world, connection, "hush", "hush_")
    yield Scene(database, world, billing, hush, deployment, hidden)
    await connection.close()
    await database.close()


@pytest.fixture
async def rest(scene: Scene) -> AsyncIterator[Rested]:
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as found:
        yield found


@pytest.fixture
async def filled(scene: Scene) -> AsyncIterator[Filled]:
    callers = NamedCallers(**CALLERS)
    async with guarded(scene.database, judge_of(callers)) as channel:
        yield Filled(channel, callers, *scene)
