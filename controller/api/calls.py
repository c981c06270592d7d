"""What every method of the API is wrapped in: a place among the calls in hand, a time limit, and a true status."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.message import Message
from google.rpc import code_pb2
from grpc_status import rpc_status

from cronring.controller.api.places import CallPlaces
from cronring.controller.api.problems import SlowReaderError, status_of
from cronring.controller.errors import Busy, StoreUnavailable, TooSlow
from cronring.controller.ports import fates
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.log import FaultLog
from cronring.protos.admission import RefusedMessage
from cronring.schema.duration import measured

STALLED_S: Final = 15.0  # a reader that takes nothing for this long is dropped
# Calls at once, of all callers. They share ten connections with the node's own statements. More calls in hand would not
# be done sooner, and would make all of them late.
CALLS_MAX: Final = 16
# Calls that wait for a place. So clients without retries get through a burst. A call waits for a part of its time only:
# if it is refused then, it was never begun, and another controller may have room.
WAITING_MAX: Final = 256
WAITING_BYTES: Final = 4 * 1024 * 1024  # of their requests together
WAITING_PART: Final = 0.5
WAITING_S: Final = 2.0  # of calls without a deadline
# A call is ended this long before its deadline: a caller that has given up doesn't learn what became of it.
MARGIN_S: Final = 1.0
MARGIN_PART: Final = 0.2
# The message of a cancellation whose caller is gone. gRPC's context doesn't tell this.
CALLER_GONE: Final = "the caller is gone"
_TOO_SLOW: Final = (
    "it was not done in time: PostgreSQL is slow, or does not answer; `cronring doctor` looks into it; then try again"
)
_IN_VAIN: Final = "calls wait for it in vain"
# These need no place among the calls in hand. The doctor must answer when nothing else does; takes wait for messages,
# and have a bound of their own.
_UNBOUNDED: Final = ("/cronring.v1.Doctor/", "/cronring.v1.Queues/TakeMessages")


class Calls:
    """Wraps every handler, so that no handler has to know of status codes, load or deadlines.

    `away_since`: since when PostgreSQL can't be reached, in microseconds since 1970; None: it can.
    """

    def __init__(self, log: FaultLog, counted: OnRefusal, away_since: Callable[[], int | None]) -> None:
        self._log = log
        self._counted = counted
        self._away_since = away_since
        self._in_hand: set[asyncio.Task[object]] = set()
        self._places = CallPlaces(CALLS_MAX, WAITING_MAX, WAITING_BYTES)

    def wrapped(self, path: str, behave: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isasyncgenfunction(behave):
            return self._stream(behave)
        return self._unary(behave, bounded=not path.startswith(_UNBOUNDED))

    def _unary(self, behave: Callable[..., Any], *, bounded: bool) -> Callable[..., Any]:
        async def call(request: object, context: grpc.aio.ServicerContext[Any, Any]) -> object:
            with fates.call() as changed:
                try:
                    if bounded:
                        size = request.ByteSize() if isinstance(request, Message) else 0  # a stream has none yet
                        await self._place(size, context.time_remaining())
                    return await self._in_time(behave(request, context), context.time_remaining(), bounded=bounded)
                except (grpc.aio.BaseError, RefusedMessage):
                    raise
                except Exception as error:  # the boundary: whatever it is gets a status
                    await self._abort(error, context, changed)

        return call

    async def _place(self, size: int, left_s: float | None) -> None:
        """Take a place until the present task ends.

        Raises Busy; or StoreUnavailable, if the calls in hand don't end because PostgreSQL is away.
        """
        try:
            if self._places.full and self._away_since() is not None:
                raise StoreUnavailable(_IN_VAIN)
            await self._places.take(WAITING_S if left_s is None else left_s * WAITING_PART, size)
        except Busy:
            if self._away_since() is not None:
                raise StoreUnavailable(_IN_VAIN) from None
            raise

    async def _in_time(self, behaving: Coroutine[Any, Any, object], left_s: float | None, *, bounded: bool) -> object:
        """The result. Raises TooSlow shortly before the caller gives up; the task is then left to end by itself."""
        task = asyncio.get_running_loop().create_task(behaving)
        self._in_hand.add(task)
        task.add_done_callback(self._gone)
        if bounded:
            task.add_done_callback(lambda _: self._places.give_back())
        try:
            await asyncio.wait({task}, timeout=None if left_s is None else left_s - min(MARGIN_S, left_s * MARGIN_PART))
            # The database driver's own cancellation may leak out. The caller must not see it.
            if task.done() and not task.cancelled():
                return task.result()
            raise TooSlow(_TOO_SLOW)
        except asyncio.CancelledError:
            task.cancel(CALLER_GONE)
            raise
        finally:
            # Not waited for: its rollback may need the very server that doesn't answer.
            if not task.cancelling():
                task.cancel()
            del task  # with its error it would keep this frame, and the request in it

    def _gone(self, task: asyncio.Task[object]) -> None:
        self._in_hand.discard(task)
        if not task.cancelled():
            task.exception()  # read it, or asyncio complains of an error that nobody has retrieved

    def _stream(self, behave: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            with fates.call() as changed:
                try:
                    async with contextlib.aclosing(behave(request, context)) as messages:
                        async for message in messages:
                            await _write(message, context)
                except (grpc.aio.BaseError, RefusedMessage):
                    raise  # an abort; or the caller is gone, or sent what the door doesn't let in
                except Exception as error:  # the boundary: whatever it is gets a status
                    await self._abort(error, context, changed)

        return call

    async def _abort(
        self, error: Exception, context: grpc.aio.ServicerContext[Any, Any], changed: fates.FatedCall
    ) -> NoReturn:
        since_us = self._away_since()
        if isinstance(error, TooSlow) and since_us is not None:
            error = StoreUnavailable("it has not answered in time")
        since = None if since_us is None else datetime.fromtimestamp(since_us / 1e6, UTC)
        status, foreseen = status_of(error, changed.fate, since)
        if not foreseen:
            self._log.exception("api_error", error)
        if status.code == code_pb2.INVALID_ARGUMENT:
            self._counted("request")
        if status.code == code_pb2.PERMISSION_DENIED:
            self._counted("forbidden", why=status.message)
        rich = rpc_status.to_status(status)
        await context.abort(rich.code, rich.details, rich.trailing_metadata)


async def _write(message: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Raises SlowReaderError when the reader leaves the stream full."""
    try:
        async with asyncio.timeout(STALLED_S):
            await context.write(message)
    except TimeoutError:
        raise SlowReaderError(f"nothing was read for {measured(STALLED_S * 1_000)}; open another stream") from None
