"""What a status of ours carries beside its code: callers decide by this and by the code, never by a text.

Every answer of a controller's API that is no success has a google.rpc.ErrorInfo of DOMAIN. A status without one comes
from gRPC itself: nobody of ours has said it.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

if TYPE_CHECKING:
    from google.protobuf.any_pb2 import Any as AnyMessage

Detail = TypeVar("Detail", bound=Message)

DETAILS_KEY: Final = "grpc-status-details-bin"
DOMAIN: Final = "cronring"
FATE: Final = "outcome"  # of ErrorInfo.metadata: a Fate
PROBLEMS: Final = "problems"  # how many there are, where a message has no room for all
SINCE: Final = "since"  # of DATABASE_AWAY's: an instant, as ISO 8601


class Reason(StrEnum):
    """ErrorInfo.reason: why a controller did not do what was asked."""

    INVALID = "INVALID"
    NOT_FOUND = "NOT_FOUND"
    NOT_SERVED = "NOT_SERVED"  # by HTTP: there is no such path, or not this method of it
    UNAUTHENTICATED = "UNAUTHENTICATED"  # nobody knows who asks
    FORBIDDEN = "FORBIDDEN"  # it is known who asks, and they may not
    OUTDATED = "OUTDATED"
    ETAG_MISMATCH = "ETAG_MISMATCH"  # it was changed since the caller read it
    KEY_REUSED = "KEY_REUSED"  # an idempotency key was given before, with another request
    KEY_IN_USE = "KEY_IN_USE"  # the request of this key is being done
    KEY_UNDECIDED = "KEY_UNDECIDED"  # nobody knows what became of it
    CONFLICT = "CONFLICT"
    ILLEGAL_TRANSITION = "ILLEGAL_TRANSITION"
    SLOW_READER = "SLOW_READER"
    TOO_MANY = "TOO_MANY"
    TOO_MANY_KEYS = "TOO_MANY_KEYS"  # of this caller; without one it can be done
    RATE_LIMITED = "RATE_LIMITED"  # this caller makes more calls than one may
    BUSY = "BUSY"  # it has more calls in hand than it takes at once
    TOO_SLOW = "TOO_SLOW"  # the caller's time was up before it was done
    ISSUER_AWAY = "ISSUER_AWAY"  # who asks can't be told, without the keys of a token's issuer
    KEYS_AWAY = "KEYS_AWAY"  # what unwraps the keys of secrets gives no answer
    RUNNER_AWAY = "RUNNER_AWAY"
    DATABASE_AWAY = "DATABASE_AWAY"
    STATEMENT_REFUSED = "STATEMENT_REFUSED"
    UNEXPECTED = "UNEXPECTED"


class Fate(StrEnum):
    """What became of the change that a failed call was to make."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"  # it was being committed
    DONE = "done"  # only what was to be told of it failed


class Said(NamedTuple):
    """What a controller says of a call that failed. `retry_s`: None where trying again won't help, or nobody knows."""

    reason: str
    metadata: dict[str, str]
    retry_s: float | None
    violations: tuple[tuple[str, str], ...]

    @property
    def fate(self) -> Fate:
        """NOT_DONE where nothing else is said: requests are judged before anything is changed."""
        return Fate(self.metadata.get(FATE, Fate.NOT_DONE))


def sign(status: status_pb2.Status, reason: Reason, metadata: dict[str, str], retry_s: float | None = None) -> None:
    """Add a controller's word to a status."""
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata))
    if retry_s is not None:
        delay = Duration()
        delay.FromTimedelta(timedelta(seconds=retry_s))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))


def said(trailing_metadata: Iterable[tuple[str, str | bytes]] | None) -> Said | None:
    """None: no controller of ours has answered this."""
    return said_in([d for key, value in trailing_metadata or () if key == DETAILS_KEY for d in _details(value)])


def said_in(details: "Sequence[AnyMessage]") -> Said | None:
    """As `said`, of a status's details."""
    info = _first(details, error_details_pb2.ErrorInfo())
    if info is None or info.domain != DOMAIN:
        return None
    retry = _first(details, error_details_pb2.RetryInfo())
    bad = _first(details, error_details_pb2.BadRequest()) or error_details_pb2.BadRequest()
    return Said(
        info.reason,
        dict(info.metadata),
        None if retry is None else retry.retry_delay.ToTimedelta().total_seconds(),
        tuple((each.field, each.description) for each in bad.field_violations),
    )


def _details(value: str | bytes) -> "list[AnyMessage]":
    """Empty for what can't be read: it isn't ours then."""
    try:
        return list(status_pb2.Status.FromString(value).details) if isinstance(value, bytes) else []
    except DecodeError:
        return []


def _first(details: "Sequence[AnyMessage]", message: Detail) -> Detail | None:
    return next((message for detail in details if detail.Unpack(message)), None)
