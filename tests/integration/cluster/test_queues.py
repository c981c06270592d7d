"""Jobs whose target is a queue, in real processes: no runner is there, and consumers speak by SQL alone."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

from cronring.client import AsyncClient
from cronring.client.model import Job
from tests.integration.cluster.trial import audit_when_settled
from tests.support.cluster import Cluster
from tests.support.looking import look

TIMEOUT_S = 60
REFUSES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.workspace = 'bad' THEN RAISE EXCEPTION 'no room for %', new.workspace; END IF;
    RETURN new;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON cron_queue FOR EACH ROW EXECUTE FUNCTION refuse();
"""
END = "UPDATE cron_queue SET ended_at = now(), outcome = 'completed', output = '{\"rows\": 3}' WHERE id = $1"
ONE_EACH = """
SELECT count(*) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
WHERE e.outcome = 'completed' AND j.policy = ''
  AND (SELECT count(*) FROM cron_queue m WHERE m.execution_id = e.id) <> 1
"""

Story = Callable[[AsyncClient, "asyncpg.Connection[asyncpg.Record]"], Awaitable[None]]


def play(cluster: Cluster, story: Story) -> None:
    async def played() -> None:
        connection = await look(cluster.database_url)
        async with AsyncClient([each.grpc for each in cluster.controllers]) as client:
            await story(client, connection)
        await connection.close()

    asyncio.run(played())


async def until(what: str, found: Callable[[], Awaitable[Any]]) -> Any:
    ends = time.monotonic() + TIMEOUT_S
    while not (answer := await found()):
        assert time.monotonic() < ends, f"{what}: not within {TIMEOUT_S} s"
        await asyncio.sleep(0.1)  # a poll with a deadline
    return answer


def test_ticks_become_messages_whoever_dies(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_controller()
    dead = cluster.start_controller()

    async def story(client: AsyncClient, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        made = [
            await client.schedule("mail", every="1s", payload=number, workspace=f"w{number}") for number in range(4)
        ]
        assert [job.key for job in made] == [f"@mail.w{number}:default" for number in range(4)]
        again = await client.schedule("mail", every="1s", payload=0, workspace="w0")
        changed = await client.schedule("mail", every="1s", payload="new", workspace="w0")
        assert (again.unchanged, again.updated, changed.unchanged, changed.updated) == (True, False, False, True)

        async def enough() -> bool:
            counted = await connection.fetch("SELECT workspace, count(*) FROM cron_queue GROUP BY 1")
            return len(counted) == 4 and all(count >= 3 for _, count in counted)

        await until("messages of each", enough)
        dead.kill()
        before = await connection.fetchval("SELECT max(tick) FROM cron_queue")

        async def later() -> bool:
            counted = await connection.fetch("SELECT workspace FROM cron_queue WHERE tick > $1 GROUP BY 1", before)
            return len(counted) == 4

        await until("each goes on", later)
        assert await connection.fetchval(ONE_EACH) == 0
        payloads = await connection.fetch("SELECT DISTINCT payload FROM cron_queue WHERE workspace = 'w0' ORDER BY 1")
        assert payloads[0][0] == '"new"'

    play(cluster, story)
    assert audit_when_settled(cluster).clean


def test_awaited_ticks_end_by_consumers_timeouts_cancels_and_refusals(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_controller()

    async def story(client: AsyncClient, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        await connection.execute(REFUSES)

        async def manual(workspace: str, timeout_ms: int | None = None, **policy: int | str) -> Job:
            job = await client.schedule(
                "mail", manual=True, workspace=workspace, awaited=workspace != "bad", timeout_ms=timeout_ms,
                policy=policy,
            )  # fmt: skip
            await client.jobs.trigger(job.key)
            return job

        async def message(job: Job) -> int:
            return int(
                await until(
                    f"a message of {job.key}",
                    lambda: connection.fetchval("SELECT id FROM cron_queue WHERE job_id = $1", job.id),
                )
            )

        async def outcome(job: Job) -> str:
            async def ended() -> str:
                (found,) = await client.executions.list(job=job.key, limit=1)
                return found.outcome or ""

            return str(await until(f"an end of {job.key}", ended))

        done, late = await manual("done"), await manual("late", 1_000)
        cancelled, refused = await manual("cancelled"), await manual("bad")
        await connection.execute(END, await message(done))
        assert await outcome(done) == "completed"
        assert await outcome(late) == "timed_out"
        await message(cancelled)
        (running,) = await client.executions.list(job=cancelled.key, limit=1)
        await client.executions.cancel(running.id)
        assert await outcome(cancelled) == "cancelled"
        assert await outcome(refused) == "failed"
        (told,) = await client.executions.list(job=refused.key, limit=1)
        assert (told.error_type, told.error_message) == ("EnqueueRefused", "no room for bad")
        assert await connection.fetchval("SELECT count(*) FROM cron_queue") == 0

    play(cluster, story)
