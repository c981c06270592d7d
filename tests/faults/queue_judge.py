"""Did each tick of a queue's job put one message there? Reads the database, and what a trigger there has noted."""

import asyncio
import contextlib
import threading
from collections import Counter
from typing import Any, Final

import asyncpg

from cronring.client import AsyncClient
from tests.faults.stage import Stage
from tests.support.looking import look

CONSUMED: Final = (200, 1_200)  # ms that a message is with its consumer, at least and at most
# In the transaction of the insertion: what is not committed is not noted.
NOTES: Final = """
CREATE TABLE noted (execution_id bigint, job_id bigint, tick timestamptz, attempt integer);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO noted VALUES (new.execution_id, new.job_id, new.tick, new.attempt);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT ON cron_queue FOR EACH ROW EXECUTE FUNCTION note();
"""
DONE: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM cron_queue
    WHERE ended_at IS NULL AND enqueued_at < now() - (200 + id * 37 % 1000) * interval '1 millisecond'
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM cron_queue WHERE NOT awaited AND id IN (SELECT id FROM due)
)
UPDATE cron_queue SET ended_at = now(), outcome = CASE WHEN id % 5 = 0 THEN 'failed' ELSE 'completed' END
WHERE awaited AND id IN (SELECT id FROM due)
"""
EXECUTIONS: Final = """
SELECT e.id, j.key, e.tick, e.attempt, e.outcome, e.claimed_at < now() - interval '10 seconds' AS old,
       (SELECT count(*) FROM noted n WHERE n.execution_id = e.id) AS messages
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id WHERE j.module LIKE '@%'
"""
STRANGE: Final = """
SELECT n.execution_id FROM noted n LEFT JOIN cron_executions e ON e.id = n.execution_id WHERE e.id IS NULL
UNION ALL
SELECT min(execution_id) FROM noted GROUP BY job_id, tick, attempt HAVING count(*) > 1
UNION ALL
SELECT m.execution_id FROM cron_queue m JOIN cron_executions e ON e.id = m.execution_id
WHERE m.awaited AND e.outcome IS NOT NULL
"""


class Consumers:
    """Use it in a `with`: it ends what is in the queues, whatever becomes of the database meanwhile."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._consume()), daemon=True)

    def __enter__(self) -> "Consumers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(timeout=30)

    async def _consume(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                connection = await look(self._url)
                try:
                    while not self._stopping.is_set():
                        await connection.execute(DONE, timeout=5)
                        await asyncio.sleep(0.05)
                finally:
                    await connection.close(timeout=5)
            await asyncio.sleep(0.1)


def note_messages(stage: Stage) -> None:
    """From now on."""
    asyncio.run(_execute(stage.cluster.database_url, NOTES))


def judge_messages(stage: Stage, settle_s: float = 40.0) -> None:
    """When everything that the row did is over."""
    stage.wait_until("nothing is stuck", lambda: not asyncio.run(_found(stage))["stuck"], settle_s)
    found = asyncio.run(_found(stage))
    stage.measured["messages"] = f"{found.pop('messages'):,}"
    stage.measured["ends of consumers"] = f"{found.pop('ends'):,}"
    for kind, guilty in found.items():
        stage.expect(not guilty, f"{kind} ({len(guilty)}): {guilty[:5]}")
    audit = asyncio.run(_audit(stage))
    stage.expect(audit.clean, f"the audit finds {audit.findings[:5]}")


async def _found(stage: Stage) -> dict[str, Any]:
    connection = await look(stage.cluster.database_url)
    try:
        executions = await connection.fetch(EXECUTIONS)
        strange = [record[0] for record in await connection.fetch(STRANGE)]
    finally:
        await connection.close()
    counted = Counter(record["messages"] for record in executions)
    return {
        "messages": sum(count * number for count, number in counted.items()),
        "ends": sum(record["outcome"] == "failed" for record in executions),
        "not one message each": [tuple(record) for record in executions if record["messages"] != 1],
        "messages of nothing, twice, or left behind": strange,
        "stuck": [tuple(record) for record in executions if record["outcome"] is None and record["old"]],
    }


async def _audit(stage: Stage) -> Any:
    async with AsyncClient([each.grpc for each in stage.cluster.controllers if each.alive()]) as client:
        return await client.ledger.audit(thorough=True)


async def _execute(database_url: str, statements: str) -> None:
    connection = await look(database_url)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()
