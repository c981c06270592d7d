"""What only a real database does: it goes away, comes back, refuses, and notifies."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from cronring.controller.core.model import Job, SkipRequest
from cronring.controller.core.orders.orders import Cancel, Pause, Resume, SkipNext
from cronring.controller.errors import NotFound, SchemaVersionError, StoreError, StoreUnavailable
from cronring.controller.ports.store import Notified, Topic
from cronring.controller.ports.webhooks import BooksReading, DeliveryFilter, NewWebhook
from cronring.controller.store.connect import connect, connect_arguments
from cronring.controller.store.listen import PostgresNotifications
from cronring.controller.store.notices import PostgresNotifier
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from cronring.sql.loader import numbered
from cronring.sql.parameters import GetNow
from cronring.sql.records import Statement
from tests.conformance.harness import CONSOLE, PostgresScene, World, claim_of, end_of
from tests.conformance.test_orphans import KEY, WITH, WITHOUT, deploy, make
from tests.support.databases import PostgresServer, running_server
from tests.support.faked_clocks import unless_clock_is_faked
from tests.support.waiting import TIMEOUT_S

BILLING = Module("billing", (Verb("a", schedule="every 1h"),))
SLOTS = tuple(range(4096))
WEBHOOK = NewWebhook("pager", "http://127.0.0.1:1", "cronring1$plain$$", (), (), "", "", "", {}, "ann")


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    with running_server("postgres18") as server:
        yield server


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, "cronring test", connections=4)
    yield database
    await database.close()


async def test_what_a_herd_opened_stays_for_the_next_one(database: Database) -> None:
    """With the plans of its statements, which take longer to make than a herd's first claim."""
    await asyncio.gather(*(database.fetch(GetNow()) for _ in range(20)))
    pool = database._pool
    assert pool.get_idle_size() == 4
    timers = [holder._inactive_callback for holder in pool._holders]  # type: ignore[attr-defined]  # no stub names it
    assert timers == [None] * 4, "one would close it some minutes after its last statement"


async def test_a_database_that_was_never_migrated_is_refused(empty_database_url: str) -> None:
    with pytest.raises(SchemaVersionError, match="cronring migrate"):
        await Database.open(empty_database_url, "cronring test")


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: object) -> None:
    for url in (f"postgresql:///x?host={tmp_path}", "postgresql://127.0.0.1:1/x?connect_timeout=2"):
        with pytest.raises(StoreUnavailable):
            await Database.open(url, "cronring test")


async def test_a_database_that_does_not_exist_is_refused_for_good(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        await Database.open(postgres.url("no_such_database"), "cronring test")


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_the_store_recovers_when_postgresql_comes_back(own_server: PostgresServer, how: str) -> None:
    name = own_server.create_database()
    database = await Database.open(own_server.url(name), "cronring test")
    store = PostgresStore(database)
    try:
        deployed = await store.create_deployment(BILLING, "a" * 64, 1, 1_000, True)
        own_server.stop() if how == "stop" else own_server.kill()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.get_cron_jobs(SLOTS, 86_400_000)
        own_server.start()
        assert (await store.get_cron_jobs(SLOTS, 86_400_000))[1] == deployed.jobs
    finally:
        await database.close()
        own_server.drop_database(name)


async def test_connections_ended_by_an_operator_cost_one_failure_at_most(database: Database, database_url: str) -> None:
    store = PostgresStore(database)
    operator = await connect(database_url, "operator")
    try:
        for _ in range(5):
            await asyncio.gather(*(store.find_peers() for _ in range(4)))
            await operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cronring test'"
            )
            outcomes = await asyncio.gather(*(store.find_peers() for _ in range(8)), return_exceptions=True)
            assert all(outcome == [] or isinstance(outcome, StoreUnavailable) for outcome in outcomes), outcomes
            assert await store.find_peers() == []
    finally:
        await operator.close()


async def test_a_server_that_became_a_standby_is_left(database: Database, database_url: str) -> None:
    """What a fail-over looks like from a connection that survives it: writes are refused."""
    store = PostgresStore(database)
    operator = await connect(database_url, "operator")
    try:
        await asyncio.gather(*(store.find_peers() for _ in range(4)))
        backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'cronring test'"
        before = {record[0] for record in await operator.fetch(backends)}
        async with database._connection("demoting") as connection:
            await connection.execute("SET default_transaction_read_only = on")
        outcomes = await asyncio.gather(*(store.remove_controller("c1") for _ in range(4)), return_exceptions=True)
        (failed,) = [outcome for outcome in outcomes if outcome is not None]
        assert isinstance(failed, StoreUnavailable)
        assert "read-only" in str(failed)
        await asyncio.gather(*(store.remove_controller("c1") for _ in range(4)))
        after = {record[0] for record in await operator.fetch(backends)}
        assert not before & after
    finally:
        await operator.close()


async def test_of_several_hosts_the_one_that_takes_writes_is_used(
    own_server: PostgresServer, postgres: PostgresServer, tmp_path: object
) -> None:
    own_server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    own_server.execute("SELECT pg_reload_conf()")
    try:
        hosts = f"{tmp_path},{own_server.sockets},{postgres.sockets}"
        connection = await connect(f"postgresql://postgres@/postgres?host={hosts}", "cronring test")
        try:
            found = await connection.fetchval("SHOW unix_socket_directories")
        finally:
            await connection.close()
        assert found == str(postgres.sockets)
        with pytest.raises(StoreUnavailable):
            await connect(own_server.url(), "cronring test")
    finally:
        own_server.stop()
        (own_server.data / "postgresql.auto.conf").write_text("")
        own_server.start()


async def test_a_cancelled_statement_leaves_no_connection_behind_in_use(database: Database, database_url: str) -> None:
    store = PostgresStore(database)
    locker = await connect(database_url, "locker")
    try:
        async with locker.transaction():
            await locker.execute("LOCK TABLE controllers IN ACCESS EXCLUSIVE MODE")
            waiting = [asyncio.ensure_future(store.find_peers()) for _ in range(4)]
            while await locker.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < 4:
                pass
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert await database.fetch(GetNow())
        assert await store.find_peers() == []
    finally:
        await locker.close()


@unless_clock_is_faked
async def test_a_statement_that_takes_too_long_is_unavailable(database_url: str) -> None:
    database = await Database.open(f"{database_url}&options=-c%20statement_timeout%3D500", "cronring test")
    locker = await connect(database_url, "locker")
    try:
        async with locker.transaction():
            await locker.execute("LOCK TABLE controllers IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreUnavailable, match="statement timeout"):
                await PostgresStore(database).find_peers()
    finally:
        await locker.close()
        await database.close()


async def test_a_statement_of_any_length_is_planned_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncpg keeps none above 15,360 characters unless told to: an end, which has nearly as many, took 10 ms more."""
    long = numbered(f"SELECT :zero::integer, pg_backend_pid() /* {'-' * 20_000} */")
    kept = numbered("SELECT statement FROM pg_prepared_statements")
    monkeypatch.setattr("cronring.sql.records.loaded", lambda: {"Long": long, "Kept": kept})

    class Long(Statement):
        zero: int

    class Kept(Statement): ...

    database = await Database.open(database_url, "cronring test", connections=1)
    try:
        await database.fetch(Long(zero=0))
        assert long.text in [row[0] for row in await database.fetch(Kept())]
    finally:
        await database.close()


async def test_deployments_are_notified(database: Database, database_url: str) -> None:
    store = PostgresStore(database)
    notifications = PostgresNotifications(database_url, "cronring listener").listen()
    async with asyncio.timeout(TIMEOUT_S):
        assert await anext(notifications) == set(map(Notified, Topic))  # connected
        deployed = await store.create_deployment(BILLING, "a" * 64, 1, 1_000, True)
        assert await anext(notifications) == {Notified(Topic.JOBS)}
        again = asyncio.ensure_future(anext(notifications))
        await store.create_deployment(BILLING, "a" * 64, 1, 1_000, True)  # changes nothing
        await store.kill_deployment(deployed.key)
        await again
    await notifications.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_what_is_to_be_cancelled_is_notified_apart(database: Database, database_url: str) -> None:
    notifications = PostgresNotifications(database_url, "cronring listener").listen()
    connection = await connect(database_url, "scene")
    world = World(PostgresScene(database, connection))
    async with asyncio.timeout(TIMEOUT_S):
        (execution,) = await world.running("c1", "a")
        await anext(notifications)  # connected
        assert await world.execution_control.cancel_execution(execution.execution_id, "ann", "")
        assert await anext(notifications) == {Notified(Topic.CANCELS)}
    await notifications.aclose()  # type: ignore[attr-defined]  # it is a generator
    await connection.close()


async def test_the_first_webhook_is_notified_and_its_books_are_read_by_one(
    database: Database, database_url: str
) -> None:
    first, second = PostgresNotifier(database, "c1", 30_000, CONSOLE), PostgresNotifier(database, "c2", 30_000, CONSOLE)
    webhooks = PostgresWebhooks(database)
    assert await first.read() == await second.read() == BooksReading(ours=False, wanted=False)
    notifications = PostgresNotifications(database_url, "cronring listener").listen()
    async with asyncio.timeout(TIMEOUT_S):
        await anext(notifications)  # connected
        await webhooks.add(WEBHOOK)
        assert await anext(notifications) == {Notified(Topic.WEBHOOKS)}
        assert [await first.read(), await second.read()] == [BooksReading(ours=True), BooksReading(ours=False)]
        await webhooks.set_enabled("pager", enabled=False, reason="")
        assert [await first.read(), await second.read()] == [
            BooksReading(True, wanted=False),
            BooksReading(False, wanted=False),
        ]
        await webhooks.set_enabled("pager", enabled=True, reason="")
        assert await anext(notifications) == {Notified(Topic.WEBHOOKS)}
        assert await second.read() == BooksReading(ours=True)
    await notifications.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_webhooks_are_told_of_orphans_and_of_their_return(database: Database, database_url: str) -> None:
    connection = await connect(database_url, "scene")
    world = World(PostgresScene(database, connection))
    notifier, webhooks = PostgresNotifier(database, "c1", 30_000, CONSOLE), PostgresWebhooks(database)
    await deploy(world, WITH, "a")
    await make(world)
    await deploy(world, WITHOUT, "b")  # before anybody wanted to be told
    await webhooks.add(WEBHOOK)
    await deploy(world, WITH, "a")
    killed = await world.store.kill_deployment("billing@aaaaaaaaaaaa", "ada", "retired")
    assert killed.orphaned == (KEY,)
    assert (await notifier.read()).added == 2
    assert (await notifier.read()).added == 0, "each is told once"
    told = [json.loads(row.body) for row in reversed(await webhooks.deliveries(DeliveryFilter(job=KEY), 2**62, 9))]
    assert [(body["type"], body["data"]["deployment"], body["data"]["by"], body["data"]["note"]) for body in told] == [
        ("job.brought_back", "billing@aaaaaaaaaaaa", "ada", "release"),
        ("job.orphaned", "billing@aaaaaaaaaaaa", "ada", "retired"),
    ]
    assert all((body["data"]["job"], body["data"]["labels"]) == (KEY, {"tier": "slow"}) for body in told)
    await connection.close()


async def test_a_listener_tells_of_every_reconnection(own_server: PostgresServer) -> None:
    name = own_server.create_database()
    notifications = PostgresNotifications(own_server.url(name), "cronring listener").listen()
    async with asyncio.timeout(TIMEOUT_S):
        await anext(notifications)
        own_server.kill()
        reconnected = asyncio.ensure_future(anext(notifications))
        own_server.start()
        await reconnected
        heard = asyncio.ensure_future(anext(notifications))
        connection = await connect(own_server.url(name), "notifier")
        await connection.execute('NOTIFY "cronring.jobs"')
        await heard
        await connection.close()
    await notifications.aclose()  # type: ignore[attr-defined]  # it is a generator
    own_server.drop_database(name)


@pytest.mark.parametrize(
    ("url", "dsn", "timeout", "setting"),
    [
        ("postgresql://u:p@h:5433/db?sslmode=disable", "postgresql://u:p@h:5433/db?sslmode=disable", 5.0, {}),
        ("postgresql://h1,h2:5433/db?connect_timeout=3", "postgresql://h1,h2:5433/db", 3.0, {}),
        ("postgresql:///db?host=/tmp/x&keepalives=1", "postgresql:///db?host=%2Ftmp%2Fx", 5.0, {}),
        ("postgres://h/db?options=-c%20a%3D1%20--b-c%3D2", "postgres://h/db", 5.0, {"a": "1", "b_c": "2"}),
        ("postgresql://h/db?target_session_attrs=any", "postgresql://h/db?target_session_attrs=any", 5.0, {}),
    ],
)
def test_libpq_urls_are_understood(url: str, dsn: str, timeout: float, setting: dict[str, str]) -> None:
    arguments = connect_arguments(url, "cronring", {"jit": "off"}, "ours")
    assert arguments["dsn"] == dsn
    assert arguments["timeout"] == timeout
    path = {"search_path": '"ours", pg_temp'}
    assert arguments["server_settings"] == {"application_name": "cronring", "jit": "off", **setting, **path}
    assert arguments["target_session_attrs"] == "read-write"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://u:secret@h:abc/x", "the database URL is wrong: "),
        ("postgresql://u:secret@h/x?connect_timeout=soon", "the database URL is wrong: "),
        ("postgresql://u:secret@h/x?options=-c 'a", "the database URL is wrong: "),
        ("mysql://u:secret@h/x", "the database URL is wrong: it must begin with postgresql://"),
        ("postgresql://u:secret@127.0.0.1:1/x", "connecting to PostgreSQL at 127.0.0.1:1: "),
        ("postgresql://u:se/secret@127.0.0.1:1/x", "connecting to PostgreSQL: |the database URL is wrong: "),
        ("postgresql:///x?host=/nowhere", "connecting to PostgreSQL at /nowhere: "),
    ],
)
async def test_a_url_that_leads_nowhere_is_refused_by_its_server_without_its_password(url: str, says: str) -> None:
    for attempt in (connect(url, "cronring"), Database.open(url, "cronring", connections=1)):
        with pytest.raises((StoreError, StoreUnavailable), match=says) as refused:
            await attempt
        assert "secret" not in str(refused.value)


async def test_every_tick_that_does_not_run_is_counted_once_with_its_reason(
    database: Database, database_url: str
) -> None:
    """Whoever decides it: claims, ends, skips, orders and undeploys; two controllers, one of them too late."""
    other, connection = await Database.open(database_url, "cronring test"), await connect(database_url, "cronring test")
    try:
        scene = PostgresScene(database, connection)
        world, late = World(scene), World(PostgresScene(other, connection))
        await skipped_in_all_ways(world, late)
        booked: dict[str, int] = {}
        for skip in await scene.skips():
            booked[skip.reason] = booked.get(skip.reason, 0) + skip.ticks
        assert database.skipped + other.skipped == booked
        assert len(booked) >= 6, booked
    finally:
        await connection.close()
        await other.close()


async def skipped_in_all_ways(world: World, late: World) -> None:
    """Each statement is repeated by somebody who comes too late."""
    second = 1_000_000
    await world.controller("c1")
    await world.runner("r1")
    verbs = tuple(Verb(name, schedule="1s", policy=Policy(jitter="off")) for name in ("a", "b", "c", "d", "e"))
    deployed = await world.store.create_deployment(Module("billing", verbs), "a" * 64, 1, 1_000, True)
    a, b, c, d, e = [await world.due(job, 30) for job in sorted(deployed.jobs)]

    def ranges(job: Job, reason: SkipReason, ticks: int = 3) -> tuple[Skipped, ...]:
        assert job.next_tick is not None
        return (Skipped(reason, job.next_tick, job.next_tick + (ticks - 1) * second, ticks),)

    assert a.next_tick is not None
    assert b.next_tick is not None
    claim = claim_of(a, skipped=ranges(a, SkipReason.SUPERSEDED))
    claim = claim._replace(run_tick=a.next_tick + 3 * second, run_at=a.next_tick + 3 * second)
    for each in world, late:
        await each.store.start_cron_jobs("c1", [claim], 1_000)
    (execution,) = await world.store.get_unfinished((1,))
    passed = Skipped(SkipReason.OVERLAP, execution.tick + second, execution.tick + 2 * second, 2)
    for each in world, late:
        await each.store.end_cron_jobs("c1", [end_of(execution, skipped=passed, next_after=3 * second)])
    request = SkipRequest(b.job_id, b.next_tick, b.revision, ranges(b, SkipReason.NO_RUNNER), None, None)
    request = request._replace(next_tick=b.next_tick + 3 * second, next_run_at=b.next_tick + 3 * second)
    for each in world, late:
        await each.store.skip_ticks("c1", [request])
    await world.control.order_job(c.key, Pause(), "me")
    await late.control.order_job(c.key, Resume(), "me")
    await late.control.order_job(d.key, SkipNext(), "me")
    with pytest.raises(NotFound):
        await world.control.order_job("billing.nobody", Pause(), "me")
    await world.control.order_job(e.key, Cancel(), "me")
    await late.store.kill_deployment(deployed.key)
