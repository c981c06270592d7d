"""A call that fails says whether what it was to change is changed: held against PostgreSQL, cut off at each point."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from cronring.controller.errors import Conflict, NotFound, StoreError, StoreUnavailable
from cronring.controller.ports import fates
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.execution_control import PostgresExecutionControl
from cronring.controller.store.limits import PostgresLimits
from cronring.controller.store.pool import Database
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.protos.problems import Fate
from cronring.schema.job import JobSpec
from tests.support.cutting import Direction, Streams, cutting
from tests.support.databases import PostgresServer
from tests.support.waiting import TIMEOUT_S


@pytest.mark.parametrize("direction", Direction)
async def test_what_is_said_is_so(postgres: PostgresServer, database_url: str, direction: Direction) -> None:
    direct = await Database.open(database_url, "cronring test", connections=1)
    name = database_url.partition("?")[0].rpartition("/")[2]
    told = set()

    async def cut_after(after: int) -> tuple[bool, int]:
        """Whether it was, and the bytes that have passed."""
        async with cutting(lambda: _connect(postgres), direction, after, armed=False) as way:
            behind = await Database.open(f"postgresql://postgres@127.0.0.1:{way.port}/{name}", "cut", connections=1)
            way.armed = True
            fate = await _fate(behind)
            await behind.close()
            cut, passed = way.has_cut, way.passed
        await _settled(direct)
        is_done = await _is_done(direct)
        assert await _recorded(direct) == is_done, "a change and its row of the audit log are one"
        told.add(fate)
        assert fate is not Fate.DONE or is_done, f"{after} bytes {direction.value}: said to be done"
        assert fate is not Fate.NOT_DONE or not is_done, f"{after} bytes {direction.value}: said not to be done"
        await _undone(direct)
        return cut, passed

    try:
        after, (cut, passed) = 1, await cut_after(1)
        while cut:
            after += max(1, passed // 40)
            cut, passed = await cut_after(after)
        for before_end in range(4, 25, 4):  # in the COMMIT, which is short, and behind it
            await cut_after(passed - before_end)
    finally:
        await direct.close()
    assert told == set(Fate)


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
        for refused in (
            PostgresControl(database).delete_job("nobody's", "ann"),
            PostgresControl(database).update_job("nobody's", JobChange.to(schedule="every 1h"), "ann"),
            PostgresControl(database).make_job(NewJob("default", "no", "no", "no", JobSpec("every 1h")), "ann"),
        ):
            with fates.call() as call, pytest.raises((NotFound, Conflict)):
                await refused
            assert call.fate is Fate.NOT_DONE, "a single job is a bulk of one, whose refusals are answers"
        jobs = [NewJob("default", "no", "no", name, JobSpec("every 1h")) for name in ("a", "b")]
        for bulk in (
            PostgresControl(database).create_jobs(jobs, "ann"),
            PostgresControl(database).update_jobs({"nobody's": JobChange.to(schedule="every 1h")}, "ann", whole=True),
            PostgresControl(database).delete_jobs(["nobody's"], "ann", dry_run=True),
        ):
            with fates.call() as call:
                assert all(isinstance(each, Exception) for each in await bulk)
            assert call.fate is Fate.NOT_DONE, "of a bulk in which each is refused, nothing was done"
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


async def _fate(database: Database) -> Fate:
    with fates.call() as call:
        with contextlib.suppress(StoreUnavailable):
            await PostgresLimits(database).set_limit("default", "billing", 3, "ann")
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


async def _is_done(direct: Database) -> bool:
    return bool(await PostgresLimits(direct).list_limits())


async def _recorded(direct: Database) -> bool:
    async with direct.transaction("looking") as transaction:
        rows = await transaction._connection.fetch("SELECT before FROM cron_audit_log ORDER BY id DESC LIMIT 1")
    return bool(rows) and rows[0][0] is None


async def _undone(direct: Database) -> None:
    if await _is_done(direct):
        await PostgresLimits(direct).remove_limit("default", "billing", "ann")
