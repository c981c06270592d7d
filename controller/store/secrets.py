"""What is sealed in PostgreSQL: webhooks' endpoints."""

from collections.abc import Mapping, Sequence

from cronring.controller.ports.secrets import SealedRow
from cronring.controller.store.pool import Database
from cronring.sql.parameters import CountSealed, ListSealedOtherwise, ReplaceSealed


class PostgresSealedRows:
    """cronring.controller.ports.secrets.SealedRows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_key(self) -> Mapping[str, int]:
        return {record["key_id"]: record["secrets"] for record in await self._database.fetch(CountSealed())}

    async def sealed_otherwise(self, key_id: str, after_id: int, limit: int) -> Sequence[SealedRow]:
        records = await self._database.fetch(ListSealedOtherwise(key_id=key_id, after_id=after_id, limit=limit))
        return [SealedRow(*record) for record in records]

    async def replace(self, row: SealedRow, sealed: str) -> bool:
        changed = await self._database.fetch(ReplaceSealed(id=row.row_id, before=row.sealed, after=sealed))
        return bool(changed)
