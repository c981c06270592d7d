"""What is encrypted in PostgreSQL: webhooks' endpoints."""

from collections.abc import Mapping, Sequence

from cronring.controller.ports.secrets import EncryptedRow
from cronring.controller.store.pool import Database
from cronring.sql.parameters import CountEncrypted, ListEncryptedOtherwise, ReplaceEncrypted


class PostgresEncryptedRows:
    """cronring.controller.ports.secrets.EncryptedRows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_key(self) -> Mapping[str, int]:
        return {record["key_id"]: record["secrets"] for record in await self._database.fetch(CountEncrypted())}

    async def encrypted_otherwise(self, key_id: str, after_id: int, limit: int) -> Sequence[EncryptedRow]:
        records = await self._database.fetch(ListEncryptedOtherwise(key_id=key_id, after_id=after_id, limit=limit))
        return [EncryptedRow(*record) for record in records]

    async def replace(self, row: EncryptedRow, encrypted: str) -> bool:
        changed = await self._database.fetch(ReplaceEncrypted(id=row.row_id, before=row.encrypted, after=encrypted))
        return bool(changed)
