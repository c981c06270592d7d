"""Plans made after an ANALYZE that found everything at rest: no job has a next tick, and nothing waits."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.plans.explained import plan, session
from tests.plans.test_plans import HOT, LEDGER, astray

REST = """
UPDATE cron_jobs SET next_tick = NULL, next_execution = NULL;
DELETE FROM cron_activations;
"""


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def resting_url(
    request: pytest.FixtureRequest, copies_of_filled: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """A database with 100,000 jobs, all of which have had their last tick, vacuumed since."""
    with copies_of_filled(request.param, REST, "VACUUM (ANALYZE)") as url:
        yield url


async def test_plans_made_while_nothing_is_due_are_as_good(resting_url: str) -> None:
    """They stay until the next ANALYZE, and meanwhile thousands may have come due."""
    connection = await session(resting_url)
    try:
        complaints = [complaint for name in [*HOT, *LEDGER] for complaint in astray(name, await plan(connection, name))]
        assert complaints == []
    finally:
        await connection.close()


async def test_a_claim_never_reads_what_is_due(resting_url: str) -> None:
    """By that index each of its rows would cost as much as all of them."""
    connection = await session(resting_url)
    try:
        found = await plan(connection, "StartCronJobs")
        read = {node.get("Index Name") for node in found if node.get("Relation Name") == "cron_jobs"}
        assert read - {None} == {"cron_jobs_pkey"}
    finally:
        await connection.close()
