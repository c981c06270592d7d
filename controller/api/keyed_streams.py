"""Idempotency-Key of a method with many answers: they are kept together, and sent again.

An order that has begun goes on without its caller, as in methods with one answer (docs/decisions/0097).
"""

import asyncio
import gzip
import io
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, Final

from google.protobuf.message import Message

from cronring.controller.errors import KeyUndecided
from cronring.protos.idempotency import KEY_HEADER

FINISH_S: Final = 30.0  # how long an order goes on after its caller is gone
KEPT_BYTES: Final = 8 * 1024 * 1024  # packed: the answers of half a million jobs
_AHEAD: Final = 100  # messages that wait for a caller who reads slowly
_LENGTH_BYTES: Final = 4
_GZIP_BITS: Final = 31  # as zlib has it: gzip's header, and the largest window

# `answers(behave, written)`: what was answered before, as bytes; or what `behave` gives, which is kept as `written`.
Once = Callable[
    [Callable[[], Awaitable["KeptAnswers"]], Callable[["KeptAnswers"], bytes]], Awaitable["KeptAnswers | bytes"]
]


class KeptAnswers:
    """Answers, packed as they come: each behind its length."""

    def __init__(self) -> None:
        # Not GzipFile: if an order fails, it is never closed, and Python 3.13 complains when it is collected.
        self._packer = zlib.compressobj(1, wbits=_GZIP_BITS)
        self._packed = bytearray()

    def add(self, message: Message) -> None:
        if len(self._packed) <= KEPT_BYTES:
            raw = message.SerializeToString()
            self._packed += self._packer.compress(len(raw).to_bytes(_LENGTH_BYTES, "big") + raw)

    def whole(self) -> bytes:
        """b"" if they are more than is kept."""
        whole = bytes(self._packed) + self._packer.copy().flush()
        return whole if len(whole) <= KEPT_BYTES else b""


def unpacked(kept: bytes, kind: Callable[[], Any]) -> Iterator[Message]:
    """The answers in what KeptAnswers.whole() has given, unpacked as they are asked for."""
    with gzip.open(io.BytesIO(kept)) as file:
        while length := file.read(_LENGTH_BYTES):
            message = kind()
            message.ParseFromString(file.read(int.from_bytes(length, "big")))
            yield message


class _Caller:
    """The caller who gets the answers, as long as it is there."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue(_AHEAD)
        self._is_there = True

    async def tell(self, message: Message | None) -> None:
        """Waits for a slow reader. None: that was all."""
        if self._is_there:
            await self._waiting.put(message)

    async def told(self) -> Message | None:
        return await self._waiting.get()

    def leave(self) -> None:
        self._is_there = False
        while not self._waiting.empty():
            self._waiting.get_nowait()


class KeyedStreams:
    """Of one server. It holds the orders that go on by themselves."""

    def __init__(self) -> None:
        self._going_on: set[asyncio.Task[Any]] = set()

    async def answers(
        self,
        behave: Callable[[], AsyncGenerator[Message, None]],
        once: Once,
        kind: Callable[[], Any],
        replayed: Callable[[], None],
    ) -> AsyncGenerator[Message, None]:
        """Answers as they come; or, after calling `replayed()`, those of the first request with this key.

        Raises what `behave` and `once` raise, and KeyUndecided if there were more answers than are kept.
        """
        caller = _Caller()

        async def all_of_them() -> KeptAnswers:
            kept = KeptAnswers()
            async with aclosing(behave()) as messages:
                async for message in messages:
                    kept.add(message)
                    await caller.tell(message)
            return kept

        async def asked() -> KeptAnswers | bytes:
            try:
                return await once(all_of_them, KeptAnswers.whole)
            finally:
                await caller.tell(None)

        asking = asyncio.get_running_loop().create_task(asked())
        try:
            while (message := await caller.told()) is not None:
                yield message
            former = await asking
            if isinstance(former, bytes):
                if not former:
                    raise KeyUndecided(
                        f"the request of this {KEY_HEADER} was done, and its answers are too many to be kept; look at"
                        " what is there"
                    )
                replayed()
                for each in unpacked(former, kind):
                    yield each
        finally:
            caller.leave()
            self._let_go_on(asking)

    def _let_go_on(self, asking: "asyncio.Task[Any]") -> None:
        self._going_on.add(asking)
        asking.add_done_callback(self._noticed)
        end = asyncio.get_running_loop().call_later(FINISH_S, asking.cancel)
        asking.add_done_callback(lambda _: end.cancel())

    def _noticed(self, task: "asyncio.Task[Any]") -> None:
        """Read the error of a task whose caller is gone, or asyncio complains that nobody has retrieved it."""
        self._going_on.discard(task)
        if not task.cancelled():
            task.exception()
