"""All of one workspace: exported to the last page, and deleted to the last message, or told of as left."""

import json
from collections import defaultdict

import pytest

from cronring.client import AsyncClient
from cronring.client.errors import Conflict
from cronring.controller.store.connect import Connection
from tests.integration.queues.test_commands import run
from tests.support.cluster import Cluster

PAGES = 1_010  # rows: more than any page has
HISTORY = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline, output)
SELECT j.id, j.deployment_id, t, t, t, t, t, 'completed', 'c1', '', t, 'out ' || i
FROM cron_jobs j, generate_series(1, $2) i, LATERAL (SELECT now() - i * interval '1 ms' AS t) t WHERE j.key = $1
"""
# Of a workspace, by kind of line: what tells each row from the others.
KEPT = {
    "job": "SELECT key FROM cron_jobs WHERE labels ->> 'workspace' = $1 AND removed_at IS NULL",
    "activation": "SELECT a.id::text FROM cron_activations a JOIN cron_jobs j ON j.id = a.job_id "
    "WHERE j.labels ->> 'workspace' = $1",
    "execution": "SELECT concat_ws('|', e.id, coalesce(e.output, '')) FROM cron_executions e "
    "JOIN cron_jobs j ON j.id = e.job_id WHERE j.labels ->> 'workspace' = $1",
    "message": "SELECT concat_ws('|', queue, id, payload) FROM cron_queue "
    "WHERE namespace = 'default' AND workspace = $1",
    "dead_letter": "SELECT concat_ws('|', queue, id, error_message) FROM cron_dead_letters "
    "WHERE namespace = 'default' AND workspace = $1",
}
TOLD = {
    "job": ("key",), "activation": ("id",), "execution": ("id", "output"), "message": ("queue", "id", "payload"),
    "dead_letter": ("queue", "id", "error_message"),
}  # fmt: skip


async def fill(client: AsyncClient, database: Connection, workspace: str) -> None:
    """Jobs, a run that waits, history of a job that is there and of a deleted one, messages in two queues, letters."""
    for name in ("kept", "gone"):
        made = await client.schedule(workspace, name=name, every="1h", workspace=workspace, payload={"of": name})
        await client.jobs.pause(made.key)
        await database.execute(HISTORY, made.key, PAGES if name == "kept" else 5)
    await client.jobs.delete(f"@{workspace}.{workspace}:gone")
    await client.jobs.trigger(f"@{workspace}.{workspace}:kept")
    await client.jobs.pause(f"@{workspace}.{workspace}:kept")
    put = "SELECT cron_queue_put_many($1, array_fill('7'::json, ARRAY[$3::int]), array_fill($2::text, ARRAY[$3::int]))"
    for queue, count in ((workspace, PAGES), (f"{workspace}b", 3)):
        await database.fetch(put, queue, workspace, count)
    await database.fetch(put, workspace, "other", 2)
    await database.execute(
        "INSERT INTO cron_dead_letters SELECT nextval('cron_queue_id_seq'), 'default', $1, w, NULL, NULL, NULL, 1, "
        "'1', now(), now(), 5, 'failed', '', 'no' FROM unnest(ARRAY[$1, 'other']) w, generate_series(1, $2)",
        workspace, PAGES,
    )  # fmt: skip


async def test_an_export_is_what_the_database_has_of_it(
    cluster: Cluster, client: AsyncClient, database: Connection, queue: str
) -> None:
    await fill(client, database, queue)
    await fill(client, database, f"{queue}_2")
    code, text = await run(cluster, "export", queue, group="workspaces")
    assert code == 0, text[-1_000:]
    *lines, summary = text.splitlines()
    exported = defaultdict(list)
    for line in map(json.loads, lines):
        exported[line["kind"]].append("|".join(str(line[name]) for name in TOLD[line["kind"]]))
    for kind, statement in KEPT.items():
        assert sorted(exported[kind]) == sorted(row[0] for row in await database.fetch(statement, queue)), kind
    assert summary.startswith("job 1, ")
    assert [len(exported[kind]) >= PAGES for kind in ("execution", "message", "dead_letter")] == [True] * 3
    code, text = await run(cluster, "export", f"{queue}_3", group="workspaces")
    assert (code, "there is nothing of" in text) == (1, True)


async def test_what_its_consumer_has_locked_is_left_and_said_to_be(
    cluster: Cluster, client: AsyncClient, database: Connection, queue: str
) -> None:
    await client.schedule(queue, every="1h", workspace=queue)
    for _ in range(2):
        await client.queues.put(queue, 1, queue)
    lease = await client.queues.take(queue, "c1", most=1)
    consuming = database.transaction()
    await consuming.start()
    await database.fetch("SELECT cron_queue_done($1, $2)", lease.number, [lease.messages[0].id])
    deleted = await client.workspaces.delete(queue)
    assert (deleted.done, deleted.deleted, deleted.messages) == (False, 1, 1)
    assert (deleted.left.jobs, deleted.left.messages) == (0, 1)
    code, text = await run(cluster, "delete", queue, "--yes", group="workspaces")
    assert code == 1
    assert "error: 1 messages left: somebody made them meanwhile, or has them locked" in text
    await consuming.rollback()
    assert [each.id for each in await client.queues.messages(queue)] == [lease.messages[0].id]
    assert await run(cluster, "delete", queue, "--yes", group="workspaces") == (
        0,
        f"{queue}: 0 jobs deleted, and 1 messages\n",
    )
    assert await client.queues.messages(queue) == []


async def test_jobs_that_a_newer_release_wrote_are_said_to_be_in_the_way(
    client: AsyncClient, database: Connection, queue: str
) -> None:
    """And are not asked of again and again."""
    job = await client.schedule(queue, every="1h", workspace=queue)
    schedule = await database.fetchval("SELECT schedule FROM cron_jobs WHERE key = $1", job.key)
    change = "UPDATE cron_jobs SET schedule = $2 WHERE key = $1"
    await database.execute(change, job.key, "sunset 30m before")
    with pytest.raises(Conflict, match="which this release doesn't read"):
        await client.workspaces.delete(queue)
    await database.execute(change, job.key, schedule)
    deleted = await client.workspaces.delete(queue)
    assert (deleted.done, deleted.deleted) == (True, 1)


async def test_large_messages_are_listed_to_the_last(client: AsyncClient, database: Connection, queue: str) -> None:
    """A page that has no room for all that was asked for is not the last one."""
    put = "SELECT cron_queue_put_many($1, array_fill(to_json(repeat('x', 65000)), ARRAY[600]))"
    await database.fetch(put, queue)
    assert len(await client.queues.messages(queue, limit=None)) == 600
    seen = 0
    while (lease := await client.queues.take(queue, "c1", most=1_000)).messages:
        seen += len(lease.messages)
        await client.queues.retry(lease, [each.id for each in lease.messages], "no", last=True)
    assert seen == 600
    assert len(await client.queues.dead_letters(queue, limit=None)) == 600
