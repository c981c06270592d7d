"""Statements as a session of the store plans them, with arguments by name, as SQL."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from cronring import sql
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import SESSION_SETTINGS
from cronring.sql.loader import loaded


async def session(url: str) -> Connection:
    return await connect(url, "plans", dict(SESSION_SETTINGS))


def execution(planned: str, name: str, arguments: dict[str, str] | None = None) -> str:
    """EXECUTE of what was prepared as `planned` from that statement. `arguments`: SQL, by name; None: all are null."""
    names = loaded()[name].names
    given = dict.fromkeys(names, "NULL") if arguments is None else arguments
    assert given.keys() == set(names)
    return f"EXECUTE {planned} ({', '.join(given[each] for each in names)})" if names else f"EXECUTE {planned}"


async def plan(connection: Connection, name: str, arguments: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """All nodes of the plan that the session keeps; run, and rolled back, if there are arguments (as SQL)."""
    await connection.execute(f"PREPARE planned AS {sql.statement(name)}")
    call = execution("planned", name, arguments)
    options = "FORMAT JSON" if arguments is None else "ANALYZE, TIMING OFF, FORMAT JSON"
    transaction = connection.transaction()
    await transaction.start()
    try:
        found = await connection.fetchval(f"EXPLAIN ({options}) {call}")
    finally:
        await transaction.rollback()
        await connection.execute("DEALLOCATE planned")
    return list(nodes(json.loads(found)[0]["Plan"]))


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def timestamps(instants: list[int]) -> str:
    return "'{" + ",".join(f'"{datetime.fromtimestamp(us / 1e6, UTC).isoformat()}"' for us in instants) + "}'"


def array(values: list[Any]) -> str:
    return "'{" + ",".join(map(str, values)) + "}'"
