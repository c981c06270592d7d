"""Who follows a job is looked up by its key, whatever others follow; and by nobody where there are no followers."""

import pytest

from tests.plans.explained import plan, session
from tests.plans.test_plans import astray

FOLLOWERS = """
INSERT INTO cron_followers (job_id, after) SELECT i, 'm.v' || i FROM generate_series(1, 20000) i;
ANALYZE cron_followers
"""


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
@pytest.mark.parametrize("filled", [False, True])
async def test_followers_are_found_by_the_key_of_what_they_follow(
    database_url: str, postgres_name: str, filled: bool
) -> None:
    connection = await session(database_url)
    try:
        if filled:
            await connection.execute(FOLLOWERS)
        for name in ("EndCronJob", "EndAnyRun", "FollowTicks", "GetFollowers", "GetFollowed"):
            found = await plan(connection, name)
            scans = [node for node in found if node.get("Relation Name") == "cron_followers"]
            wanted = {
                "EndCronJob": "cron_followers_after", "EndAnyRun": "cron_followers_after",
                "FollowTicks": "cron_followers_after", "GetFollowed": "cron_followers_pkey",
            }.get(name)  # fmt: skip
            if wanted is not None:
                assert [node for node in found if node.get("Index Name") == wanted and "Index Cond" in node], scans
            assert [each for each in astray(name, found) if "cron_jobs" in each or "cron_activations" in each] == []
    finally:
        await connection.close()
