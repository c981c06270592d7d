"""Views and functions for what many statements say: they cost nothing, and give what their readers expect."""

import re

import pytest

from cronring import sql
from cronring.controller.core.model import Job
from cronring.controller.ports.reads import ExecutionRow, JobRow
from cronring.controller.store.connect import Connection
from cronring.schema.job import JobSpec
from tests.plans.explained import execution, session

ON_BOTH = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
FUNCTIONS = ("cron_full", "cron_paused", "cron_active", "cron_priority", "cron_after", "cron_interval_status")
VIEWS = (
    "cron_scheduled_jobs",
    "cron_job_details",
    "cron_job_status",
    "cron_unfinished_executions",
    "cron_interval_job_details",
)
NAMED = re.compile("|".join((*FUNCTIONS, *VIEWS)))
# What a column is called where it is read.
ALIASES = {"id": "job_id", "next_execution": "next_run_at", "execution_id": "running_execution_id"}


async def called(connection: Connection, name: str) -> set[str]:
    """Which of the functions a statement calls, row by row."""
    await connection.execute(f"PREPARE planned AS {sql.statement(name)}")
    plan = await connection.fetch(f"EXPLAIN (VERBOSE) {execution('planned', name)}")
    await connection.execute("DEALLOCATE planned")
    return {found for (line,) in plan for found in re.findall(rf"({'|'.join(FUNCTIONS)})\(", line)}


@ON_BOTH
async def test_functions_are_inlined_after_a_migration(database_url: str) -> None:
    """A call costs microseconds a row. PostgreSQL calls what has a search_path of its own, as CloseSchema gives."""
    connection = await session(database_url)
    asked = [name for name, text in sql.statements().items() if NAMED.search(text)]
    assert len(asked) > 20
    try:
        assert {name: found for name in asked if (found := await called(connection, name))} == {}
        await connection.execute("ALTER FUNCTION cron_full SET search_path = pg_temp")
        assert await called(connection, "GetCronJobs") == {"cron_full"}
    finally:
        await connection.close()


async def columns(url: str, view: str) -> list[str]:
    connection = await session(url)
    try:
        rows = await connection.fetch(
            "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum", view
        )
    finally:
        await connection.close()
    return [row[0] for row in rows]


@ON_BOTH
async def test_views_give_the_columns_that_their_readers_expect(database_url: str) -> None:
    """Rows become tuples by position."""
    scheduled = await columns(database_url, "cron_scheduled_jobs")
    assert [ALIASES.get(name, name) for name in scheduled[: len(Job._fields)]] == list(Job._fields)
    details = await columns(database_url, "cron_job_details")
    row = JobRow._fields.index("spec")
    assert [ALIASES.get(name, name) for name in details[:row]] == [*JobRow._fields[:row]]
    assert (*details[row:], "payload") == JobSpec._fields
    assert JobRow._fields[row:] == ("spec", "skipped")
    executions = await columns(database_url, "cron_execution_details")
    assert ["execution_id", *executions[1:]] == [*ExecutionRow._fields[: len(executions)]]
    assert ExecutionRow._fields[len(executions) :] == ("output", "payload", "stack", "metrics", "payload_of")
    unfinished = await columns(database_url, "cron_unfinished_executions")
    assert unfinished[14 : 14 + len(scheduled)] == scheduled


def test_no_statement_writes_anew_what_they_say() -> None:
    full = re.compile(r"running (>=|<) greatest\((\w+\.)?concurrency, 1\)")
    scheduled = re.compile(r"timeout_ms,\s+(\w+\.)?on_disconnect, .{0,100}AS executing", re.DOTALL)
    found = {name for name, text in sql.statements().items() if full.search(text) or scheduled.search(text)}
    assert found == set()
