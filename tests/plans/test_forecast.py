"""What a forecast reads grows with the jobs alone, however many verbs a module has."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.plans.explained import plan, session
from tests.plans.test_plans import JOBS, rows_passed

LARGE = (
    "UPDATE deployments SET async_verbs = ARRAY(SELECT 'v' || i FROM generate_series(1, 10000) i) WHERE id = 1",
    "UPDATE cron_jobs SET deployment_id = 1, verb = 'v' || id WHERE id <= 10000",
)


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def large_url(
    request: pytest.FixtureRequest, copies_of_filled: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    with copies_of_filled(request.param, *LARGE) as url:
        yield url


async def test_groups_of_a_large_module_are_made_in_one_pass(large_url: str) -> None:
    """To look each job's verb up among ten thousand names of its version takes minutes."""
    connection = await session(large_url)
    try:
        found = await plan(connection, "GetJobGroups", {"limit": "300", "namespaces": "NULL"})
        assert rows_passed(found) <= 12 * JOBS
    finally:
        await connection.close()
