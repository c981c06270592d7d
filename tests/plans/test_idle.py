"""Plans made after an ANALYZE that found everything at rest: no job has a next tick, and nothing waits."""

from collections.abc import Callable, Iterator

import pytest

from tests.plans.explained import plan, session
from tests.plans.test_plans import FILL, HOT, LEDGER, astray
from tests.support.databases import PostgresServer

REST = """
UPDATE cron_jobs SET next_tick = NULL, next_execution = NULL;
DELETE FROM cron_activations;
"""


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def resting_url(request: pytest.FixtureRequest, postgres_servers: Callable[[str], PostgresServer]) -> Iterator[str]:
    """A database with 100,000 jobs, all of which have had their last tick, vacuumed since."""
    server = postgres_servers(request.param)
    name = server.create_database()
    server.execute(FILL, name)
    server.execute(REST, name)
    server.execute("VACUUM (ANALYZE)", name)
    yield server.url(name)
    server.drop_database(name)


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
