"""A call that fails says whether what it was to change is changed: held against PostgreSQL, cut off at each point."""

import asyncio
from pathlib import Path

import pytest

from cronring.controller.errors import NotFound, StoreError, StoreUnavailable
from cronring.controller.ports import fates
from cronring.controller.ports.webhooks import NewWebhook
from cronring.controller.store.execution_control import PostgresExecutionControl
from cronring.controller.store.limits import PostgresLimits
from cronring.controller.store.pool import Database
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.protos.problems import Fate
from tests.support.cutting import Direction, Streams, cutting
from tests.support.databases import PostgresServer
from tests.support.waiting import TIMEOUT_S

WEBHOOK = NewWebhook("pager", "http://127.0.0.1:1", "cronring1$plain$$", (), (), "", "", "", {}, "ann")


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("kind", ["transaction", "statement"])
async def test_what_is_said_is_so(postgres: PostgresServer, database_url: str, direction: Direction, kind: str) -> None:
    direct = await Database.open(database_url, "cronring test", connections=1)
    name = database_url.partition("?")[0].rpartition("/")[2]
    after, told = 1, set()
    try:
        while True:
            if kind == "statement":
                await PostgresWebhooks(direct).add(WEBHOOK)
            async with cutting(lambda: _connect(postgres), direction, after, armed=False) as way:
                behind = await Database.open(f"postgresql://postgres@127.0.0.1:{way.port}/{name}", "cut", connections=1)
                way.armed = True
                fate = await _fate(behind, kind)
                await behind.close()
                cut, passed = way.has_cut, way.passed
            await _settled(direct)
            is_done = await _is_done(direct, kind)
            told.add(fate)
            assert fate is not Fate.DONE or is_done, f"{after} bytes {direction.value}: said to be done"
            assert fate is not Fate.NOT_DONE or not is_done, f"{after} bytes {direction.value}: said not to be done"
            await _undone(direct, kind)
            if not cut:
                break
            after += max(1, passed // 60)
    finally:
        await direct.close()
    assert told == {Fate.DONE, Fate.UNKNOWN} if kind == "statement" else set(Fate)


async def test_a_refusal_changes_nothing(database_url: str) -> None:
    database = await Database.open(database_url, "cronring test", connections=1)
    try:
        with fates.call() as call, pytest.raises(StoreError):
            await PostgresLimits(database).set_limit("default", "billing", -1, "ann")
        assert call.fate is Fate.NOT_DONE
        with fates.call() as call, pytest.raises(NotFound):
            await PostgresLimits(database).remove_limit("default", "billing", "ann")
        assert call.fate is Fate.NOT_DONE
        with fates.call() as call, pytest.raises(NotFound):
            await PostgresWebhooks(database).remove("nobody's")
        assert call.fate is Fate.NOT_DONE, "what is said of it is an answer, and none was lost"
        with fates.call() as call:
            assert not await PostgresExecutionControl(database).cancel_execution(1, "ann", "")
        assert call.fate is Fate.NOT_DONE
        with fates.call() as call:
            await PostgresLimits(database).list_limits()
        assert call.fate is Fate.NOT_DONE, "what only reads is none"
    finally:
        await database.close()


async def _connect(postgres: PostgresServer) -> Streams:
    return await asyncio.open_unix_connection(Path(postgres.sockets) / ".s.PGSQL.5432")


async def _fate(database: Database, kind: str) -> Fate:
    with fates.call() as call:
        try:
            if kind == "transaction":
                await PostgresLimits(database).set_limit("default", "billing", 3, "ann")
            else:
                await PostgresWebhooks(database).remove("pager")
        except StoreUnavailable:
            pass
        return call.fate


async def _settled(direct: Database) -> None:
    """Until the server has noticed that the connection is gone: what it was doing is done then, or rolled back."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            async with direct.transaction("looking") as transaction:
                busy = await transaction._connection.fetch(
                    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'cut'"
                )
            if not busy:
                return
            await asyncio.sleep(0.02)


async def _is_done(direct: Database, kind: str) -> bool:
    if kind == "transaction":
        return bool(await PostgresLimits(direct).list_limits())
    return not await PostgresWebhooks(direct).list()


async def _undone(direct: Database, kind: str) -> None:
    if kind == "transaction" and await _is_done(direct, kind):
        await PostgresLimits(direct).remove_limit("default", "billing", "ann")
    if kind == "statement" and not await _is_done(direct, kind):
        await PostgresWebhooks(direct).remove("pager")
