"""Taps: proxies before controllers that count what runners and they say to each other, message by message.

They read HTTP/2's frames and gRPC's length prefixes off the wire, so that they count whatever either side makes of a
stream. Connections of other controllers are passed on uncounted: their first message is no Hello.
"""

import asyncio
import contextlib
from collections import Counter
from contextvars import ContextVar
from typing import Final

from google.protobuf.message import DecodeError

from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.support.chaos_links import CHUNK, Link, Links

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD: Final = 9
DATA: Final = 0
PADDED: Final = 0x8
MESSAGE_HEAD: Final = 5


class Way:
    """One direction of one connection: the messages in its bytes."""

    def __init__(self) -> None:
        self.from_client: bool | None = None  # only clients begin with the preface
        self._bytes = b""
        self._bodies: dict[int, bytes] = {}

    def messages(self, data: bytes) -> list[bytes]:
        """Those that end in `data`."""
        self._bytes += data
        if self.from_client is None:
            if len(self._bytes) < len(PREFACE) and PREFACE.startswith(self._bytes):
                return []
            self.from_client = self._bytes.startswith(PREFACE)
            self._bytes = self._bytes.removeprefix(PREFACE)
        found: list[bytes] = []
        while len(self._bytes) >= FRAME_HEAD:
            ends = FRAME_HEAD + int.from_bytes(self._bytes[:3])
            if len(self._bytes) < ends:
                break
            kind, flags, stream = self._bytes[3], self._bytes[4], int.from_bytes(self._bytes[5:9]) & 0x7FFF_FFFF
            payload, self._bytes = self._bytes[FRAME_HEAD:ends], self._bytes[ends:]
            if kind == DATA:
                found += self._take(stream, payload[1 : len(payload) - payload[0]] if flags & PADDED else payload)
        return found

    def _take(self, stream: int, payload: bytes) -> list[bytes]:
        body = self._bodies.get(stream, b"") + payload
        found = []
        while len(body) >= MESSAGE_HEAD:
            ends = MESSAGE_HEAD + int.from_bytes(body[1:5])
            if len(body) < ends:
                break
            assert body[0] == 0, "a compressed message: the tap can't read it"
            found.append(body[MESSAGE_HEAD:ends])
            body = body[ends:]
        self._bodies[stream] = body
        return found


class Heard:
    """What runners' connections have said: messages and bytes, by kind. Written by the taps' thread."""

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()

    def take(self, from_client: bool, packed: bytes) -> None:
        message = (wire.RunnerMessage if from_client else wire.ControllerMessage).FromString(packed)
        kind = message.WhichOneof("message")
        if kind is not None:
            self.messages[kind] += 1
            self.sizes[kind] += len(packed)

    def __sub__(self, before: "Heard") -> "Heard":
        left = Heard()
        left.messages = self.messages - before.messages
        left.sizes = self.sizes - before.sizes
        return left

    def copy(self) -> "Heard":
        return self - Heard()


def is_hello(packed: bytes) -> bool:
    try:
        return bool(wire.RunnerMessage.FromString(packed).hello.runner_id)
    except DecodeError:
        return False


_known: ContextVar[list[bool]] = ContextVar("known")  # of the connection: whether it is a runner's, once that is known


class Tap(Link):
    """A link that listens in."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: str, heard: Heard) -> None:
        super().__init__(loop, target)
        self._heard = heard

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _known.set([])  # both ways' tasks copy it
        await super()._pass(reader, writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way, known = Way(), _known.get()
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                for packed in way.messages(data) if known != [False] else []:
                    if not known:
                        known.append(way.from_client is True and is_hello(packed))
                    if known[0]:
                        self._heard.take(way.from_client is True, packed)
                writer.write(data)
                await writer.drain()


class Taps(Links):
    """A thread that carries them all. Use it in a `with`."""

    def __init__(self) -> None:
        self.heard = Heard()

    def to(self, target: str) -> Tap:
        """It listens at once."""
        tap = Tap(self._loop, target, self.heard)
        self._links.append(tap)
        self._run(tap.open())
        return tap
