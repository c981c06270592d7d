"""What the operating system says of an address: gRPC itself tells only in words why it has no connection."""

import asyncio
import contextlib
import os
from enum import Enum
from typing import Final, NamedTuple

PROBE_S: Final = 1.0


class Port(Enum):
    OPEN = "open"
    REFUSED = "refused"  # nothing listens there
    SILENT = "silent"  # no answer within the time
    UNKNOWN = "unknown"  # no such host, no route to it, no HOST:PORT


class ReachProbe(NamedTuple):
    port: Port
    words: str  # for people


async def probe(address: str) -> ReachProbe:
    """Whether anybody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        return ReachProbe(Port.UNKNOWN, "it is not HOST:PORT")
    try:
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(host.removeprefix("[").removesuffix("]"), int(port))
    except TimeoutError:
        return ReachProbe(Port.SILENT, f"no connection within {PROBE_S:g} s")
    except OSError as error:
        return _failed(error)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ReachProbe(Port.OPEN, "it takes connections, but does not answer as a controller does")


async def refuses(address: str) -> bool:
    """Whether nothing listens there: a process that has died lets go of its port."""
    return (await probe(address)).port is Port.REFUSED


def _failed(error: OSError) -> ReachProbe:
    if isinstance(error, ConnectionRefusedError):
        return ReachProbe(Port.REFUSED, "connection refused: nothing listens there")
    return ReachProbe(Port.UNKNOWN, error.strerror or os.strerror(error.errno or 0))
