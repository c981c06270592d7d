"""A controller that can't finish opening its database leaves no connection behind."""

import asyncio
import time
from functools import partial

import pytest

from cronring.controller import main
from cronring.controller.config import ProcessConfig
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreUnavailable
from cronring.controller.runtime import service
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.readiness import Readiness
from cronring.controller.runtime.refusals import RefusalLog
from cronring.controller.runtime.secret_keys import SecretKeys
from cronring.controller.runtime.service import Stopping
from cronring.controller.runtime.trust import Trust
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from tests.support.waiting import TIMEOUT_S, wait_until

APPLICATION = "cronring opening"


async def test_a_pool_that_has_no_key_is_closed_before_the_next(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL goes away between the first statement and the second, again and again, and hangs at last."""
    hanging, tries = asyncio.Event(), 0

    async def page_key(_: Database) -> bytes:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise StoreUnavailable("reading the key: the connection is gone")
        hanging.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(main, "page_key", page_key)
    monkeypatch.setattr(service, "DATABASE_RETRY_S", 0.01)
    base = _base(database_url)
    opening = asyncio.create_task(service.until_available(partial(main._open_database, base), base.log))
    await asyncio.wait_for(hanging.wait(), TIMEOUT_S)
    await _sessions(database_url, 1)
    opening.cancel()  # somebody asks it to stop
    await asyncio.wait([opening])
    await _sessions(database_url, 0)


def _base(url: str) -> main._Base:
    clock, metrics = SystemClock(), Metrics()
    log = Log(clock, metrics)
    config, stopping = ProcessConfig(url, insecure=True), Stopping(1.0, log)
    trust, keys = Trust(config), SecretKeys(config)
    refusals = RefusalLog(metrics.refused, time.monotonic)
    return main._Base(
        config,
        ClusterSettings(),
        "opening",
        clock,
        metrics,
        log,
        Readiness(),
        stopping,
        trust,
        None,
        None,
        refusals,
        keys,
    )


async def _sessions(url: str, wanted: int) -> None:
    """A session is gone a moment after its client has said good-bye."""
    connection = await connect(url, "test")

    async def so_many() -> bool:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
        return bool(await connection.fetchval(query, APPLICATION) == wanted)

    try:
        await wait_until(so_many, f"there are not {wanted} sessions")
    finally:
        await connection.close()
