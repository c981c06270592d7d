"""From an exception to a gRPC status: the one place where the API decides what a failure is called."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, Protocol

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from controller.core.control import NeverRuns
from controller.errors import (
    Conflict,
    IllegalTransition,
    InvalidModule,
    NotFound,
    Outdated,
    RunnerAway,
    StoreError,
    StoreUnavailable,
    TooMany,
)

Violations = list[tuple[str, str]]

# gRPC's trailers are headers of HTTP/2, in base64 here, and peers may refuse more than 8 KiB of them. A module with
# 5,000 wrong verbs must not lose its error for that: the first problems are the useful ones.
VIOLATIONS_BYTES_MAX: Final = 4_500
DESCRIPTION_LENGTH_MAX: Final = 300
MESSAGE_LENGTH_MAX: Final = 400
STALLED_S: Final = 15.0  # a reader that takes nothing for this long is dropped


class InvalidRequest(Exception):
    """The caller's fault. `violations` are (field, description) pairs."""

    def __init__(self, violations: Violations) -> None:
        super().__init__("; ".join(f"{field}: {description}" for field, description in violations))
        self.violations = violations


class SlowReaderError(Exception):
    """The caller of a stream doesn't keep up with it, and may open another one."""


# The first that fits: Outdated is a Conflict.
_KINDS: Final[tuple[tuple[type[Exception], code_pb2.Code, str], ...]] = (
    (NotFound, code_pb2.NOT_FOUND, ""),
    (Outdated, code_pb2.ABORTED, ""),
    (Conflict, code_pb2.FAILED_PRECONDITION, ""),
    (SlowReaderError, code_pb2.RESOURCE_EXHAUSTED, ""),
    (TooMany, code_pb2.RESOURCE_EXHAUSTED, ""),
    (RunnerAway, code_pb2.UNAVAILABLE, ""),
    (StoreUnavailable, code_pb2.UNAVAILABLE, "PostgreSQL can't be reached by this controller; try again: "),
    (StoreError, code_pb2.INTERNAL, "PostgreSQL refused the statement: "),
)


class Log(Protocol):
    def exception(self, event: str, error: BaseException) -> None: ...


def status_of(error: Exception) -> status_pb2.Status | None:
    """None for an error that nobody foresaw."""
    match error:
        case InvalidRequest():
            return _bad_request("the request", error.violations)
        case NeverRuns():
            return _bad_request("the request", [("spec.schedule", str(error))])
        case InvalidModule():
            return _bad_request("the module", error.problems)
        case IllegalTransition():
            return _illegal(error)
    for kind, code, prefix in _KINDS:
        if isinstance(error, kind):
            return status_pb2.Status(code=code, message=_cut(f"{prefix}{error}", MESSAGE_LENGTH_MAX))
    return None


def _illegal(error: IllegalTransition) -> status_pb2.Status:
    status = status_pb2.Status(code=code_pb2.FAILED_PRECONDITION, message=_cut(str(error), MESSAGE_LENGTH_MAX))
    named = {"job": error.job, "action": error.action, "state": error.state, "target": error.target}
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason="ILLEGAL_TRANSITION", domain="cronring", metadata=named)
    )
    return status


def _bad_request(what: str, violations: Violations) -> status_pb2.Status:
    details = error_details_pb2.BadRequest()
    for field, description in violations:
        details.field_violations.add(field=field, description=_cut(description, DESCRIPTION_LENGTH_MAX))
        if details.ByteSize() > VIOLATIONS_BYTES_MAX:
            del details.field_violations[-1]
            break
    shown = len(details.field_violations)
    message = f"{what} is invalid: " + "; ".join(f"{field}: {description}" for field, description in violations[:3])
    message = _cut(message, MESSAGE_LENGTH_MAX)
    if shown < len(violations):
        message += f" (the first {shown} of {len(violations)} problems)"
    packed = any_pb2.Any()
    packed.Pack(details)
    return status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=message, details=[packed])


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


async def _write(message: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Raises SlowReaderError when the reader leaves the stream full."""
    try:
        async with asyncio.timeout(STALLED_S):
            await context.write(message)
    except TimeoutError:
        raise SlowReaderError(f"nothing was read for {STALLED_S:g} s; open another stream") from None


class ProblemInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in its stubs only
    """Wraps every handler of ours, so that none of them knows of status codes."""

    def __init__(self, log: Log, counted: Callable[[str], None]) -> None:
        self._log = log
        self._counted = counted

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any]"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith("/cronring.v1."):
            return handler
        codecs = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary), **codecs)
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(self._stream(handler.unary_stream), **codecs)
        return handler

    def _unary(self, behave: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: object, context: grpc.aio.ServicerContext[Any, Any]) -> object:
            try:
                return await behave(request, context)
            except grpc.aio.BaseError:
                raise
            except Exception as error:  # the boundary: whatever it is gets a status
                await self._abort(error, context)

        return call

    def _stream(self, behave: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            try:
                async with contextlib.aclosing(behave(request, context)) as messages:
                    async for message in messages:
                        await _write(message, context)
            except grpc.aio.BaseError:
                raise  # an abort, or the caller is gone
            except Exception as error:  # the boundary: whatever it is gets a status
                await self._abort(error, context)

        return call

    async def _abort(self, error: Exception, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
        status = status_of(error)
        if status is None:
            self._log.exception("api_error", error)
            status = status_pb2.Status(
                code=code_pb2.INTERNAL,
                message=f"unexpected {type(error).__name__}; the controller's log has the details",
            )
        if status.code == code_pb2.INVALID_ARGUMENT:
            self._counted("request")
        rich = rpc_status.to_status(status)
        await context.abort(rich.code, rich.details, rich.trailing_metadata)
