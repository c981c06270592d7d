"""Statements that lock, while somebody else has just changed every row that they want (docs/decisions/0001).

Each is run twice on copies of one scene: when a change of all rows is committed before it begins, and when that is
committed after its snapshot and before its locks. Nothing but the instant differs, so it must come to the same.
"""

import re
from collections.abc import Iterator

import pytest

from cronring import sql
from tests.support.databases import PostgresServer, running_server
from tests.support.storms import FULL, SCENE, Storm, Stormed

ENDS = """
SELECT 'c1', array_agg(id), array_agg(job_id), array_agg(claimed_at), array_agg('completed'::text),
       array_agg(claimed_at), array_agg(claimed_at), array_agg(n), array_agg(n), array_agg(n), array_agg(1),
       array_agg(later), array_agg(later), array_agg(never), array_agg(never), array_agg(never),
       '{}'::bigint[], '{}'::bigint[], '{}'::text[], '{}'::timestamptz[], '{}'::timestamptz[], '{}'::bigint[],
       array_agg(tick), array_agg(n), array_agg(n::bigint), array_agg(n::bigint), array_agg(n::boolean), array_agg(n),
       array_agg(0)
FROM (SELECT *, NULL::text AS n, NULL::timestamptz AS never, run_at + interval '1 hour' AS later FROM cron_executions
      WHERE outcome IS NULL ORDER BY id) e
"""
CLAIMS = """
SELECT 'c1', array_agg(id), array_agg(next_tick), array_agg(next_tick), array_agg(next_tick), array_agg('r1'::text),
       array_agg('m@1'::text), array_agg('schedule'::text), array_agg(0), array_agg(NULL::timestamptz),
       array_agg(NULL::timestamptz), array_agg(1), '{}'::bigint[], '{}'::text[], '{}'::timestamptz[],
       '{}'::timestamptz[], '{}'::bigint[], 30000
FROM (SELECT * FROM cron_jobs WHERE id BETWEEN 11 AND 19 ORDER BY id) j
"""
SKIPS = """
SELECT 'c1', array_agg(id), array_agg(next_tick), array_agg(1), array_agg(later), array_agg(later),
       array_agg('no_runner'::text), array_agg(next_tick), array_agg(next_tick), array_agg(1), '{}'::bigint[],
       '{}'::text[], '{}'::timestamptz[], '{}'::timestamptz[], '{}'::bigint[], array_agg(0)
FROM (SELECT *, next_tick + interval '1 hour' AS later FROM cron_jobs WHERE id BETWEEN 11 AND 19 ORDER BY id) j
"""
RETRIES = """
SELECT 'c1', array_agg(id), array_agg(tick), array_agg('r1'::text), array_agg('m@1'::text),
       array_agg(NULL::timestamptz), 30000
FROM (SELECT * FROM cron_activations ORDER BY id) a
"""
STORMED = {
    "EndCronJob": Stormed(ENDS),
    "StartCronJobs": Stormed(CLAIMS, gate="controllers"),
    "SkipTicks": Stormed(SKIPS, gate="controllers"),
    "StartActivations": Stormed(RETRIES, gate="controllers"),
    "AdoptExecutions": Stormed("SELECT 'c2', '{c1}'::text[], NULL"),
    "CancelExecutionsOfJobs": Stormed("SELECT array_agg(id), 'somebody', 'why', false FROM cron_jobs WHERE id < 10"),
    "CancelExecutionsOfJobs, skipping": Stormed(
        "SELECT array_agg(id), 'somebody', 'why', true FROM cron_jobs WHERE id < 10", gate="controllers"
    ),
    "MarkCancelled": Stormed("SELECT max(id), 'somebody', 'why' FROM cron_executions WHERE outcome IS NULL"),
    "LockJobOfExecution": Stormed("SELECT max(id) FROM cron_executions WHERE outcome IS NULL"),
    "LockJobsById": Stormed("SELECT array_agg(id) FROM cron_jobs WHERE id < 10"),
    "CountPlaces": Stormed("SELECT min(id) FROM cron_limits WHERE max_concurrent IS NOT NULL"),
    "RenewLease": Stormed("SELECT 'c1', '', '', 1, '', '', false, 60000, '{r1,r2}'::text[], 8750, '{}'::bigint[]"),
    "LeaveRunner": Stormed("SELECT 'r3'"),
    "GetRetriesGivenUp": Stormed("SELECT"),
    "TakeNotifier": Stormed("SELECT 'c1'", gate="cron_notifier"),
    "ClaimDeliveries": Stormed("SELECT 1000, 'c1', '{}'::bigint[], '{}'::integer[], 9, 9", gate="cron_webhooks"),
    "CountUncounted": Stormed("SELECT 100"),
    # Its trigger asks at the commit, which is this statement's own.
    "cron_fence_commit": Stormed(
        "SELECT 'm.v1', min(id) FROM cron_executions WHERE outcome IS NULL", text="SELECT cron_fence_commit($1, $2)"
    ),
    "FoldGone": Stormed("SELECT 3600000, 1000", gate="cron_uncounted"),
}
# They read partitions and change rows that nobody else has: maintenance's own, one round at a time.
ALONE = {"FillClosings", "SumClosings"}


@pytest.fixture(scope="module", params=["postgres18", "postgres16", "postgres15"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """What it has freed is overwritten, so that whoever reads it is found out."""
    with running_server(request.param) as made:
        made.stop()
        made.environment["MALLOC_PERTURB_"] = "165"
        made.start()
        yield made


@pytest.fixture(scope="module", params=["few partitions, never analysed", "many, full, analysed"])
def scene(request: pytest.FixtureRequest, server: PostgresServer) -> str:
    name = server.create_database()
    if request.param.startswith("many"):
        server.execute(SCENE + FULL, name)
        server.execute("VACUUM ANALYZE", name)
    else:
        server.execute(SCENE, name)
    return name


@pytest.mark.parametrize("name", STORMED)
async def test_it_comes_to_the_same_if_all_rows_change_under_it(server: PostgresServer, scene: str, name: str) -> None:
    came = []
    for calm in (True, False):
        copy = server.create_database(template=scene)
        try:
            storm = Storm(server.url(copy), STORMED[name].gate)
            text = STORMED[name].text or sql.statement(name.partition(",")[0])
            came.append(await storm.run(text, STORMED[name].arguments, calm=calm))
        finally:
            server.drop_database(copy)
    assert came[0][0] or not STORMED[name].gate, "it found nothing to do"  # else it has waited for what it found
    assert came[0] == came[1]


def test_all_are_stormed_that_read_partitions_and_lock_or_change() -> None:
    changes = re.compile(r"\bUPDATE\b|\bDELETE\b|\bFOR SHARE\b|\bINSERT INTO\b")
    found = {
        name
        for name, text in sql.statements().items()
        if re.search(r"\bcron_executions\b", code := re.sub(r"--.*", "", text)) and changes.search(code)
    }
    assert found <= set(STORMED) | ALONE
