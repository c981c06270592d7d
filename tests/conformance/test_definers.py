"""Functions that run with their owner's rights run nobody else's code, and nobody is given rights by default."""

from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from cronring.controller.store.connect import Connection, connect
from tests.support.databases import PostgresServer

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
# What our functions name, as a view whose one row calls the trespasser's function.
SHADOW = """
CREATE FUNCTION {where}.trespass() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO seen VALUES (current_user);
    RETURN true;
END $$;
CREATE VIEW {where}.cron_jobs AS
SELECT 1::bigint AS id, 'billing.a'::text AS key, 0::bigint AS executions, now() AS removed_at WHERE {where}.trespass();
CREATE VIEW {where}.cron_executions AS
SELECT 1::bigint AS id, 1::bigint AS job_id, now() AS tick, NULL::timestamptz AS ended_at WHERE {where}.trespass();
CREATE VIEW {where}.cron_closings AS SELECT 1::bigint AS job_id, now() AS until_at WHERE {where}.trespass();
CREATE VIEW {where}.cron_histories AS SELECT 1::bigint AS job_id, 1::bigint AS runs WHERE {where}.trespass();
CREATE VIEW {where}.cron_maintenance AS SELECT interval '1 day' AS width WHERE {where}.trespass();
CREATE VIEW {where}.cron_partitions AS
SELECT 'x'::text AS name, now() - interval '1 day' AS from_at, now() AS until_at WHERE {where}.trespass();
CREATE VIEW {where}.cron_queue_lanes AS
SELECT 1::bigint AS id, 1::bigint AS lease, '{{1}}'::bigint[] AS given WHERE {where}.trespass();
CREATE VIEW {where}.cron_queue AS SELECT 1::bigint AS id, NULL::timestamptz AS ended_at WHERE {where}.trespass();
CREATE TABLE {where}.cron_fence_checks (id bigint GENERATED ALWAYS AS IDENTITY, job_key text, fence bigint);
CREATE FUNCTION {where}.on_check() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM {where}.trespass(); RETURN NULL; END $$;
CREATE TRIGGER checked AFTER INSERT ON {where}.cron_fence_checks FOR EACH ROW EXECUTE FUNCTION {where}.on_check();
CREATE FUNCTION {where}.cron_fence(text, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT {where}.trespass() $$;
CREATE FUNCTION {where}.same(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT {where}.trespass() $$;
CREATE FUNCTION {where}.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT {where}.trespass() $$;
CREATE OPERATOR {where}.= (FUNCTION = {where}.same, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR {where}.= (FUNCTION = {where}.same, LEFTARG = text, RIGHTARG = text);
"""
CALLS = (
    "cron_fence('billing.a', 1)",
    "cron_fence_commit('billing.a', 1)",
    "cron_add_partition(now() + interval '9 days')",
    "cron_stage_kept(date_trunc('day', now(), 'UTC'), 1)",
    "cron_swap_staged(date_trunc('day', now(), 'UTC'), 0, 0, 0)",
    "cron_drop_gone()",
    "cron_queue_put('q', '1')",
    "cron_queue_put_many('q', ARRAY['1', '2']::json[])",
    "cron_queue_take('q', 'c')",
    "cron_queue_extend(1)",
    "cron_queue_done(1, '{1, 2}')",
    "cron_queue_retry(1, '{1}', 'no')",
    "cron_queue_release(1)",
    "cron_queue_listen('q')",
)
FUNCTIONS = """
SELECT p.oid::regprocedure::text AS name, p.prosecdef AS definer, p.proconfig AS settings, p.prosqlbody IS NULL AS text,
       p.provolatile = 'i' AS immutable, n.nspname AS schema,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.oid = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
"""
OPEN_RELATIONS = """
SELECT c.relname FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS wanted
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_table_privilege('public', c.oid, wanted)
"""
OPEN_SEQUENCES = """
SELECT c.relname FROM pg_class c, unnest(ARRAY['SELECT', 'UPDATE', 'USAGE']) AS wanted
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
  AND c.relkind = 'S' AND has_sequence_privilege('public', c.oid, wanted)
"""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "owner")
    yield connection
    await connection.close()


@pytest.fixture
def trespasser(postgres: PostgresServer, database_url: str) -> Iterator[str]:
    """A role that may connect, and make temporary tables; and has a schema of its own."""
    database = urlsplit(database_url).path[1:]
    name = f"trespasser_{database}"
    with postgres.role(name, database, f"CREATE SCHEMA mine AUTHORIZATION {name}") as role:
        yield role


async def test_who_may_only_connect_calls_none_of_our_functions(
    owner: Connection, trespasser: str, database_url: str
) -> None:
    stranger = await asyncpg.connect(database_url, user=trespasser)
    schema = await owner.fetchval("SELECT current_schema()")
    await owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO {trespasser}")
    try:
        for call in CALLS:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="denied for function"):
                await stranger.execute(f"SELECT {schema}.{call}")
    finally:
        await stranger.close()


@pytest.mark.parametrize("where", ["pg_temp", "mine"])
async def test_even_who_may_call_them_runs_nothing_as_their_owner(
    owner: Connection, trespasser: str, database_url: str, where: str
) -> None:
    """Views, tables, functions and operators that shadow what our functions name, before all else in search_path."""
    schema = await owner.fetchval("SELECT current_schema()")
    await owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO {trespasser}")
    await owner.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {trespasser}")
    stranger = await asyncpg.connect(database_url, user=trespasser)
    try:
        await stranger.execute("CREATE TEMPORARY TABLE seen (who text); GRANT ALL ON seen TO PUBLIC")
        await stranger.execute(SHADOW.format(where=where))
        await stranger.execute(f"SET search_path = {where}, pg_catalog, {schema}")
        await stranger.execute(
            f"GRANT USAGE ON SCHEMA mine TO PUBLIC; GRANT ALL ON {where}.cron_fence_checks TO PUBLIC"
        )
        for call in CALLS:
            await stranger.execute(f"SELECT {schema}.{call}")
        assert await stranger.fetch("SELECT * FROM seen") == []
        answer = await stranger.fetchval(f"SELECT {schema}.cron_fence('billing.a', 1)")
        assert answer is False, "a shadow answered"
    finally:
        await stranger.close()


async def test_the_trap_of_the_test_above_catches(owner: Connection, trespasser: str, database_url: str) -> None:
    """With the path that cron_fence once had, the trespasser's code runs as the owner."""
    schema = await owner.fetchval("SELECT current_schema()")
    await owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO {trespasser}")
    await owner.execute(f"ALTER FUNCTION cron_fence(text, bigint) SET search_path = {schema}")
    await owner.execute(f"GRANT EXECUTE ON FUNCTION cron_fence(text, bigint) TO {trespasser}")
    stranger = await asyncpg.connect(database_url, user=trespasser)
    try:
        await stranger.execute("CREATE TEMPORARY TABLE seen (who text); GRANT ALL ON seen TO PUBLIC")
        await stranger.execute(SHADOW.format(where="pg_temp"))
        await stranger.execute(f"SELECT {schema}.cron_fence('billing.a', 1)")
        assert await stranger.fetchval("SELECT min(who) FROM seen") == "postgres"
    finally:
        await stranger.close()


async def test_every_function_of_ours_keeps_the_rule(owner: Connection) -> None:
    """A fixed path that ends in pg_temp, unless it looks nothing up when it is called. And EXECUTE for nobody."""
    functions = await owner.fetch(FUNCTIONS)
    assert len(functions) >= 14
    for function in functions:
        if function["definer"] or (function["text"] and not function["immutable"]):
            paths = [each for each in function["settings"] or [] if each.startswith("search_path=")]
            assert paths == [f"search_path={function['schema']}, pg_temp"], function["name"]
        assert not function["public"], f"PUBLIC may call {function['name']}"


async def test_only_what_needs_its_owners_rights_has_them(owner: Connection) -> None:
    definers = {row["name"].partition("(")[0] for row in await owner.fetch(FUNCTIONS) if row["definer"]}
    assert definers == {
        "cron_fence", "cron_fence_commit",  # asked by authors, whose roles see no table
        "cron_fence_check",  # a deferred trigger: before PostgreSQL 18 it runs as whoever commits
        "cron_add_partition", "cron_stage_kept", "cron_swap_staged", "cron_drop_gone",  # make and drop tables
        # Asked by consumers, likewise.
        "cron_queue_put", "cron_queue_put_many", "cron_queue_take", "cron_queue_extend", "cron_queue_done",
        "cron_queue_retry", "cron_queue_release", "cron_queue_listen",
    }  # fmt: skip


async def test_nobody_else_reads_or_writes_our_tables_views_and_sequences(owner: Connection) -> None:
    assert await owner.fetch(OPEN_RELATIONS) == []
    assert await owner.fetch(OPEN_SEQUENCES) == []
