"""What `make bench-limits` measures happens: rows really change, messages really go out and come back."""

from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from bench.limits_disk import fdatasync_us
from bench.limits_grpc import Exchange, answering, dispatch, reports
from bench.limits_rows import Rows, Variant, make_jobs, statement
from cronring.controller.store.connect import Connection, connect
from tests.support.databases import PostgresServer

JOBS = 30


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "test")
    yield connection
    await connection.close()


@pytest.mark.parametrize(("kind", "prefix"), [("ours", "cron"), ("bare", "bare")])
async def test_a_batch_is_claimed_and_ended_in_both_tables(
    database_url: str, connection: Connection, kind: str, prefix: str
) -> None:
    rows = await Rows.open(database_url, kind, await make_jobs(database_url, JOBS), connections=1)
    try:
        tick = next(rows.ticks)
        batch = rows.jobs[:20]
        claimed = await rows.connections[0].fetch(statement(f"claim, {kind}"), batch, [tick] * 20)
        assert [record[1] for record in claimed] == batch
        assert await found(connection, f"SELECT count(*) FROM {prefix}_jobs WHERE state = 'executing'") == 20
        assert await rows.connections[0].fetch(statement(f"claim, {kind}"), batch, [tick + 1] * 20) == []
        await rows.connections[0].execute(
            statement(f"end, {kind}"), [record[0] for record in claimed], batch, [tick] * 20, [tick + 60] * 20
        )
        assert await found(connection, f"SELECT count(*) FROM {prefix}_jobs WHERE state = 'executing'") == 0
        moved = (
            f"SELECT count(*) FROM {prefix}_jobs WHERE execution_id IS NULL AND next_tick = to_timestamp({tick + 60})"
        )
        assert await found(connection, moved) == 20
        ended = f"FROM {prefix}_executions WHERE outcome = 'completed' AND ended_at >= claimed_at"
        # One of each job was there already.
        assert await found(connection, f"SELECT count(*) {ended} AND tick = to_timestamp({tick})") == 20
        assert await found(connection, f"SELECT count(*) {ended}") == JOBS + 20
    finally:
        await rows.close()


async def test_as_much_is_counted_as_the_tables_hold(
    database_url: str, connection: Connection, postgres: PostgresServer
) -> None:
    rows = await Rows.open(database_url, "ours", await make_jobs(database_url, JOBS), connections=3)
    try:
        measured = [
            await rows.measure(variant, psutil.Process(postgres.pid), 0.05)
            for variant in (Variant(1, 1), Variant(7, 3))
        ]
        done = sum(sample.done for sample in measured)
        assert done > 0
        assert (
            await found(connection, "SELECT count(*) FROM cron_executions WHERE outcome = 'completed'") == JOBS + done
        )
        assert all(sample.seconds >= 0.05 and sample.cpu_s["python"] > 0 for sample in measured)
    finally:
        await rows.close()


async def test_runs_go_to_another_process_and_reports_come_back() -> None:
    with answering() as other:
        for exchange in (Exchange("unary", 1, 4), Exchange("stream", 10, 0)):
            sample = await other.measure(exchange, 0.1)
            assert sample.done > 0
            assert sample.done % exchange.items == 0
    assert not other.process.is_running()
    assert dispatch(10).dispatch.runs.job_id == reports(10).reports.completed.job_id


def test_fdatasync_takes_time_and_leaves_nothing(tmp_path: Path) -> None:
    taken_us = fdatasync_us(tmp_path, 3)
    assert len(taken_us) == 3
    assert min(taken_us) > 0
    assert list(tmp_path.iterdir()) == []


async def found(connection: Connection, query: str) -> int:
    return int(await connection.fetchval(query))
