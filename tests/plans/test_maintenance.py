"""A round of maintenance, which every controller has each ten minutes, doesn't grow with the jobs there are."""

import pytest

from cronring.controller.store.connect import connect
from cronring.controller.store.maintenance import SETTINGS
from tests.plans.explained import plan
from tests.plans.test_plans import EXECUTIONS, FILL, JOBS, read


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
async def test_a_round_looks_at_jobs_that_are_gone_alone(database_url: str, postgres_name: str) -> None:
    connection = await connect(database_url, "plans", dict(SETTINGS))
    try:
        await connection.execute(FILL.replace(str(JOBS), "20000").replace(str(EXECUTIONS), "0"))
        assert read(await plan(connection, "FoldGone", {"history_ms": "3600000", "limit": "1000"}), "cron_jobs") == 0
        await connection.execute(
            "UPDATE cron_jobs SET removed_at = now() - interval '1 day', next_tick = NULL, next_execution = NULL "
            "WHERE id <= 50"
        )
        # As long as their schedules are there, they stay.
        assert read(await plan(connection, "FoldGone", {"history_ms": "3600000", "limit": "1000"}), "cron_jobs") == 50
    finally:
        await connection.close()
