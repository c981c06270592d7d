"""A real controller, and a client of it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cronring.client import Client
from tests.support.cluster import Cluster


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as cluster:
        cluster.start_controller()
        yield cluster


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client([cluster.addresses]) as client:
        yield client
