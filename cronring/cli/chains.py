"""Where the audit log's chain is read from: controllers, the database itself, or files that were exported."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cronring.cli.conversation import ask
from cronring.cli.failures import Failure
from cronring.cli.interrupts import run_loop
from cronring.schema.audit_chain import FIELDS, HASH_BYTES, START, AuditRow, ChainLink, ChainPart, fields_of
from cronring.schema.instant import to_us

if TYPE_CHECKING:
    from cronring.client import AsyncClient

PAGE_ROWS: Final = 1_000
_NUMBERS: Final = ("seq", "id", "times")
_MAY_BE_NULL: Final = ("refused", "before", "after")

Take = Callable[[ChainPart], None]
"""Is given each part, in order; the last one has no rows."""


def read_controllers(controllers: tuple[str, ...], after_seq: int, take: Take) -> None:
    """Raises Failure."""

    async def question(client: "AsyncClient") -> None:
        await _read(client.audit_log.chain, after_seq, take)

    ask(controllers, question)


def read_database(url: str, schema: str, after_seq: int, take: Take) -> None:
    """Raises StoreUnavailable, StoreError."""
    run_loop(_read_database(url, schema, after_seq, take))


async def _read_database(url: str, schema: str, after_seq: int, take: Take) -> None:
    from cronring.controller.store.audit_chain import PostgresAuditLog
    from cronring.controller.store.pool import Database

    database = await Database.open(url, "cronring audit-log", 1, schema=schema)
    try:
        audit_log = PostgresAuditLog(database)
        await _read(lambda after: audit_log.read_chain(after, PAGE_ROWS), after_seq, take)
    finally:
        await database.close()


async def _read(read: Any, after_seq: int, take: Take) -> None:
    """Raises Failure."""
    while True:
        part: ChainPart = await read(after_seq)
        if part.rows and part.rows[-1].seq <= after_seq:
            raise Failure(f"who answers gives row {part.rows[-1].seq} behind row {after_seq}: that is no chain")
        take(part)
        if not part.rows:
            return
        after_seq = part.rows[-1].seq


def exported_line(row: AuditRow, previous: bytes) -> str:
    """One line of an export: what is hashed, the hash before it, and its own. Plain ASCII, whoever wrote the texts."""
    return json.dumps({**fields_of(row), "previous": previous.hex(), "hash": row.hash.hex()}, separators=(",", ":"))


def rows_of_files(files: Sequence[Path]) -> Iterator[tuple[AuditRow, ChainLink]]:
    """Rows as they stand there, each with the position before it by its own line. Raises Failure."""
    for path in files:
        try:
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        yield _row_of(line)
                    except (ValueError, KeyError, TypeError, OverflowError) as error:
                        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
                        raise Failure(f"{path}, line {number}: this is no row of an export: {why}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}") from None


def _row_of(line: str) -> tuple[AuditRow, ChainLink]:
    """Raises ValueError, KeyError, TypeError, OverflowError."""
    found = json.loads(line)
    values = {name: found[name] for name in FIELDS}
    for name, value in values.items():
        wanted = int if name in _NUMBERS else str
        if type(value) is not wanted and not (value is None and name in _MAY_BE_NULL):
            raise ValueError(f"its {name} is no {'number' if wanted is int else 'text'}")
    moment = datetime.strptime(values.pop("at"), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    row_id, seq = values.pop("id"), values.pop("seq")
    row = AuditRow(row_id, to_us(moment), seq=seq, hash=_hash_of(found["hash"]), **values)
    return row, START if seq == 1 else ChainLink(seq - 1, _hash_of(found["previous"]))


def _hash_of(digits: str) -> bytes:
    digest = bytes.fromhex(digits)
    if len(digest) != HASH_BYTES:
        raise ValueError(f"a hash has {2 * HASH_BYTES} digits")
    return digest
