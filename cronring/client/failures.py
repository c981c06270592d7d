"""What a call that failed means: by its status and by what a controller says beside it, never by a text."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple

from grpc import StatusCode
from grpc.aio import AioRpcError

from cronring.client.errors import (
    ClientError,
    Conflict,
    DatabaseAway,
    EtagMismatch,
    Invalid,
    KeyReused,
    NotFound,
    PermissionDenied,
    Refused,
    Unauthenticated,
    Unavailable,
)
from cronring.protos.problems import PROBLEMS, SINCE, Fate, Reason, Said, said

# Without a controller's word these come from gRPC: the connection broke, nobody answered in time, or a server that
# stops has cancelled what it served. (We ourselves cancel by asyncio's way, which is another exception.)
_LOST: Final = frozenset({
    StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED, StatusCode.UNKNOWN, StatusCode.INTERNAL,
})  # fmt: skip
# An answer may have been lost on its way back, as it was too large for this side.
_MAY_BE_DONE: Final = _LOST | {StatusCode.RESOURCE_EXHAUSTED, StatusCode.DATA_LOSS}
_LATER: Final = frozenset({Reason.BUSY, Reason.RATE_LIMITED, Reason.KEY_IN_USE})
_PLAIN: Final[Mapping[StatusCode, Callable[[str], ClientError]]] = {
    StatusCode.NOT_FOUND: NotFound,
    StatusCode.UNAUTHENTICATED: Unauthenticated,
    StatusCode.PERMISSION_DENIED: PermissionDenied,
}
_PRECISE: Final[Mapping[str, Callable[[str], ClientError]]] = {
    Reason.ETAG_MISMATCH: EtagMismatch,
    Reason.KEY_REUSED: KeyReused,
}


class Kind(Enum):
    UNSENT = "unsent"  # there was no connection to send it over
    LOST = "lost"  # sent, maybe, and no controller has answered
    AWAY = "away"  # a controller answered that it can't do this now; another may
    BUSY = "busy"  # a controller answered that it, or this caller, has too much in hand, and when to come again
    REFUSED = "refused"  # the answer is no


class Failed(NamedTuple):
    """One try at one controller. `fate`: of the change, if the call was to make one."""

    kind: Kind
    fate: Fate
    error: AioRpcError | None = None
    retry_s: float = 0.0
    reason: str = ""  # a controller's; "": none has answered

    @property
    def has_timed_out(self) -> bool:
        return self.error is not None and self.error.code() is StatusCode.DEADLINE_EXCEEDED

    @property
    def words(self) -> str:
        """gRPC's or the controller's own, for people."""
        return "" if self.error is None else self.error.details() or self.error.code().name


UNSENT: Final = Failed(Kind.UNSENT, Fate.NOT_DONE)


def judged(error: AioRpcError) -> Failed:
    code, word = error.code(), word_of(error)
    if word is None:
        fate = Fate.UNKNOWN if code in _MAY_BE_DONE else Fate.NOT_DONE
        return Failed(Kind.LOST if code in _LOST else Kind.REFUSED, fate, error)
    if word.reason in _LATER:
        return Failed(Kind.BUSY, word.fate, error, word.retry_s or 0.0, word.reason)
    return Failed(Kind.AWAY if code is StatusCode.UNAVAILABLE else Kind.REFUSED, word.fate, error, reason=word.reason)


def word_of(error: AioRpcError) -> Said | None:
    """What a controller of ours said; None: it was gRPC."""
    return said(error.trailing_metadata())  # type: ignore[arg-type]  # the stubs take it for a single pair


def meaning(error: AioRpcError) -> ClientError:
    """The exception for what a controller itself answered."""
    details, word = error.details() or "", word_of(error)
    if plain := _PLAIN.get(error.code()):
        return plain(details)
    match error.code():
        case StatusCode.INVALID_ARGUMENT:
            return _invalid(details, word)
        case _ if word is not None and word.reason in _PRECISE:
            return _PRECISE[word.reason](details)
        case StatusCode.FAILED_PRECONDITION:
            return Conflict(details, word.metadata if word else {})
        case StatusCode.UNAVAILABLE if word is not None and word.reason == Reason.DATABASE_AWAY:
            return DatabaseAway(details, _since(word))
        case StatusCode.UNAVAILABLE:
            return Unavailable(details)
        case StatusCode.UNIMPLEMENTED:
            return Refused("UNIMPLEMENTED", f"{details} (is this a controller's gRPC address, of this version?)")
        case code:
            return Refused(code.name, details)


def _invalid(details: str, word: Said | None) -> Invalid:
    if word is None:
        return Invalid(details)
    total = word.metadata.get(PROBLEMS, "")
    return Invalid(details, word.violations, int(total) if total.isdecimal() else None)


def _since(word: Said) -> datetime | None:
    text = word.metadata.get(SINCE)
    return datetime.fromisoformat(text) if text else None
