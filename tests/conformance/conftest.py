"""One suite, three stores."""

from collections.abc import AsyncIterator, Callable

import pytest

from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from tests.conformance.harness import MemoryScene, PostgresScene, World
from tests.support.databases import PostgresServer


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
        yield World(PostgresScene(database, connection))
        await connection.close()
        await database.close()
    finally:
        server.drop_database(name)
