"""Lists of 10,000 jobs of the interval contract, among 100,000 others: what they read grows with the page."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.plans.explained import plan, session

JOBS = 10_000
INTERVALS = f"""
DELETE FROM cron_interval_jobs;
INSERT INTO cron_interval_jobs (job_id, id, namespace, source_id, terms)
SELECT id, 'i' || id, namespace, 's' || id % 100, '{{"url":"x"}}' FROM cron_jobs WHERE id <= {JOBS};
ANALYZE cron_interval_jobs;
"""
PAGE = {"namespace": "'default'", "source_id": "NULL", "limit": "50", "offset": "0"}
OF_SOURCE = PAGE | {"source_id": "'s7'"}


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def url(request: pytest.FixtureRequest, copies_of_filled: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    with copies_of_filled(request.param, INTERVALS) as copy:
        yield copy


async def rows_read(url: str, name: str, arguments: dict[str, str]) -> int:
    """By all nodes that read a table, those that their conditions dropped among them."""
    connection = await session(url)
    try:
        nodes = await plan(connection, name, arguments)
    finally:
        await connection.close()
    read = [node for node in nodes if "Relation Name" in node]
    dropped = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    total: float = sum(
        (node["Actual Rows"] + sum(node.get(each, 0) for each in dropped)) * node["Actual Loops"] for node in read
    )
    return round(total)


async def test_a_page_reads_its_own_jobs(url: str) -> None:
    assert await rows_read(url, "FindIntervalJobs", PAGE) <= 50
    ids = f"'{{{','.join(str(each) for each in range(JOBS, JOBS - 50, -1))}}}'"
    # Of each: its row, what the caller gave, what waits, and the latest run.
    assert await rows_read(url, "GetIntervalJobs", {"job_ids": ids}) < 5 * 50


async def test_whatever_is_counted_reads_no_other_job(url: str) -> None:
    assert await rows_read(url, "FindIntervalJobs", OF_SOURCE) <= JOBS
    assert await rows_read(url, "CountIntervalJobs", {"namespace": "'default'", "source_id": "NULL"}) <= JOBS
    assert await rows_read(url, "CountIntervalJobs", {"namespace": "'default'", "source_id": "'s7'"}) <= JOBS


async def test_a_status_is_looked_for_once_in_each_job(url: str) -> None:
    """Its rows in two tables, and twice all that waits, of which there are 10,000 here."""
    for name, asked in (
        ("FindIntervalJobsOfStatus", PAGE | {"status": "'failed'"}),
        ("CountIntervalStatuses", {"namespace": "'default'"}),
    ):
        assert await rows_read(url, name, asked) <= 2 * JOBS + 2 * 10_000


async def test_jobs_are_read_by_one_scan_of_their_key(url: str) -> None:
    """Not by a probe for each: that took four times as long."""
    connection = await session(url)
    try:
        nodes = await plan(connection, "CountIntervalStatuses", {"namespace": "'default'"})
    finally:
        await connection.close()
    of_jobs = [node for node in nodes if node.get("Relation Name") == "cron_jobs"]
    assert [node["Actual Loops"] for node in of_jobs] == [1]


async def test_a_job_is_found_by_its_id(url: str) -> None:
    assert await rows_read(url, "GetIntervalJob", {"interval_id": "'i77'", "namespace": "'default'"}) < 20


async def test_executions_are_found_by_their_job(url: str) -> None:
    """Each job here has had 50."""
    asked = {"job_id": "7", "limit": "10", "offset": "0"}
    assert await rows_read(url, "ListIntervalExecutions", asked) < 70
