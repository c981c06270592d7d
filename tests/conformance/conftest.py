"""One suite, three stores."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from tests.conformance.harness import MemoryScene, PostgresScene, World
from tests.support.databases import PostgresServer

MINUTE_S: Final = 60
ENOUGH_S: Final = 6  # a test takes a tenth of a second on a quiet machine


async def away_from_a_tick() -> None:
    """Most jobs here are due each minute, and what is told of them is of one minute: time passes in PostgreSQL."""
    left_s = MINUTE_S - time.time() % MINUTE_S
    if left_s < ENOUGH_S:
        await asyncio.sleep(left_s)


@pytest.fixture(params=["memory", "postgres18", "postgres15"])
async def world(
    request: pytest.FixtureRequest, postgres_servers: Callable[[str], PostgresServer]
) -> AsyncIterator[World]:
    if request.param == "memory":
        yield World(MemoryScene())
        return
    server = postgres_servers(request.param)
    name = server.create_database()
    try:
        database = await Database.open(server.url(name), "cronring test")
        connection = await connect(server.url(name), "cronring test scene")
        await away_from_a_tick()
        yield World(PostgresScene(database, connection))
        await connection.close()
        await database.close()
    finally:
        server.drop_database(name)
