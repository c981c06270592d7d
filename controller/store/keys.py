"""Keys that all controllers of an installation share. PostgreSQL keeps them; nothing shows them."""

from cronring.controller.store.pool import Database
from cronring.sql.parameters import GetPageKey


async def page_key(database: Database) -> bytes:
    """What cronring.controller.api.token_box locks with: 32 bytes. Raises StoreUnavailable, StoreError."""
    key: bytes = (await database.fetch(GetPageKey()))[0][0]
    return key
