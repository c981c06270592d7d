"""A real controller, and a client of it. Each test has a queue of its own."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from cronring.client import AsyncClient
from cronring.controller.store.connect import Connection, connect
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer


@pytest.fixture(scope="module")
def cluster(
    postgres_servers: Callable[[str], PostgresServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    server = postgres_servers("postgres18")
    name = server.create_database()
    folder: Path = tmp_path_factory.mktemp("cluster")
    with Cluster(server.url(name), folder) as cluster:
        cluster.start_controller()
        yield cluster
    server.drop_database(name)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncClient]:
    async with AsyncClient([cluster.addresses]) as client:
        yield client


@pytest.fixture
async def database(cluster: Cluster) -> AsyncIterator[Connection]:
    connection = await connect(cluster.database_url, "cronring test")
    yield connection
    await connection.close()


@pytest.fixture
def queue() -> str:
    return f"q{uuid.uuid4().hex[:8]}"
