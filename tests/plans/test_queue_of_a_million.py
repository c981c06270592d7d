"""Taking costs what is available: a million messages in 10,000 workspaces, whatever most of these wait for."""

import json
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from cronring import sql
from cronring.controller.store.connect import Connection
from tests.plans.explained import execution, session
from tests.support.databases import PostgresServer

MESSAGES: Final = 1_000_000
LANES: Final = 10_000
QUEUES: Final = 500  # each of which has messages of all of these
WORKSPACES: Final = 200
FILL: Final = f"""
INSERT INTO cron_queue (namespace, queue, workspace, payload, run_at)
SELECT 'default', 'q', 'w' || i % {LANES}, i::text, now() - ({MESSAGES} - i) * interval '1 ms'
FROM generate_series(1, {MESSAGES}) i;
INSERT INTO cron_queue (namespace, queue, workspace, payload)
SELECT 'default', 'other', 'w' || i, i::text FROM generate_series(1, 1000) i;
INSERT INTO cron_queue (namespace, queue, workspace, payload)
SELECT 'many', 'q' || i % {QUEUES}, 'w' || i / {QUEUES}, '1' FROM generate_series(0, {QUEUES} * {WORKSPACES} - 1) i;
VACUUM ANALYZE cron_queue
"""
READY: Final = (
    "TRUNCATE cron_queue_wakes, cron_queue_lanes; INSERT INTO cron_queue_lanes (namespace, queue, workspace, ready_at) "
    f"SELECT 'default', 'q', 'w' || i, now() - ({LANES} - i) * interval '1 ms' "
    f"FROM generate_series(0, {LANES - 1}) i"
)
# What all lanes but one wait for.
OTHERS: Final = {
    "nothing": "SELECT",
    "the end of a lease": "UPDATE cron_queue_lanes SET held = true, lease = id, given = '{1}', "
    "ready_at = now() + interval '1 hour' WHERE workspace <> 'w7777'",
    "a retry": "UPDATE cron_queue_lanes SET held = true, ready_at = now() + interval '1 hour' "
    "WHERE workspace <> 'w7777'",
    "a message": "UPDATE cron_queue_lanes SET ready_at = NULL WHERE workspace <> 'w7777'",
}
TAKE: Final = "SELECT * FROM cron_queue_take('q', 'c1', '30 s', {most})"
ALL: Final = {"namespaces": "NULL", "after_namespace": "''", "after_workspace": "''"}
# A page or two of each index for each message, and its row; the lanes and their indexes; a sequence.
OF_A_TAKE: Final = 80
OF_A_MESSAGE: Final = 6
OF_A_LISTED: Final = 20  # also its lane, its job; of a workspace a way down two indexes, in however many queues


@pytest.fixture(scope="module", params=["postgres18", pytest.param("postgres15", marks=pytest.mark.soak)])
def url(request: pytest.FixtureRequest, postgres_servers: Callable[[str], PostgresServer]) -> Iterator[str]:
    server: PostgresServer = postgres_servers(request.param)
    name = server.create_database()
    for statement in FILL.split(";"):
        server.execute(statement, name)
    yield server.url(name)
    server.drop_database(name)


async def buffers(connection: Connection, statement: str) -> tuple[int, int]:
    """Of a statement that this session has run before: rows, and pages that it looked at. It is rolled back."""
    found = {}
    for _ in range(2):
        transaction = connection.transaction()
        await transaction.start()
        try:
            found = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"))[0]
        finally:
            await transaction.rollback()
    plan = found["Plan"]
    return round(plan["Actual Rows"]), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.parametrize("others", list(OTHERS))
@pytest.mark.parametrize("most", [1, 10, 100])
async def test_a_take_reads_what_it_takes(url: str, others: str, most: int) -> None:
    connection = await session(url)
    try:
        for statement in (READY, OTHERS[others], "VACUUM ANALYZE cron_queue_lanes"):
            await connection.execute(statement)
        rows, pages = await buffers(connection, TAKE.format(most=most))
        assert rows == most
        assert pages <= OF_A_TAKE + OF_A_MESSAGE * most, f"{pages} pages"
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("ListLane", {"workspace": "'w7777'", "after_run_at": "NULL", "after_id": "0"}, 10),
        ("ListDeadLettersOfWorkspace", {"workspace": "'w7777'", "after_id": "0"}, 0),
        ("FindDeadLettersOfWorkspace", {"workspace": "'w7777'", "ids": "NULL"}, 0),
        ("ListWorkspaces", {"namespaces": "NULL", "after_namespace": "'default'", "after_workspace": "'w7777'"}, 10),
        ("ListWorkspaces", {**ALL, "namespace": "'many'", "limit": "1000"}, WORKSPACES),
        ("ListWorkspaces", {**ALL, "namespace": "NULL", "namespaces": "'{many,other}'", "limit": "150"}, 150),
    ],
)
async def test_a_page_reads_what_it_shows(url: str, name: str, arguments: dict[str, str], found: int) -> None:
    """Of a workspace's messages, and of the workspaces that have some."""
    asked = {"namespace": "'default'", "queue": "'q'", "limit": "10", **arguments}
    if name == "ListWorkspaces":
        del asked["queue"]
    connection = await session(url)
    try:
        await connection.execute(f"PREPARE asked AS {sql.statement(name)}")
        rows, pages = await buffers(connection, execution("asked", name, asked))
        assert rows == found
        assert pages <= OF_A_TAKE + OF_A_LISTED * found, f"{pages} pages"
    finally:
        await connection.close()
