"""What stands before every handler. It judges the caller, then turns bytes into a message within the method's bounds.

docs/decisions/0069: nothing of a refused call is parsed. Nothing of it is read, either: to gRPC, all requests here are
streams. If a method takes one message, that message is read after the caller is let in, and has to come in time.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import grpc
from grpc_status import rpc_status

from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Judge
from cronring.controller.api.policy import POLICY, Access, Audience
from cronring.controller.api.problems import InvalidRequest, counted_as, refusal_of, status_of
from cronring.controller.api.requests import remarks
from cronring.controller.errors import CronringError, Denied, StoreError, StoreUnavailable
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import calling, remarking
from cronring.protos.admission import WALKED_FROM, RefusedMessage, admitted
from cronring.schema.duration import measured
from cronring.schema.identity import LOCAL, NOBODY, Principal

_OURS: Final = "/cronring.v1."  # those of gossip and runners have a few statuses, and name them themselves
_JUDGED_AGAIN_S: Final = 10.0  # how often a stream's caller is judged again, as it may have lost the right to it
_MESSAGE_S: Final = 30.0  # until all of a call's one message is here: 8 MiB at 2.3 Mbit/s
_KINDS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}


E = TypeVar("E", bound=Exception)


class UnjudgedMethodError(Exception):
    """A service has a method without a line in policy.py, so its calls can't be judged. Nothing is served then."""


class Door:
    """Servicers are added to it as to a server. `calls` wraps the methods of ours; `refused` counts refused calls."""

    def __init__(self, server: Any, refused: OnRefusal, calls: Calls, judge: Judge) -> None:
        self._server = server
        self._calls = calls
        self._refused = refused
        self._judge = judge
        # One thread, so one large message at a time: else callers decide how much memory is in use.
        self._aside = ThreadPoolExecutor(1, "large messages")

    def close(self) -> None:
        self._aside.shutdown(wait=False, cancel_futures=True)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code adds each handler twice; the other way names the service."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Raises UnjudgedMethodError."""
        guarded = {method: self._guarded(f"/{service}/{method}", handler) for method, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))
        self._server.add_registered_method_handlers(service, guarded)

    # docs/decisions/0055: nothing is parsed before its bytes are bounded
    def _guarded(self, path: str, handler: Any) -> Any:
        access = POLICY.get(path)
        if access is None:
            raise UnjudgedMethodError(f"{path} has no line in controller/api/policy.py, so it can't be served")
        streams = bool(handler.request_streaming), bool(handler.response_streaming)
        kind = getattr(handler.request_deserializer, "__self__", None)
        if kind is None or [each for each in _KINDS.values() if getattr(handler, each)] != [_KINDS[streams]]:
            raise UnjudgedMethodError(f"{path} is of no kind of RPC that is known here, so it can't be served")
        behave = getattr(handler, _KINDS[streams])
        if path.startswith(_OURS):
            behave = self._calls.wrapped(path, behave)
        elif inspect.isasyncgenfunction(behave):
            behave = _written(behave)
        guard = _Guard(path, access, self._judge, self._refused, lasts=streams[1])
        entry = _Entry(kind, access.max_bytes, self._aside)
        make = getattr(grpc, f"{_KINDS[True, streams[1]]}_rpc_method_handler")
        # Without a deserializer the handler is given bytes.
        return make(
            _let_in(guard, entry, behave, streams_in=streams[0]), response_serializer=handler.response_serializer
        )


class _Guard:
    """Of one method. `lasts`: its calls may go on for long."""

    def __init__(self, path: str, access: Access, judge: Judge, refused: OnRefusal, *, lasts: bool) -> None:
        self.path = path
        self._access = access
        self._judge = judge
        self._refused = refused
        self._lasts = lasts
        self._again = lasts and access.audience is not Audience.ANYONE

    async def judged(self, context: Any) -> Principal:
        """Raises CronringError."""
        return await self._judge.judged(self._access, context)

    def counted(self, principal: Principal, context: Any) -> contextlib.AbstractContextManager[None]:
        """Among the streams of the caller. Entering it raises TooManyStreams."""
        return self._judge.streaming(principal, self._access, context) if self._lasts else contextlib.nullcontext()

    async def answer(self, answering: Coroutine[Any, Any, Any], principal: Principal, context: Any) -> Any:
        """The answer. Raises CronringError as soon as the caller has lost the right to it."""
        if not self._again or principal == LOCAL:
            return await answering
        handling = asyncio.current_task()
        assert handling is not None, "gRPC makes a task of each call"
        why: list[CronringError] = []

        async def look_again() -> None:
            try:
                await self._lost(principal, context)
            except CronringError as error:
                why.append(_bare(error))
                handling.cancel()

        looking = asyncio.get_running_loop().create_task(look_again())
        try:
            return await answering
        except asyncio.CancelledError:
            if not why or handling.uncancel() > 0:
                raise
            raise why[0] from None
        finally:
            looking.cancel()

    async def _lost(self, principal: Principal, context: Any) -> NoReturn:
        """Returns never. Raises CronringError when the caller has lost the right to the stream."""
        while True:
            await asyncio.sleep(_JUDGED_AGAIN_S)
            # While PostgreSQL is away, the caller can't be judged. Then a stream has little to tell anyway.
            with contextlib.suppress(StoreUnavailable, StoreError):
                await self._judge.still(principal, self._access, context)

    async def refuse(self, error: Exception, principal: Principal, context: Any) -> NoReturn:
        """`principal`: the caller, as far as it was known when the call was refused."""
        if isinstance(error, RefusedMessage):
            self._refused("request")
            status = (
                status_of(InvalidRequest(error.violations))[0]
                if error.violations
                else refusal_of(str(error), too_large=error.too_large)
            )
        else:
            whom = getattr(error, "principal", None) or principal
            with calling(whom, self.path, context.peer()):
                if what := counted_as(error):
                    self._refused(what, why=str(error) if isinstance(error, Denied) else "")
            status, _ = status_of(error)
        rich = rpc_status.to_status(status)
        await context.abort(rich.code, rich.details, rich.trailing_metadata)
        raise AssertionError("abort() returned")


class _Entry:
    """To one method: the class of its requests, and how many bytes one may have."""

    def __init__(self, kind: type[Any], most: int, aside: Executor) -> None:
        self._kind = kind
        self._most = most
        self._aside = aside

    async def only(self, context: Any) -> Any:
        """The message of a request that has one. Raises RefusedMessage, also for one that doesn't come in time."""
        try:
            async with asyncio.timeout(_MESSAGE_S):
                # Not by gRPC's iterator: its frame would keep the message, and the call's cycle keeps that frame.
                raw = await context.read()
        except TimeoutError:
            raise RefusedMessage(f"the request's message is not here after {measured(_MESSAGE_S * 1_000)}") from None
        if raw is grpc.aio.EOF:  # type: ignore[attr-defined]  # absent from its stubs
            raise RefusedMessage("the request has no message")
        return await self.message(raw)

    async def message(self, raw: bytes) -> Any:
        """Raises RefusedMessage. A large message is parsed in a thread, as ticks wait for the loop."""
        if len(raw) > self._most:
            raise RefusedMessage(
                f"this message has {len(raw)} bytes; at most {self._most} are allowed here", too_large=True
            )
        if len(raw) >= WALKED_FROM:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._aside, admitted, self._kind, raw)
        return admitted(self._kind, raw)

    async def messages(self, raws: AsyncIterable[bytes]) -> AsyncIterator[Any]:
        """Raises RefusedMessage."""
        async for raw in raws:
            yield await self.message(raw)


def _let_in(guard: _Guard, entry: _Entry, behave: Callable[..., Any], *, streams_in: bool) -> Callable[..., Any]:
    """A handler that takes bytes, judges the call, and passes a message to `behave`.

    An abort leaves a cycle inside gRPC: the call, its abort, and the frames that it passed. The cycle stays until the
    collector comes. So no frame of ours may keep a request: some hundred refused ones would hold a gigabyte.
    """

    async def answer(raws: AsyncIterable[bytes], context: Any) -> Any:
        request, principal = None, NOBODY
        refusal: Exception
        try:
            principal = await guard.judged(context)
            with calling(principal, guard.path, context.peer()), guard.counted(principal, context):
                request = entry.messages(raws) if streams_in else await entry.only(context)
                with remarking(*remarks(request)):
                    return await guard.answer(behave(request, context), principal, context)
        except (RefusedMessage, CronringError) as error:
            refusal = _bare(error)
        except grpc.aio.BaseError as error:
            request = None
            raise _bare(error) from None
        request = None
        return await guard.refuse(refusal, principal, context)

    return answer


def _written(behave: Callable[..., Any]) -> Callable[..., Any]:
    """Turns a generator of answers into gRPC's other form of handler, which writes its answers itself."""

    async def write_all(request: Any, context: Any) -> None:
        async with contextlib.aclosing(behave(request, context)) as messages:
            async for message in messages:
                await context.write(message)

    return write_all


def _bare(error: E) -> E:
    """The error without the frames that it passed, which would keep the request (see `_let_in`)."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
