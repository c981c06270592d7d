"""The audit log on PostgreSQL: sealed once and without gaps, kept as it is, cut from its beginning, and read."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import pytest

from cronring.controller.errors import StoreError
from cronring.controller.ports.audit_chain import AuditFilter, NotedRefusal
from cronring.controller.store import audit_chain
from cronring.controller.store.audit_chain import PostgresAuditLog
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.maintenance import _cut_audit_log
from cronring.controller.store.pool import Database
from cronring.schema.audit_chain import START, ChainLink
from cronring.schema.audit_check import ChainCheck, FaultKind
from tests.support.audit_rows import tamper, write
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
EVER: Final = AuditFilter(-62_135_596_800_000_000, (253_402_300_799_999_999, 2**63 - 1), 100)
PLACES: Final = "SELECT seq, id FROM cron_audit_log ORDER BY seq NULLS LAST, id"


class Books:
    """The log, and connections of who writes it. `database`: a controller's."""

    def __init__(self, url: str, database: Database, connection: Connection) -> None:
        self.url = url
        self.database = database
        self.connection = connection
        self.log = PostgresAuditLog(database)

    async def written(self, count: int) -> list[int]:
        return [await write(self.connection, number) for number in range(1, count + 1)]

    async def faults(self, *expected: ChainLink, limit: int = 2) -> list[tuple[FaultKind, int]]:
        """What `verify` finds, page by page."""
        part = await self.log.read_chain(0, limit)
        check = ChainCheck(part.cut, expected)
        while part.rows:
            for row in part.rows:
                check.take(row)
            part = await self.log.read_chain(part.rows[-1].seq, limit)
        return [(fault.kind, fault.seq) for fault in check.finish(part.head)]


@pytest.fixture
async def books(database_url: str) -> AsyncIterator[Books]:
    database = await Database.open(database_url, "cronring test", 4)
    connection = await connect(database_url, "cronring test scene")
    yield Books(database_url, database, connection)
    await connection.close()
    await database.close()


async def test_rows_are_sealed_in_order_and_the_next_batch_goes_on(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_chain, "SEALED_AT_ONCE", 2)
    assert await books.log.seal() == (0, 0, 0, None)
    ids = await books.written(3)
    first = await books.log.seal()
    assert (first.rows, first.unsealed, first.head and first.head.seq) == (2, 3, 2)
    second = await books.log.seal()
    assert (second.rows, second.unsealed, second.head and second.head.seq) == (1, 1, 3)
    assert [tuple(row) for row in await books.connection.fetch(PLACES)] == list(enumerate(ids, 1))
    part = await books.log.read_chain(0, 10)
    assert (part.previous, part.cut, part.head, part.unsealed) == (START, START, second.head, 0)
    assert part.rows[0].after == '{"paused": 1, "note": "ä\U0001f600"}'
    assert await books.faults(second.head or START) == []


async def test_large_rows_are_sealed_and_read_a_few_at_a_time(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_chain, "BYTES_AT_ONCE", 60)
    await books.written(5)
    assert (await books.log.seal()).rows == 2
    while (await books.log.seal()).rows:
        pass
    assert len((await books.log.read_chain(0, 10)).rows) == 2
    assert await books.faults(limit=10) == []


async def test_a_writer_that_stays_open_holds_nobody_up_and_is_sealed_later(books: Books) -> None:
    other = await connect(books.url, "a slow writer")
    writing = other.transaction()
    await writing.start()
    slow = await write(other, 100)
    ids = await books.written(2)
    async with asyncio.timeout(TIMEOUT_S):
        assert (await books.log.seal()).rows == 2
    await writing.commit()
    assert (await books.log.seal()).rows == 1
    assert [row["id"] for row in await books.connection.fetch(PLACES)] == [*ids, slow]
    assert slow < ids[0]
    assert await books.faults() == []
    await other.close()


async def test_a_sealer_that_stays_open_holds_no_writer_and_no_other_sealer_up(books: Books) -> None:
    await books.written(2)
    other = await connect(books.url, "a slow sealer")
    sealing = other.transaction()
    await sealing.start()
    await other.execute("SELECT FROM cron_audit_chain FOR UPDATE")
    async with asyncio.timeout(TIMEOUT_S):
        await books.written(1)
        assert (await books.log.seal())[:2] == (0, 3)
    await sealing.rollback()
    assert (await books.log.seal()).rows == 3
    await other.close()


async def test_a_sealer_that_dies_leaves_nothing_half(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    await books.written(3)

    def dying(**_: Any) -> Any:
        raise ConnectionResetError

    monkeypatch.setattr(audit_chain, "MoveAuditHead", dying)
    with pytest.raises(Exception, match=r".*"):
        await books.log.seal()
    assert [row["seq"] for row in await books.connection.fetch(PLACES)] == [None] * 3
    monkeypatch.undo()
    assert (await books.log.seal()).rows == 3
    assert await books.faults() == []


async def test_sealers_and_writers_at_once_make_one_chain_without_gaps(books: Books) -> None:
    writers = [await connect(books.url, f"writer {number}") for number in range(3)]
    done = asyncio.Event()

    async def writes(connection: Connection) -> None:
        for number in range(40):
            async with connection.transaction():
                await write(connection, number)
                await asyncio.sleep(0)

    async def seals() -> int:
        rows, log = 0, PostgresAuditLog(books.database)
        while True:
            ended = done.is_set()
            found = await log.seal()
            rows += found.rows
            if ended and not found.unsealed:
                return rows

    sealing = [asyncio.create_task(seals()) for _ in range(3)]
    await asyncio.gather(*map(writes, writers))
    done.set()
    assert sum(await asyncio.gather(*sealing)) == 120
    assert [row["seq"] for row in await books.connection.fetch(PLACES)] == list(range(1, 121))
    assert await books.faults(limit=50) == []
    for connection in writers:
        await connection.close()


ACCIDENTS: Final = (
    "UPDATE cron_audit_log SET principal = 'token:eve' WHERE id = 1",
    "UPDATE cron_audit_log SET seq = 9 WHERE seq = 1",
    "UPDATE cron_audit_log SET seq = NULL, hash = NULL WHERE seq = 1",
    "UPDATE cron_audit_log SET times = 2, seq = 9, hash = decode(repeat('00', 32), 'hex') WHERE seq IS NULL",
    "DELETE FROM cron_audit_log WHERE seq = 1",
    "DELETE FROM cron_audit_log WHERE seq IS NULL",
    "TRUNCATE cron_audit_log",
)


async def test_nothing_is_changed_by_accident(books: Books) -> None:
    await books.written(2)
    await books.log.seal()
    await write(books.connection, 3)
    before = await books.connection.fetch("SELECT * FROM cron_audit_log ORDER BY id")
    for statement in ACCIDENTS:
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="audit log"):
            await books.connection.execute(statement)
    assert await books.connection.fetch("SELECT * FROM cron_audit_log ORDER BY id") == before


CHANGES: Final = (
    "id = 99", "at = at + interval '1 microsecond'", "refused = ''", "times = 2", "principal = 'token:eve'",
    "method = '/m'", "origin = '::1'", "namespace = ''", "subject = ''", "before = NULL", "after = after || ' '",
    "remark = ''", "controller_id = 'c2'", "hash = decode(repeat('00', 32), 'hex')",
)  # fmt: skip


async def test_whatever_its_owner_does_to_it_is_named(books: Books) -> None:
    await books.written(6)
    await books.log.seal()
    trying = books.connection
    changed, missing, moved = FaultKind.CHANGED, FaultKind.MISSING, FaultKind.OUT_OF_ORDER
    table = "cron_audit_log"
    tried: list[tuple[list[tuple[FaultKind, int]], tuple[str, ...]]] = [
        *(([(changed, 3)], (f"UPDATE {table} SET {change} WHERE seq = 3",)) for change in CHANGES),
        ([(missing, 1)], (f"DELETE FROM {table} WHERE seq = 1",)),
        ([(missing, 3)], (f"DELETE FROM {table} WHERE seq = 3",)),
        ([(missing, 6)], (f"DELETE FROM {table} WHERE seq = 6",)),
        (
            [(moved, 2), (moved, 5)],
            tuple(
                f"UPDATE {table} SET seq = {after} WHERE seq = {before}"
                for before, after in ((2, 99), (5, 2), (99, 5))
            ),
        ),
        (
            [(changed, 7)],
            (
                f"INSERT INTO {table} (principal, method, subject, seq, hash)"
                " VALUES ('token:eve', '/m', '', 7, decode(repeat('00', 32), 'hex'))",
            ),
        ),
        ([(FaultKind.REWRITTEN, 6)], ("UPDATE cron_audit_chain SET head_hash = decode(repeat('00', 32), 'hex')",)),
    ]  # fmt: skip
    await trying.execute(f"ALTER TABLE {table} ALTER id SET GENERATED BY DEFAULT")
    kept = await trying.fetch(f"SELECT * FROM {table}"), await trying.fetch("SELECT * FROM cron_audit_chain")
    for found, statements in tried:
        await tamper(trying, *statements)
        assert await books.faults(limit=100) == found, statements
        await _put_back(trying, *kept)
    assert await books.faults() == []


async def _put_back(connection: Connection, rows: list[asyncpg.Record], chain: list[asyncpg.Record]) -> None:
    (head,) = [(row["head_seq"], row["head_hash"]) for row in chain]
    await tamper(connection, "DELETE FROM cron_audit_log")
    await connection.copy_records_to_table("cron_audit_log", records=[tuple(row) for row in rows])
    await connection.execute("UPDATE cron_audit_chain SET head_seq = $1, head_hash = $2", *head)


async def test_retention_cuts_whole_beginnings_and_the_rest_is_still_whole(books: Books) -> None:
    await books.written(4)
    await books.log.seal()
    await write(books.connection, 5)  # not sealed
    whole = await books.log.read_chain(0, 10)
    # Old: rows 1 and 2, and 4, which has to wait for 3.
    await tamper(books.connection, "UPDATE cron_audit_log SET at = at - interval '500 days' WHERE seq IN (1, 2, 4)")
    await _cut_audit_log(books.connection, 400 * 86_400_000)
    part = await books.log.read_chain(0, 10)
    assert [row.seq for row in part.rows] == [3, 4]
    assert part.cut == part.previous == ChainLink(2, whole.rows[1].hash)
    assert (await books.connection.fetchval("SELECT count(*) FROM cron_audit_log"), part.unsealed) == (3, 1)
    await tamper(books.connection, "UPDATE cron_audit_log SET at = at + interval '500 days' WHERE seq = 4")
    assert await books.faults(ChainLink(2, whole.rows[1].hash)) == []
    assert await books.faults(ChainLink(1, whole.rows[0].hash)) == [(FaultKind.UNKNOWN, 1)]
    await books.log.seal()
    assert [row.seq for row in (await books.log.read_chain(0, 10)).rows] == [3, 4, 5]


async def test_the_whole_chain_may_grow_old_and_goes_on_behind_it(books: Books) -> None:
    await books.written(2)
    await books.log.seal()
    await tamper(books.connection, "UPDATE cron_audit_log SET at = at - interval '500 days'")
    await _cut_audit_log(books.connection, 400 * 86_400_000)
    part = await books.log.read_chain(0, 10)
    assert (part.rows, part.cut) == ([], part.head)
    await books.written(1)
    await books.log.seal()
    assert [row.seq for row in (await books.log.read_chain(0, 10)).rows] == [3]
    assert await books.faults() == []


async def test_retention_waits_for_no_sealer(books: Books) -> None:
    await books.written(1)
    await books.log.seal()
    await tamper(books.connection, "UPDATE cron_audit_log SET at = at - interval '500 days'")
    other = await connect(books.url, "a slow sealer")
    async with other.transaction():
        await other.execute("SELECT FROM cron_audit_chain FOR UPDATE")
        async with asyncio.timeout(TIMEOUT_S):
            await _cut_audit_log(books.connection, 400 * 86_400_000)
    assert len((await books.log.read_chain(0, 10)).rows) == 1
    await other.close()


async def test_rows_are_listed_by_what_they_say_and_to_whom_they_may_be_shown(books: Books) -> None:
    for number, namespace, principal, refused in (
        (1, "billing", "token:ci", None), (2, "prod", "token:ci", None), (3, "", "token:ann", None),
        (4, "", "token:eve", "PERMISSION_DENIED"),
    ):  # fmt: skip
        await write(books.connection, number, namespace, principal, refused)
    await books.log.seal()

    async def listed(**wanted: Any) -> list[str]:
        return [row.subject.rpartition(".v")[2] for row in await books.log.list_rows(EVER._replace(**wanted))]

    assert await listed() == ["4", "3", "2", "1"]
    assert await listed(namespaces=("billing", "prod")) == ["2", "1"]
    assert await listed(namespaces=()) == []
    assert await listed(namespaces=("",)) == []
    assert await listed(namespace="prod") == ["2"]
    assert await listed(principal="token:ci") == ["2", "1"]
    assert await listed(method="Pause", subject="billing/m") == ["1"]
    assert await listed(method="/cronring.v1.Jobs/PauseJob%") == []
    assert await listed(refusals=False) == ["3", "2", "1"]
    assert await listed(changes=False) == ["4"]
    latest, *_ = await books.log.list_rows(EVER._replace(limit=1))
    assert (latest.seq, len(latest.hash), latest.refused) == (4, 32, "PERMISSION_DENIED")
    assert await listed(before=(latest.at, latest.row_id), limit=2) == ["3", "2"]
    assert await listed(since=latest.at) == ["4"]
    assert await listed(before=(latest.at, 0)) == ["3", "2", "1"]


async def test_refusals_are_written_with_when_the_first_of_them_was(books: Books) -> None:
    refusal = NotedRefusal(60_000, "UNAUTHENTICATED", 7, "local:nobody", "/m", "10.0.0.1", "no token")
    await books.log.note_refusals([refusal, refusal._replace(age_ms=0, origin="")], "c1")
    later, first = await books.log.list_rows(EVER)
    assert first[2:9] == ("UNAUTHENTICATED", 7, "local:nobody", "/m", "10.0.0.1", "", "")
    assert (first.remark, first.controller_id, later.at - first.at) == ("no token", "c1", 60_000_000)
    assert (first.seq, first.hash) == (0, b"")
    assert (await books.log.seal()).rows == 2
    with pytest.raises(StoreError):
        await books.log.note_refusals([refusal._replace(times=0)], "c1")


async def test_the_oldest_unsealed_row_tells_how_far_behind_it_is(books: Books) -> None:
    await write(books.connection, 1)
    await tamper(books.connection, "UPDATE cron_audit_log SET at = at - interval '90 seconds'")
    await books.connection.execute("BEGIN")
    await books.connection.execute("SELECT FROM cron_audit_chain FOR UPDATE")

    async def seen() -> bool:
        found = await books.log.seal()
        return (found.rows, found.unsealed) == (0, 1) and 90_000 <= found.oldest_ms < 3_600_000

    await wait_until(seen, "nobody said how old the oldest is")
    await books.connection.execute("ROLLBACK")
