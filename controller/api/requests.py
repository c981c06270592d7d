"""What every method checks of a request before it asks the store."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.problems import InvalidRequest
from cronring.controller.ports.caller import acting
from cronring.protos.instants import instant_us
from cronring.schema.instant import FIRST_US, LAST_US
from cronring.schema.labels import label_faults

# A handler's context; the messages' types stand in the handler's own signature.
Context = grpc.aio.ServicerContext[Any, Any]

NAME_LENGTH_MAX: Final = 400
ACTOR_LENGTH_MAX: Final = 200
NOTE_LENGTH_MAX: Final = 1_000


def one_of(field: str, value: str, allowed: tuple[str, ...]) -> str:
    """Empty, or one of them. Raises InvalidRequest."""
    if value and value not in allowed:
        raise InvalidRequest([(field, f"is {_shown(value)}; it must be one of {', '.join(allowed)}, or empty for any")])
    return value


def any_of(field: str, values: Iterable[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The allowed values that are asked for, each once, in the order of `allowed`. Raises InvalidRequest."""
    asked = set(values)
    for value in sorted(asked - set(allowed)):
        raise InvalidRequest([(field, f"has {_shown(value)}; each must be one of {', '.join(allowed)}")])
    return tuple(value for value in allowed if value in asked)


def name(field: str, value: str) -> str:
    """A filter's name, empty for any. Raises InvalidRequest for what no name can be."""
    if len(value) > NAME_LENGTH_MAX or "\x00" in value:
        raise InvalidRequest([(field, f"must have {NAME_LENGTH_MAX} characters at most, and no NUL")])
    return value


def required(field: str, value: str, what: str) -> str:
    """Raises InvalidRequest when it is empty."""
    if not value:
        raise InvalidRequest([(field, f"is empty; it must be {what}")])
    return name(field, value)


def labels(field: str, asked: Mapping[str, str]) -> dict[str, str]:
    """Of a filter. Raises InvalidRequest for what can't be labels."""
    found = dict(asked)
    faults = [(f"{field}.{key}" if key else field, fault) for key, fault in label_faults(found)]
    if faults:
        raise InvalidRequest(faults)
    return found


def actor(requested_by: str, context: Context) -> str:
    """Who asks: the caller, as the door knows it. What the request says about it is only a remark.

    With --insecure, where callers are not known, it is what the request says, else the caller's address.
    Raises InvalidRequest.
    """
    if len(requested_by) > ACTOR_LENGTH_MAX or not requested_by.isprintable():
        raise InvalidRequest([("requested_by", f"must have {ACTOR_LENGTH_MAX} printable characters at most")])
    return acting(requested_by or context.peer())


def remarks(request: object) -> tuple[str, str]:
    """What a message says of who asked for it, and why; its handler judges that. "": nothing."""
    asked = getattr(request, "requested_by", "")
    return asked, getattr(request, "note", "") or getattr(request, "reason", "")


def note(field: str, value: str) -> str:
    """Why somebody did something. Raises InvalidRequest."""
    if len(value) > NOTE_LENGTH_MAX or "\x00" in value:
        raise InvalidRequest([(field, f"must have {NOTE_LENGTH_MAX} characters at most, and no NUL")])
    return value


def instant(field: str, stamp: Timestamp) -> int:
    """Microseconds since 1970. Raises InvalidRequest for what is no instant."""
    at = instant_us(stamp)
    if not FIRST_US <= at <= LAST_US or not 0 <= stamp.nanos < 1_000_000_000:
        raise InvalidRequest([(field, "is no instant from year 1 to 9999 (seconds, and 0 to 999,999,999 nanos)")])
    return at


def row_id(field: str, value: int) -> int:
    """Raises InvalidRequest for what can't be an id."""
    if value < 0:
        raise InvalidRequest([(field, f"is {value}; it can't be below 0")])
    return value


def execution_id(field: str, value: int) -> int:
    """Raises InvalidRequest for what no execution's id can be."""
    if value <= 0:
        raise InvalidRequest([(field, f"is {value}; it must be an execution's id")])
    return value


def number(request: Message, field: str, default: int, highest: int, lowest: int = 1) -> int:
    """A field that may be absent; 0 does not mean absent. Raises InvalidRequest if it is out of its range."""
    if not request.HasField(field):
        return default
    value: int = getattr(request, field)
    if not lowest <= value <= highest:
        words = f"is {value}; it must be from {lowest} to {highest}; leave it out for {default}, the default"
        raise InvalidRequest([(field, words)])
    return value


def _shown(value: str) -> str:
    return repr(value if len(value) <= 100 else value[:99] + "…")
