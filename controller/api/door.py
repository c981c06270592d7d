"""What stands before every handler: bytes become a message here, within the bounds of their method, or go nowhere."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import grpc
from grpc_status import rpc_status

from cronring.controller.api.bounds import REQUEST_BYTES
from cronring.controller.api.calls import Calls
from cronring.controller.api.problems import InvalidRequest, refusal_of, status_of
from cronring.protos.admission import WALKED_FROM, RefusedMessage, admitted

_OURS: Final = "/cronring.v1."  # those of gossip and runners have a few statuses, and name them themselves
_FACTORIES: Final[Mapping[tuple[bool, bool], Callable[..., Any]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


E = TypeVar("E", bound=Exception)


class UnboundedMethodError(Exception):
    """A service has a method that controller/api/bounds.py doesn't name. Nothing is served before it does."""


class Door:
    """Servicers are added to it as to a server. `calls` stands around ours; `refused` counts what stays out."""

    def __init__(self, server: Any, refused: Callable[[str], None], calls: Calls) -> None:
        self._server = server
        self._calls = calls
        self._refused = refused
        # One thread: as many large messages at once as there are callers would be as much memory as they like.
        self._aside = ThreadPoolExecutor(1, "large messages")

    def close(self) -> None:
        self._aside.shutdown(wait=False, cancel_futures=True)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code adds each handler twice; the other way names the service."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Raises UnboundedMethodError."""
        bounded = {method: self._bounded(f"/{service}/{method}", handler) for method, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, bounded),))
        self._server.add_registered_method_handlers(service, bounded)

    # docs/decisions/0055: nothing is parsed before its bytes are bounded
    def _bounded(self, path: str, handler: Any) -> Any:
        most = REQUEST_BYTES.get(path)
        kind = getattr(handler.request_deserializer, "__self__", None)
        if most is None or kind is None:
            raise UnboundedMethodError(f"{path} has no line in controller/api/bounds.py, so it can't be served")
        entry = _Entry(kind, most, self._refused, self._aside)
        streams = bool(handler.request_streaming), bool(handler.response_streaming)
        behave = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
        if path.startswith(_OURS):
            behave = self._calls.wrapped(path, behave)
        elif inspect.isasyncgenfunction(behave):
            behave = _written(behave)
        return _FACTORIES[streams](
            _let_in(entry, behave, streams_in=streams[0]), response_serializer=handler.response_serializer
        )


class _Entry:
    """To one method: the class of its requests, and how many bytes one may have."""

    def __init__(self, kind: type[Any], most: int, refused: Callable[[str], None], aside: Executor) -> None:
        self._kind = kind
        self._most = most
        self._refused = refused
        self._aside = aside

    async def message(self, raw: bytes) -> Any:
        """Raises RefusedMessage. A large one is read beside the loop, which ticks wait for."""
        if len(raw) > self._most:
            raise RefusedMessage(
                f"this message has {len(raw)} bytes; at most {self._most} are allowed here", too_large=True
            )
        if len(raw) >= WALKED_FROM:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._aside, admitted, self._kind, raw)
        return admitted(self._kind, raw)

    async def messages(self, raws: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """Raises RefusedMessage."""
        async for raw in raws:
            yield await self.message(raw)

    async def refuse(self, error: RefusedMessage, context: Any) -> NoReturn:
        self._refused("request")
        if error.violations:
            status, _ = status_of(InvalidRequest(error.violations))
        else:
            status = refusal_of(str(error), too_large=error.too_large)
        rich = rpc_status.to_status(status)
        await context.abort(rich.code, rich.details, rich.trailing_metadata)
        raise AssertionError("abort() returned")


def _let_in(entry: _Entry, behave: Callable[..., Any], *, streams_in: bool) -> Callable[..., Any]:
    """`behave` on bytes.

    An abort leaves a cycle of gRPC's own: the call, its abort, the frames that it passed. It stays until the collector
    comes by. So no frame of ours keeps a request in it: some hundred refused ones would be a gigabyte.
    """

    async def answer(raw: Any, context: Any) -> Any:
        request = None
        try:
            request = entry.messages(raw) if streams_in else await entry.message(raw)
            return await behave(request, context)
        except RefusedMessage as error:
            refusal = _bare(error)
        except grpc.aio.BaseError as error:
            raw = request = None
            raise _bare(error) from None
        raw = request = None
        return await entry.refuse(refusal, context)

    return answer


def _written(behave: Callable[..., Any]) -> Callable[..., Any]:
    """A generator of answers as what gRPC also takes: it writes them itself."""

    async def write_all(request: Any, context: Any) -> None:
        async with contextlib.aclosing(behave(request, context)) as messages:
            async for message in messages:
                await context.write(message)

    return write_all


def _bare(error: E) -> E:
    """Without the frames that it passed."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
