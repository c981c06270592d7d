"""Chooses among a URL's hosts: the one that takes writes, and of several such hosts the one promoted last.

asyncpg tries hosts one after the other, all within one timeout. So a silent host (no power, packets dropped) hides all
hosts behind it. And an old primary may not know of a fail-over, if its Patroni stands still. It still takes writes,
though its commits wait for a standby that has left it. Its timeline is lower than the new primary's.
"""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import asyncpg

from cronring.controller.store.errors import is_retryable
from cronring.sql.parameters import GetTimeline

_DEFAULT_PORT: Final = 5432
# Once one host takes writes, the others have so long to say that they are newer.
_NEWER_WITHIN_S: Final = 0.5
_TIMELINE_TIMEOUT_S: Final = 2.0
_TIMELINE_UNKNOWN: Final = 0
Host = tuple[str, int]
Answer = Any  # asyncpg's connection, of whichever class the pool asks for


def named_hosts(dsn: str) -> list[Host]:
    """Hosts and ports that a libpq URL names; empty when it leaves them to the environment. Raises ValueError."""
    parts = urlsplit(dsn)
    query = dict(parse_qsl(parts.query))
    named = parts.netloc.rpartition("@")[2]
    specs = [unquote(each) for each in named.split(",")] if named else query.get("host", "").split(",")
    if specs == [""]:
        return []
    ports = _ports(query.get("port") or os.environ.get("PGPORT") or str(_DEFAULT_PORT), len(specs))
    return [_host(spec, port) for spec, port in zip(specs, ports, strict=True)]


def _ports(text: str, count: int) -> list[int]:
    ports = [int(each) for each in text.split(",")]
    return ports * count if len(ports) == 1 else ports


def _host(spec: str, port: int) -> Host:
    if spec.startswith("["):
        address, _, own_port = spec[1:].partition("]")
        own_port = own_port.removeprefix(":")
    elif spec.startswith("/"):
        address, own_port = spec, ""
    else:
        address, _, own_port = spec.partition(":")
    return address, int(own_port) if own_port else port


# docs/decisions/0035: tried in turn, a silent host would hide all behind it
async def connect_to_newest(dsn: str | None = None, **arguments: Any) -> Answer:
    """As `asyncpg.connect`, with the same arguments and errors, except for the choice among several hosts."""
    hosts = named_hosts(dsn or "")
    if len(hosts) < 2:  # one host needs no choice; without names, asyncpg asks the environment
        return await asyncpg.connect(dsn, **arguments)
    attempts = [asyncio.ensure_future(asyncpg.connect(dsn, host=host, port=port, **arguments)) for host, port in hosts]
    chosen: Answer = None
    try:
        await _first_answers(attempts)
        found = [attempt.result() for attempt in attempts if _succeeded(attempt)]
        chosen = await _newest(found) if found else None
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(partial(_end, chosen))
    if chosen is None:
        raise _reason(attempts)
    return chosen


def _end(chosen: Answer, attempt: "asyncio.Future[Answer]") -> None:
    """Close a connection that came too late, or that wasn't chosen. Nobody waits for this."""
    if _succeeded(attempt) and attempt.result() is not chosen:
        attempt.result().terminate()


def _reason(attempts: "Sequence[asyncio.Future[Answer]]") -> BaseException:
    """Why none succeeded. The error of a host that may take writes later comes first, as it makes callers try again."""
    errors = [ConnectionError("given up") if each.cancelled() else each.exception() for each in attempts]
    known = [error for error in errors if error is not None]
    return next((error for error in known if isinstance(error, Exception) and is_retryable(error)), known[0])


async def _first_answers(attempts: "Sequence[asyncio.Future[Answer]]") -> None:
    """Wait until one attempt has succeeded and the others had their time, or until all have failed."""
    pending = set(attempts)
    while pending and not any(map(_succeeded, attempts)):
        _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    if pending:
        await asyncio.wait(pending, timeout=_NEWER_WITHIN_S)


def _succeeded(attempt: "asyncio.Future[Answer]") -> bool:
    return attempt.done() and not attempt.cancelled() and attempt.exception() is None


async def _newest(found: list[Answer]) -> Answer:
    """The first one on the highest timeline."""
    if len(found) == 1:
        return found[0]
    timelines = await asyncio.gather(*map(_timeline, found))
    return found[timelines.index(max(timelines))]


async def _timeline(connection: Answer) -> int:
    try:
        timeline: int = await connection.fetchval(*GetTimeline(), timeout=_TIMELINE_TIMEOUT_S)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        return _TIMELINE_UNKNOWN  # gone meanwhile, or a service that doesn't tell
    return timeline
