"""Sessions of tests and benchmarks that look into our tables, as anybody would by hand."""

from typing import Any, Final

import asyncpg

SCHEMA: Final = "cronring"


async def look(url: str, schema: str = SCHEMA, **settings: str) -> "asyncpg.Connection[asyncpg.Record]":
    """A plain connection, with the schema first in its search_path; `settings` are the session's."""
    found: Any = await asyncpg.connect(url, server_settings={"search_path": f"{schema}, public", **settings})
    connection: asyncpg.Connection[asyncpg.Record] = found
    return connection
