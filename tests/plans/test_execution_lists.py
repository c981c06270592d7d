"""Whatever a list of executions is asked for, one answer reads a bounded number of entries of a large history."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

import asyncpg
import pytest

from cronring.controller.errors import Conflict
from cronring.controller.ports.reads import ExecutionFilter, ExecutionSort
from cronring.controller.store.connect import Connection
from cronring.controller.store.execution_lists import JOBS_MAX, ExecutionLists
from cronring.sql.records import Statement
from tests.plans.explained import session
from tests.plans.test_plans import EXECUTIONS

LOOKED = 1_000
# Of 50,000 executions: one in 500 has failed, and one in 25,000 was on a runner of its own.
ODD = """
UPDATE cron_executions SET outcome = 'failed' WHERE id % 500 = 7;
UPDATE cron_executions SET runner_id = 'rare' WHERE id % 25000 = 7;
UPDATE cron_jobs SET labels = '{"rare":"yes"}' WHERE id IN (3, 4);
UPDATE cron_jobs SET labels = '{"team":"all"}' WHERE id > 500;
"""
ENTRIES = """
SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE indexrelname LIKE 'cron_executions%'
"""


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def filled_url(
    request: pytest.FixtureRequest, copies_of_filled: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    with copies_of_filled(request.param, ODD, "VACUUM ANALYZE cron_executions", "VACUUM ANALYZE cron_jobs") as url:
        yield url


class Counted:
    """Executions of a session that counts how many entries of their indexes it has read."""

    def __init__(self, connection: Connection, watcher: Connection) -> None:
        self._connection = connection
        self._watcher = watcher
        self.lists = ExecutionLists(self._fetch, LOOKED)

    async def _fetch(self, statement: Statement) -> list[asyncpg.Record]:
        return await self._connection.fetch(*statement)

    async def entries(self) -> int:
        await self._connection.fetch("SELECT pg_stat_force_next_flush()")
        await self._connection.fetch("SELECT 1")
        return int(await self._watcher.fetchval(ENTRIES))


@pytest.fixture
async def counted(filled_url: str) -> AsyncIterator[Counted]:
    connection, watcher = await session(filled_url), await session(filled_url)
    yield Counted(connection, watcher)
    await connection.close()
    await watcher.close()


WHERE = ExecutionFilter()
FILTERS = [
    WHERE,
    WHERE._replace(runner="rare"),
    WHERE._replace(runner="none", outcomes=("completed",)),
    WHERE._replace(outcomes=("timed_out", "lost")),
    WHERE._replace(outcomes=("failed",), runner="none"),
    WHERE._replace(outcomes=("failed", "running"), module="m9", verb="none"),
    WHERE._replace(outcomes=("running",)),
    WHERE._replace(labels={"rare": "yes"}, outcomes=("failed",)),
    WHERE._replace(labels={"team": "all"}, outcomes=("lost",)),
    WHERE._replace(labels={"team": "none"}),
    WHERE._replace(module="m9", runner="none"),
    WHERE._replace(namespace="none"),
    WHERE._replace(namespaces=("none",)),
    WHERE._replace(namespaces=()),
    WHERE._replace(job="m4.v3", outcomes=("lost",)),
]


@pytest.mark.parametrize("where", FILTERS)
async def test_one_answer_reads_a_bounded_number_of_entries(counted: Counted, where: ExecutionFilter) -> None:
    before = await counted.entries()
    await counted.lists.page(where, ExecutionSort.NEWEST, (), 100)
    await counted.lists.count(where)
    for sort in (ExecutionSort.SLOWEST, ExecutionSort.LATEST):
        try:
            await counted.lists.page(where, sort, (), 100)
        except Conflict:
            continue
    read = await counted.entries() - before
    # Each of four answers finds where it ends, and then looks; a job's own look may find nothing, and costs an entry.
    assert read <= 4 * (2 * LOOKED + JOBS_MAX) < EXECUTIONS / 5, where
    assert read > LOOKED or where.runner != "rare", "they are counted"


async def test_few_jobs_are_found_at_once_however_much_ran_since(counted: Counted) -> None:
    """The rare ones: all of theirs are on the first page, though 998 in 1,000 executions are of others."""
    page = await counted.lists.page(WHERE._replace(labels={"rare": "yes"}), ExecutionSort.NEWEST, (), 1_000)
    assert (len(page.rows), page.next) == (2 * EXECUTIONS // 1_000, ())
    assert (await counted.lists.count(WHERE._replace(labels={"rare": "yes"}))).at_least is False
    failed = await counted.lists.page(WHERE._replace(outcomes=("failed",)), ExecutionSort.SLOWEST, (), 1_000)
    assert (len(failed.rows), failed.next) == (EXECUTIONS // 500, ())


@pytest.mark.parametrize("where", [WHERE, WHERE._replace(outcomes=("failed",)), WHERE._replace(job="m4.v3")])
async def test_a_page_of_what_all_fits_costs_its_rows(counted: Counted, where: ExecutionFilter) -> None:
    before = await counted.entries()
    page = await counted.lists.page(where, ExecutionSort.NEWEST, (), 40)
    read = await counted.entries() - before
    assert len(page.rows) == 40
    # Each of 34 partitions may give one entry that is not the newest.
    assert 40 < read < 200
