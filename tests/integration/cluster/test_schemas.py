"""Two clusters in one database, each in a schema and by roles of its own, with the rights that docs/running.md says."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg
import pytest

from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.maintenance import Retention
from cronring.controller.store.doctor import examine
from cronring.controller.store.maintenance import maintain
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer, run_coroutine
from tests.support.looking import look
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
MODULE = Path(__file__).parent / "modules" / "twice.py"
DAY_MS = 86_400_000
# Runs of the last nine days, in partitions of their own, as if the cluster had been there: something to retire.
OLD = """
DO $$ DECLARE first timestamptz := date_trunc('day', now(), 'UTC') - interval '9 days'; BEGIN
    ALTER TABLE cron_executions DETACH PARTITION cron_executions_kept;
    EXECUTE format('ALTER TABLE cron_executions ATTACH PARTITION cron_executions_kept '
                   'FOR VALUES FROM (MINVALUE) TO (%L)', first);
    UPDATE cron_partitions SET until_at = first WHERE from_at = '-infinity';
    FOR n IN 0..8 LOOP
        PERFORM cron_make_partition(first + n * interval '1 day', first + (n + 1) * interval '1 day');
    END LOOP;
    INSERT INTO cron_executions (job_id, deployment_id, number, tick, run_at, claimed_at, started_at, ended_at, outcome,
                                 controller_id, runner_id, hard_deadline, holds_job)
    SELECT j.id, j.deployment_id, 0, t, t, t, t, t, 'completed', 'c', 'r', t, false
    FROM cron_jobs j, generate_series(first, first + interval '6 days', interval '1 hour') t;
END $$
"""

UNRETIRED = """
SELECT count(*) FROM pg_class c LEFT JOIN cron_partitions p ON p.name = c.relname
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
  AND (c.relname LIKE 'cron\\_gone%' OR p.until_at < now() - interval '3 days' AND p.from_at > '-infinity')
"""


class Tenant(NamedTuple):
    """A cluster in a schema: `owner` migrates, `member` runs controllers."""

    schema: str
    owner_url: str
    member_url: str
    journal: Path
    cluster: Cluster

    def fences(self) -> list[int]:
        return [int(line) for line in self.journal.read_text().split()] if self.journal.exists() else []


@pytest.fixture
def tenants(postgres: PostgresServer, empty_database_url: str, tmp_path: Path) -> Iterator[list[Tenant]]:
    database = urlsplit(empty_database_url).path[1:]
    roles = []
    with ExitStack() as stack:
        found = []
        postgres.execute(
            f'REVOKE ALL ON DATABASE "{database}" FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC', database
        )
        for schema in ("one", "two"):
            owner, member = f"owner_{schema}_{database}", f"member_{schema}_{database}"
            roles += [owner, member]
            postgres.execute(f'CREATE ROLE {owner} LOGIN; CREATE ROLE {member} LOGIN;'
                             f'GRANT CONNECT ON DATABASE "{database}" TO {owner}, {member};'
                             f"CREATE SCHEMA {schema} AUTHORIZATION {owner}", database)  # fmt: skip
            folder = tmp_path / schema
            folder.mkdir()
            urls = [empty_database_url.replace("postgres@", f"{role}@") for role in (owner, member)]
            environment = {"CRONRING_SCHEMA": schema, "CRONRING_GRANT_TO": member, "JOURNAL": str(folder / "journal")}
            cluster = stack.enter_context(Cluster(urls[0], folder, environment))
            cluster.controllers_database_url = urls[1]
            found.append(Tenant(schema, urls[0], urls[1], folder / "journal", cluster))
        yield found
    for role in roles:
        postgres.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}", database)


def wait_for_runs(tenant: Tenant, count: int) -> None:
    until(tenant.cluster.controllers[0].tail, lambda: len(tenant.fences()) >= count)


async def fetch(tenant: Tenant, statement: str, url: str = "") -> list[asyncpg.Record]:
    connection = await look(url or tenant.owner_url, tenant.schema)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


def test_two_clusters_live_side_by_side_by_roles_that_own_nothing(tenants: list[Tenant]) -> None:
    for tenant in tenants:
        tenant.cluster.migrate()
        tenant.cluster.start_controller()
        tenant.cluster.start_controller()
        tenant.cluster.start_runner(MODULE)
    one, two = tenants
    for tenant in tenants:
        wait_for_runs(tenant, 3)
        assert len(tenant.cluster.cli("cluster", "members")) == 2, "it has found the other one's controllers"
        give_orders(tenant.cluster)
    one.cluster.cli("jobs", "pause", "twice.note")
    before = len(two.fences())
    wait_for_runs(two, before + 2)
    for tenant in tenants:
        books = tenant.cluster.cli("audit")
        assert (books["unaccounted"], books["duplicates"]) == (0, 0), books
        run_coroutine(fetch(tenant, OLD))
        looked_after(tenant)
        ran = {row[0] for row in run_coroutine(fetch(tenant, "SELECT id FROM cron_executions"))}
        assert set(tenant.fences()) <= ran
        for process in tenant.cluster.controllers:
            assert "permission denied" not in process.log.read_text(), process.tail()
            assert process.alive()


def give_orders(cluster: Cluster) -> None:
    """One of each kind, by which most statements that write are run."""
    cluster.cli("webhook", "add", "pager", "http://127.0.0.1:9/")
    cluster.cli("limits", "set", "twice", "--max-concurrent", "5")
    cluster.cli("template", "set", "daily", "--cron", "0 6 * * *")
    cluster.cli("jobs", "create", "twice.note", "--name", "by_hand", "--template", "daily")
    cluster.cli("jobs", "trigger", "twice.note")
    cluster.cli("jobs", "update", "twice.note:by_hand", "--set-label", "team=x")
    cluster.cli("jobs", "delete", "twice.note:by_hand")


def looked_after(tenant: Tenant) -> None:
    """Partitions are made and retired, and the doctor reads all that it wants, by the role that owns nothing."""
    retention = Retention(2 * DAY_MS, 1, 2 * DAY_MS, ahead_ms=9 * DAY_MS)
    made = 0
    while run_coroutine(fetch(tenant, UNRETIRED))[0][0]:  # a controller may be at it, or claims in the way
        done = asyncio.run(maintain(tenant.member_url, retention, schema=tenant.schema))
        made += done.partitions_made
    assert made > 0
    owners = "SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = current_schema()"
    ((owner,),) = run_coroutine(fetch(tenant, owners))
    assert tenant.owner_url.split("@")[0].endswith(owner)
    found = asyncio.run(examine(tenant.member_url, ClusterSettings(), schema=tenant.schema)).findings
    assert not [each for each in found if each.verdict.value == "unchecked"], found


async def refused(tenant: Tenant, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await fetch(tenant, statement, tenant.member_url)


def test_the_role_that_runs_may_change_no_table_and_see_nothing_of_the_other(tenants: list[Tenant]) -> None:
    for tenant in tenants:
        tenant.cluster.migrate()
    one, _ = tenants
    for statement in (
        "CREATE TABLE one.mine (id integer)",
        "CREATE TEMPORARY TABLE mine (id integer)",
        "ALTER TABLE cron_jobs ADD COLUMN mine integer",
        "DROP TABLE cron_jobs",
        "TRUNCATE cron_jobs",
        "INSERT INTO cronring_migrations (version, name, checksum) VALUES (99, 'x', 'x')",
        "UPDATE cron_keys SET key = key",
        "DELETE FROM cron_partitions",
        "SELECT cron_make_partition(now(), now())",
        "SELECT * FROM two.cron_jobs",
        "SELECT two.cron_fence('x', 1)",
    ):
        asyncio.run(refused(one, statement))
