"""Which failures of a call are the connection's (try the next controller), and what the others mean."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc.aio import AioRpcError

from cronring.client.errors import ClientError, Conflict, Invalid, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    from google.protobuf.any_pb2 import Any as AnyMessage

_DETAILS_KEY: Final = "grpc-status-details-bin"

# gRPC gives UNAVAILABLE both when nobody is there and when a controller says so itself; only the text differs.
_TRANSPORT_WORDS: Final = (
    "failed to connect",
    "connection refused",
    "connection reset",
    "connection timed out",
    "connection dropped",
    "socket closed",
    "broken pipe",
    "goaway",
    "recvmsg",
    "sendmsg",
    "dns resolution failed",
    "empty address list",
    "endpoint",
    "transport",
    "stream removed",
    "keepalive",
    "server is shutting down",
)


# Of these, the ones that come before anything was sent.
_UNSENT_WORDS: Final = ("failed to connect", "connection refused", "dns resolution failed", "empty address list")


def was_never_sent(error: AioRpcError) -> bool:
    """There was no connection to send the call over, so nobody can have done what it asks."""
    details = (error.details() or "").lower()
    return error.code() is StatusCode.UNAVAILABLE and any(word in details for word in _UNSENT_WORDS)


def is_connection_failure(error: AioRpcError) -> bool:
    """Nobody is there, or whoever is there does not answer in time."""
    if error.code() is StatusCode.DEADLINE_EXCEEDED:
        return True
    # A server that stops cancels what it was serving; we ourselves cancel by asyncio's way, which is another exception.
    if error.code() is StatusCode.CANCELLED:
        return True
    details = (error.details() or "").lower()
    return error.code() is StatusCode.UNAVAILABLE and any(word in details for word in _TRANSPORT_WORDS)


def reason(error: AioRpcError, timeout_s: float) -> str:
    """In words, for the list of addresses that were tried."""
    if error.code() is StatusCode.DEADLINE_EXCEEDED:
        return f"no answer within {timeout_s:g} s"
    details = error.details() or error.code().name
    if "connection refused" in details.lower():
        return "connection refused: nothing listens there"
    return details.rsplit("last error: ", 1)[-1]


def meaning(error: AioRpcError) -> ClientError:
    """The exception for what a controller itself answered."""
    details = error.details() or ""
    match error.code():
        case StatusCode.NOT_FOUND:
            return NotFound(details)
        case StatusCode.INVALID_ARGUMENT:
            return Invalid(details, violations(error))
        case StatusCode.FAILED_PRECONDITION:
            return Conflict(details, error_info(error))
        case StatusCode.UNAVAILABLE:
            return Unavailable(details)
        case StatusCode.UNIMPLEMENTED:
            return Refused("UNIMPLEMENTED", f"{details} (is this a controller's gRPC address, of this version?)")
        case code:
            return Refused(code.name, details)


def violations(error: AioRpcError) -> list[tuple[str, str]]:
    """The (field, description) pairs of google.rpc.BadRequest, where the status carries one."""
    found: list[tuple[str, str]] = []
    for detail in _details(error):
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            found += [(each.field, each.description) for each in bad.field_violations]
    return found


def error_info(error: AioRpcError) -> dict[str, str]:
    """The metadata of google.rpc.ErrorInfo, where the status carries one."""
    for detail in _details(error):
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return dict(info.metadata)
    return {}


def _details(error: AioRpcError) -> "Iterator[AnyMessage]":
    # The stubs take the metadata for a single pair.
    metadata = cast("Iterable[tuple[str, str | bytes]]", error.trailing_metadata() or ())
    for key, value in metadata:
        if key == _DETAILS_KEY and isinstance(value, bytes):
            yield from status_pb2.Status.FromString(value).details
