"""The embedded PostgreSQL of `cronring dev`: it ends with whoever wanted it, and comes back with its data."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from cronring.cli.dev import keeper
from cronring.cli.dev.database import EmbeddedDatabase, data_folder
from cronring.cli.failures import Failure
from tests.support.looking import look


def server_pid(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def lives(pid: int) -> bool:
    """Zombies don't: whether somebody reaps an orphan is the machine's business."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def remember(url: str, value: int | None = None) -> int:
    connection = await look(url)
    try:
        if value is not None:
            await connection.execute("CREATE TABLE memory AS SELECT $1::int AS value", value)
        return int(await connection.fetchval("SELECT value FROM memory"))
    finally:
        await connection.close()


async def test_temporary_data_goes_with_the_server() -> None:
    folder, temporary = data_folder(None)
    assert temporary
    database = await EmbeddedDatabase.start(folder, remove=True)
    pid = server_pid(folder)
    assert await remember(database.url, 7) == 7
    await database.stop(keep_folder=False, grace_s=5)
    assert not lives(pid)
    assert not folder.exists()


async def test_a_folder_that_explains_a_failure_stays(folder: Path) -> None:
    database = await EmbeddedDatabase.start(folder, remove=True)
    await database.stop(keep_folder=True, grace_s=5)
    assert (folder / "postgres").exists()


async def test_kept_data_survives_the_death_of_keeper_and_server(folder: Path) -> None:
    first = await EmbeddedDatabase.start(folder, remove=False)
    await remember(first.url, 7)
    server = psutil.Process(server_pid(folder))
    first._keeper.kill()
    os.kill(server.pid, signal.SIGKILL)
    await first._keeper.wait()
    while lives(server.pid):
        await asyncio.sleep(0.01)
    second = await EmbeddedDatabase.start(folder, remove=False)
    assert await remember(second.url) == 7
    await second.stop(keep_folder=False, grace_s=5)


async def test_a_server_whose_keeper_was_killed_is_taken_over(folder: Path) -> None:
    first = await EmbeddedDatabase.start(folder, remove=False)
    await remember(first.url, 7)
    server = psutil.Process(server_pid(folder))
    first._keeper.kill()
    await first._keeper.wait()
    second = await EmbeddedDatabase.start(folder, remove=False)
    assert await remember(second.url) == 7
    await second.stop(keep_folder=False, grace_s=5)
    assert not lives(server.pid)


async def test_stop_ends_a_server_whose_keeper_was_killed(folder: Path) -> None:
    database = await EmbeddedDatabase.start(folder, remove=True)
    server = psutil.Process(server_pid(folder))
    database._keeper.kill()
    await database.stop(keep_folder=False, grace_s=5)
    while lives(server.pid):
        await asyncio.sleep(0.01)  # until the test's own timeout
    assert not folder.exists()  # noqa: ASYNC240


async def test_one_folder_is_for_one_dev(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = await EmbeddedDatabase.start(folder, remove=False)
    monkeypatch.setattr(keeper, "LOCK_WAIT_S", 0.1)
    with pytest.raises(keeper.FolderBusyError, match="in use by another"):
        keeper.lock(folder)
    await database.stop(keep_folder=False, grace_s=5)
    keeper.lock(folder).close()


def test_a_folder_that_cannot_be_made_is_told(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(Failure, match="--data"):
        data_folder(str(folder / "file" / "data"))
