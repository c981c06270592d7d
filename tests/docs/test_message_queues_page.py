"""docs/message-queues.md: its SQL runs as the role that it makes, and its Python against what it says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from cronring.client import AsyncClient
from cronring.controller.store.connect import Connection, connect
from tests.docs.reading import blocks
from tests.support.cluster import Cluster

PAGE: Final = "docs/message-queues.md"
ROLE: Final = "reports_consumer"
SQL: Final = [text for language, text in blocks(PAGE) if language == "sql"]
SCHEDULING, BY_CLIENT, WITHOUT_AWAIT, BY_ASYNCPG = [text for language, text in blocks(PAGE) if language == "python"]


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "owner")
    yield connection
    await connection.execute(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")
    await connection.close()


@pytest.fixture
async def consumer(database_url: str, owner: Connection) -> AsyncIterator[Connection]:
    """The page's role, with a table of its own."""
    await owner.execute(SQL[0])
    await owner.execute(f"CREATE TABLE reports (month text); GRANT ALL ON reports TO {ROLE}")
    connection = await connect(database_url, "consumer")
    await connection.execute(f"SET ROLE {ROLE}")
    yield connection
    await connection.close()


async def run(consumer: Connection, text: str, lease: int = 17, message: int = 4711) -> list[Any]:
    """Its statements, one after the other: what the last one but COMMIT gave."""
    given: list[Any] = []
    for statement in text.replace("17", str(lease)).replace("4711", str(message)).split(";"):
        if statement.strip():
            given = await consumer.fetch(statement) or given
    return given


async def test_every_statement_of_the_page_does_what_it_says(consumer: Connection) -> None:
    _, puts, take, extend, done, retry, release, listen = SQL
    put, later, many = puts.strip().split(";\n")
    assert await run(consumer, later)
    assert len((await run(consumer, many.replace("'reports'", "'more'")))[0][0]) == len("ab")
    await run(consumer, put)
    ((lease, message, workspace, payload, delivery),) = await run(consumer, take)
    assert (workspace, payload, delivery) == ("", '{"month": "2026-10"}', 1)
    assert [tuple(row) for row in await run(consumer, extend, lease)] == [(message, "held")]
    first, second = retry.strip().split("\n")
    assert [tuple(row) for row in await run(consumer, first, lease, message)] == [(message, "waits")]
    await run(consumer, put.replace("reports", "others"))
    ((lease, message, *_),) = await run(consumer, take.replace("'reports'", "'others'"))
    assert [tuple(row) for row in await run(consumer, done, lease, message)] == [(message, "done")]
    await run(consumer, put.replace("reports", "others"))
    ((lease, message, *_),) = await run(consumer, take.replace("'reports'", "'others'"))
    assert await run(consumer, release, lease) == [(1,)]
    ((lease, message, *_),) = await run(consumer, take.replace("'reports'", "'others'"))
    assert [tuple(row) for row in await run(consumer, second, lease, message)] == [(message, "dead")]
    await run(consumer, listen)


async def test_its_channel_is_notified_while_somebody_listens(consumer: Connection, owner: Connection) -> None:
    heard: list[object] = []
    listen = SQL[-1].split(";")
    await owner.add_listener("cronring.queues", lambda *told: heard.append(told[-1]))
    await run(consumer, SQL[1])
    await run(consumer, listen[1])
    await run(consumer, SQL[1])
    await owner.fetch("SELECT 1")
    assert heard == ["default/reports"] * 3, "each of three puts; and none before somebody listened"


async def test_its_asyncpg_example_consumes(consumer: Connection, owner: Connection) -> None:
    scope: dict[str, Any] = {}
    exec(compile(BY_ASYNCPG, PAGE, "exec"), scope)
    await run(consumer, SQL[1].split(";")[0])
    assert await scope["consume"](consumer) == 1
    assert [row[0] for row in await owner.fetch("SELECT month FROM reports")] == ['{"month": "2026-10"}']


async def test_its_client_examples_schedule_and_consume(
    consumer: Connection, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope: dict[str, Any] = {}
    exec(compile(SCHEDULING + BY_CLIENT, PAGE, "exec"), scope)
    seen: list[tuple[str, object]] = []

    async def report(workspace: str, value: object) -> None:
        seen.append((workspace, value))

    await run(consumer, SQL[1].split(";")[0])
    with Cluster(database_url, tmp_path) as cluster:
        cluster.start_controller()
        await scope["consume"](cluster.addresses, report)
        async with AsyncClient([cluster.addresses]) as client:
            await scope["schedule"](client)
        await run(consumer, SQL[1].split(";")[0])
        blocking: dict[str, Any] = {}
        exec(compile(WITHOUT_AWAIT, PAGE, "exec"), blocking)
        told: list[tuple[str, object]] = []
        await asyncio.to_thread(blocking["consume"], cluster.addresses, lambda *report: told.append(report))
    assert capsys.readouterr().out.startswith("@reports.ws_7:default ")
    assert seen == told == [("", {"month": "2026-10"})]
