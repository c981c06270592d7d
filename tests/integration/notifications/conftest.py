"""A cluster without members, a receiver, and what a test asks PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cronring.controller.store.connect import Connection, connect
from tests.integration.notifications.receiver import Receiver
from tests.support.cluster import Cluster
from tests.support.waiting import wait_until

MODULES = Path(__file__).parent / "modules"


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    """A file in here, named as a verb of modules/noisy.py, makes that fail."""
    folder = tmp_path / "switch"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(database_url: str, tmp_path: Path, switch: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path, {"SWITCH": str(switch)}) as empty:
        yield empty


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "test")
    yield connection
    await connection.close()


async def add(cluster: Cluster, receiver: Receiver, name: str, *options: str) -> Any:
    """A webhook whose path at the receiver is its name."""
    added = await in_thread(cluster, "webhook", "add", name, receiver.url(name), *options)
    receiver.secrets[name] = added["secret"]
    return added


async def in_thread(cluster: Cluster, *arguments: str) -> Any:
    """The CLI's answer, while the receiver in this process goes on answering."""
    return await asyncio.to_thread(cluster.cli, *arguments)


async def completed(database: Connection, job: str, most: int) -> None:
    """Until so many executions of a job have completed."""

    async def enough() -> bool:
        count = await database.fetchval(
            "SELECT count(*) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id "
            "WHERE j.key = $1 AND e.outcome = 'completed'",
            job,
        )
        return bool(count >= most)

    await wait_until(enough, f"{job} doesn't run")


async def known(database: Connection, job: str) -> None:
    """Until there is such a job."""

    async def there() -> bool:
        return bool(await database.fetchval("SELECT count(*) FROM cron_jobs WHERE key = $1", job))

    await wait_until(there, f"there is no {job}")
