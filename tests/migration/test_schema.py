"""Everything of ours is in a schema of its own, wherever it is looked up from."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

import asyncpg
import pytest

from cronring.controller.config import ConfigError
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import SchemaVersionError, StoreError
from cronring.controller.ports.maintenance import DAY_MS, Retention
from cronring.controller.ports.store import Notified, Topic
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.doctor import examine
from cronring.controller.store.listen import PostgresNotifications
from cronring.controller.store.maintenance import maintain
from cronring.controller.store.migrate import migrate
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.module import Module, Verb
from cronring.sql.parameters import ListDeployments
from tests.support.databases import PostgresServer
from tests.support.pooler import forgetful_pooler
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
MODULE = Module("billing", (Verb("send", schedule="every 1h"),))
RETENTION = Retention(DAY_MS, 9, DAY_MS)


@pytest.fixture
async def operator(empty_database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


@pytest.fixture
def role(postgres: PostgresServer, empty_database_url: str) -> Iterator[str]:
    """One that may connect, and owns nothing."""
    database = urlsplit(empty_database_url).path[1:]
    with postgres.role(f"owner_{database}", database) as name:
        yield name


def url_of(url: str, role: str) -> str:
    return url.replace("postgres@", f"{role}@")


async def deployed(url: str, schema: str, module: Module = MODULE) -> list[str]:
    """The keys of the jobs of a module that is deployed there."""
    database = await Database.open(url, "test", connections=2, schema=schema)
    try:
        await PostgresStore(database).create_deployment(module, "a" * 64, 1, 300_000, True)
        return [
            record[0]
            for record in await database.fetch(
                ListDeployments(
                    before_id=2**62,
                    namespace="",
                    module="",
                    active_only=False,
                    namespaces=None,
                    limit=9,
                    lost_after_ms=1_000,
                )
            )
        ]
    finally:
        await database.close()


async def test_a_table_of_the_users_own_is_in_nobodys_way(operator: Connection, empty_database_url: str) -> None:
    await operator.execute("CREATE TABLE deployments (id integer); CREATE TABLE cron_jobs (id integer)")
    await migrate(empty_database_url)
    assert len(await deployed(empty_database_url, "cronring")) == 1
    assert await operator.fetchval("SELECT count(*) FROM public.deployments") == 0
    ours = (
        "SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class WHERE relname LIKE 'cron%' AND relkind <> 'i'"
    )
    assert sorted(record[0] for record in await operator.fetch(ours)) == ["cronring", "public"]
    left = await operator.fetch("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
    assert [record[0] for record in left] == ["cron_jobs", "deployments"]


async def test_a_schema_with_tables_of_others_is_refused_with_advice(
    operator: Connection, empty_database_url: str
) -> None:
    await operator.execute("CREATE SCHEMA shop; CREATE TABLE shop.deployments (id integer)")
    with pytest.raises(StoreError, match=r"shop holds what is not cronring's \(deployments\.\.\.\): .*--schema"):
        await migrate(empty_database_url, schema="shop")
    with pytest.raises(SchemaVersionError, match="no tables of cronring in the schema shop: run `cronring migrate`"):
        await Database.open(empty_database_url, "test", schema="shop")


async def test_a_schema_where_everybody_may_make_functions_is_refused(
    operator: Connection, empty_database_url: str
) -> None:
    """As `public` is in a cluster that came from PostgreSQL 14."""
    await operator.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    with pytest.raises(StoreError, match="REVOKE CREATE ON SCHEMA public FROM PUBLIC"):
        await migrate(empty_database_url, schema="public")
    await operator.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    assert await migrate(empty_database_url, schema="public") > 0


async def test_who_may_make_no_schema_is_told_what_to_ask_for(
    operator: Connection, role: str, empty_database_url: str
) -> None:
    url = url_of(empty_database_url, role)
    with pytest.raises(StoreError, match=f"CREATE SCHEMA cronring AUTHORIZATION {role}"):
        await migrate(url)
    await operator.execute("CREATE SCHEMA cronring")
    with pytest.raises(StoreError, match=f"is postgres's, and the role {role} may make no tables in it"):
        await migrate(url)
    await operator.execute(f"DROP SCHEMA cronring; CREATE SCHEMA cronring AUTHORIZATION {role}")
    assert await migrate(url) > 0
    assert await migrate(url) == 0
    stranger = f"stranger_{role}"
    await operator.execute(f"CREATE ROLE {stranger} LOGIN")
    try:
        with pytest.raises(StoreError, match=f"run `cronring migrate --grant-to {stranger}` as {role}"):
            await Database.open(url_of(empty_database_url, stranger), "test")
    finally:
        await operator.execute(f"DROP ROLE {stranger}")


@pytest.mark.parametrize("name", ["order", "user", "_2", "a" * 40])
async def test_names_are_quoted(empty_database_url: str, name: str) -> None:
    await migrate(empty_database_url, schema=name)
    assert len(await deployed(empty_database_url, name)) == 1
    assert (await maintain(empty_database_url, RETENTION, schema=name)).ours


@pytest.mark.parametrize(
    "name", ["", "Ours", "a b", 'a"; DROP TABLE x', "pg_ours", "information_schema", "a" * 41, "ä"]
)
async def test_other_names_are_refused(empty_database_url: str, name: str) -> None:
    with pytest.raises(ConfigError, match="lower-case letters"):
        await migrate(empty_database_url, schema=name)


async def test_no_search_path_of_others_leads_astray(operator: Connection, role: str, empty_database_url: str) -> None:
    """Of the role, of the database, of the URL; after RESET ALL; and behind a pooler that hands on no settings."""
    name = urlsplit(empty_database_url).path[1:]
    await operator.execute(f"CREATE SCHEMA elsewhere; CREATE SCHEMA ours AUTHORIZATION {role}")
    await operator.execute(f"CREATE TABLE elsewhere.cron_jobs (); GRANT USAGE ON SCHEMA elsewhere TO {role}")
    await operator.execute(f'ALTER DATABASE "{name}" SET search_path = elsewhere')
    await operator.execute(f"ALTER ROLE {role} SET search_path = elsewhere, public")
    url = url_of(empty_database_url, role)
    sockets = Path(url.partition("host=")[2])
    with TemporaryDirectory() as folder:
        async with forgetful_pooler(sockets, Path(folder)):
            pooled = url.replace(quote(str(sockets), safe="/"), folder)
            urls = url, f"{url}&options=-c%20search_path%3Delsewhere", f"{url}&search_path=elsewhere", pooled
            assert await migrate(pooled, schema="ours") > 0
            for each in urls:
                assert await migrate(each, schema="ours") == 0
                assert len(await deployed(each, "ours")) == 1
                assert (await maintain(each, RETENTION, schema="ours")).ours
                connection = await connect(each, "test", schema="ours")
                assert await connection.fetchval("SELECT current_schemas(false)") == ["ours"]
                await connection.close()
                findings = (await examine(each, ClusterSettings(), schema="ours")).findings
                assert next(found for found in findings if found.check == "schema").verdict.value == "ok"
    connection = await connect(url, "test", schema="ours")
    await connection.execute("RESET ALL")
    assert await connection.fetchval("SELECT current_schemas(false)") == ["ours"]
    await connection.close()
    assert await operator.fetchval("SELECT count(*) FROM pg_class WHERE relnamespace = 'elsewhere'::regnamespace") == 1


async def test_two_in_one_database_hear_and_lock_each_other_out_of_nothing(empty_database_url: str) -> None:
    for schema in ("one", "two"):
        await migrate(empty_database_url, schema=schema)
    one, two = (PostgresNotifications(empty_database_url, "test", schema=schema).listen() for schema in ("one", "two"))
    async with asyncio.timeout(TIMEOUT_S):
        assert await anext(one) == await anext(two) == set(map(Notified, Topic))
        held = await connect(empty_database_url, "maintains", schema="one")
        await held.execute("SELECT pg_advisory_lock(hashtextextended('one maintenance', 0))")
        assert not (await maintain(empty_database_url, RETENTION, schema="one")).ours
        assert (await maintain(empty_database_url, RETENTION, schema="two")).ours
        await held.execute("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('one module billing', 0))")
        hearing = asyncio.ensure_future(anext(one))
        assert len(await deployed(empty_database_url, "two")) == 1
        assert await anext(two) == {Notified(Topic.JOBS)}
        await held.close()
        assert not hearing.done()
        assert len(await deployed(empty_database_url, "one")) == 1
        assert await hearing == {Notified(Topic.JOBS)}
    await one.aclose()  # type: ignore[attr-defined]  # it is a generator
    await two.aclose()  # type: ignore[attr-defined]  # as above
