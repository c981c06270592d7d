"""Keys that all controllers of an installation share. PostgreSQL keeps them; nothing shows them."""

from cronring.controller.store.pool import Database
from cronring.sql.parameters import GetSealKey


async def seal_key(database: Database) -> bytes:
    """What cronring.controller.api.seal seals with: 32 bytes. Raises StoreUnavailable, StoreError."""
    key: bytes = (await database.fetch(GetSealKey()))[0][0]
    return key
