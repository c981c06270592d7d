"""A pooler that forgets what a session asks for at its start, as PgBouncer does with `ignore_startup_parameters`."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path

_KEPT = ("user", "database")


@contextlib.asynccontextmanager
async def forgetful_pooler(server: Path, own: Path) -> AsyncIterator[None]:
    """`server`, `own`: folders of Unix sockets; both are port 5432's."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_unix_connection(str(server / ".s.PGSQL.5432"))
        try:
            length, protocol = struct.unpack("!ii", await reader.readexactly(8))
            words = (await reader.readexactly(length - 8)).rstrip(b"\0").split(b"\0")
            pairs = zip(words[::2], words[1::2], strict=True)
            kept = b"".join(b"%s\0%s\0" % pair for pair in pairs if pair[0].decode() in _KEPT) + b"\0"
            to_writer.write(struct.pack("!ii", len(kept) + 8, protocol) + kept)
            await asyncio.gather(_pump(reader, to_writer), _pump(to_reader, writer))
        finally:
            to_writer.close()
            writer.close()

    listener = await asyncio.start_unix_server(serve, str(own / ".s.PGSQL.5432"))
    try:
        yield
    finally:
        listener.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()
