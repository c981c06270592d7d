"""The audit log in PostgreSQL. Who holds the row of cron_audit_chain seals in batches, so no writer waits."""

import asyncio
from collections.abc import Sequence

from cronring.controller.ports.audit_chain import (
    BYTES_AT_ONCE,
    COUNTED_MAX,
    SEALED_AT_ONCE,
    AuditFilter,
    NotedRefusal,
    Sealed,
)
from cronring.controller.store.pool import Database
from cronring.schema.audit_chain import AuditRow, ChainLink, ChainPart, sealed
from cronring.sql.parameters import (
    CountUnsealed,
    GetAuditChain,
    GetAuditHash,
    GetUnsealedRows,
    ListAuditLog,
    MoveAuditHead,
    NoteRefusals,
    ReadAuditChain,
    SealRows,
    TakeAuditChain,
)


class PostgresAuditLog:
    """cronring.controller.ports.audit_chain.AuditLog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_rows(self, wanted: AuditFilter) -> Sequence[AuditRow]:
        """See cronring.controller.ports.audit_chain.AuditLog."""
        before_at, before_id = wanted.before
        given = {name: value for name, value in wanted._asdict().items() if name != "before"}
        records = await self._database.fetch(ListAuditLog(before_at=before_at, before_id=before_id, **given))
        return list(map(AuditRow._make, records))

    async def read_chain(self, after_seq: int, limit: int) -> ChainPart:
        """See cronring.controller.ports.audit_chain.AuditLog."""
        async with self._database.transaction("reading the audit log", snapshot=True) as transaction:
            ((cut_seq, cut_hash, head_seq, head_hash, unsealed),) = await transaction.fetch(
                GetAuditChain(limit=COUNTED_MAX)
            )
            previous = cut = ChainLink(cut_seq, cut_hash)
            if after_seq > cut_seq:
                found = await transaction.fetch(GetAuditHash(seq=after_seq))
                previous = ChainLink(after_seq, found[0][0] if found else b"")
            records = await transaction.fetch(
                ReadAuditChain(after_seq=previous.seq, limit=limit, bytes_max=BYTES_AT_ONCE)
            )
        return ChainPart(list(map(AuditRow._make, records)), previous, cut, ChainLink(head_seq, head_hash), unsealed)

    async def seal(self) -> Sealed:
        """See cronring.controller.ports.audit_chain.AuditLog."""
        ((unsealed, oldest, now),) = await self._database.fetch(CountUnsealed(limit=COUNTED_MAX))
        if not unsealed:
            return Sealed(0, 0, 0, None)
        rows, head = await self._seal()
        return Sealed(rows, unsealed, max(0, (now - oldest) // 1_000), head)

    # docs/decisions/0072: only the holder of the chain seals; writers and other sealers don't wait for it
    async def _seal(self) -> tuple[int, ChainLink | None]:
        async with self._database.transaction("sealing the audit log") as transaction:
            taken = await transaction.fetch(TakeAuditChain())
            if not taken:
                return 0, None
            last = ChainLink._make(taken[0])
            records = await transaction.fetch(GetUnsealedRows(limit=SEALED_AT_ONCE, bytes_max=BYTES_AT_ONCE))
            # Hashes are computed in a thread: ticks wait for the event loop.
            rows = await asyncio.to_thread(sealed, last, [AuditRow._make((*record, 0, b"")) for record in records])
            if not rows:
                return 0, last
            head = ChainLink(rows[-1].seq, rows[-1].hash)
            await transaction.fetch(
                SealRows(
                    ids=[row.row_id for row in rows], seqs=[row.seq for row in rows], hashes=[row.hash for row in rows]
                )
            )
            await transaction.fetch(MoveAuditHead(seq=head.seq, hash=head.hash))
        return len(rows), head

    async def note_refusals(self, refusals: Sequence[NotedRefusal], controller_id: str) -> None:
        """See cronring.controller.ports.audit_chain.AuditLog."""
        await self._database.fetch(
            NoteRefusals(
                ages_ms=[each.age_ms for each in refusals],
                refused=[each.refused for each in refusals],
                times=[each.times for each in refusals],
                principals=[each.principal for each in refusals],
                methods=[each.method for each in refusals],
                origins=[each.origin for each in refusals],
                whys=[each.why for each in refusals],
                controller_id=controller_id,
            )
        )
