"""From an exception to a gRPC status: the one place where the API decides what a failure is called."""

from datetime import datetime
from typing import Final

from google.rpc import code_pb2, error_details_pb2, status_pb2

from cronring.controller.api.scope import sees
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import (
    Busy,
    CircleOfJobs,
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidModule,
    IssuerAway,
    KeyInUse,
    KeyReused,
    KeysAway,
    KeyUndecided,
    NotAsSeen,
    NotFound,
    Outdated,
    RunnerAway,
    StoreError,
    StoreUnavailable,
    Throttled,
    TooMany,
    TooManyKeys,
    TooManyStreams,
    TooSlow,
    Unauthenticated,
)
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.problems import FATE, PROBLEMS, SINCE, Fate, Reason, said_in, sign

Violations = list[tuple[str, str]]

# gRPC's trailers are headers of HTTP/2, in base64 here, and peers may refuse more than 8 KiB of them. A module with
# 5,000 wrong verbs must not lose its error for that: the first problems are the useful ones.
VIOLATIONS_BYTES_MAX: Final = 4_500
DESCRIPTION_LENGTH_MAX: Final = 300
MESSAGE_LENGTH_MAX: Final = 400
BUSY_S: Final = 0.2  # after which a refused caller may try again
TOO_MANY_S: Final = 5.0
AWAY_S: Final = 2.0


class InvalidRequest(Exception):
    """The caller's fault. `violations` are (field, description) pairs."""

    def __init__(self, violations: Violations) -> None:
        super().__init__("; ".join(f"{field}: {description}" for field, description in violations))
        self.violations = violations


class SlowReaderError(Exception):
    """The caller of a stream doesn't keep up with it, and may open another one."""


# The first that fits: Outdated is a Conflict.
_KINDS: Final[tuple[tuple[type[Exception], code_pb2.Code, Reason, str], ...]] = (
    (NotFound, code_pb2.NOT_FOUND, Reason.NOT_FOUND, ""),
    (Unauthenticated, code_pb2.UNAUTHENTICATED, Reason.UNAUTHENTICATED, ""),
    (Forbidden, code_pb2.PERMISSION_DENIED, Reason.FORBIDDEN, ""),
    (NotAsSeen, code_pb2.ABORTED, Reason.ETAG_MISMATCH, ""),
    (KeyReused, code_pb2.FAILED_PRECONDITION, Reason.KEY_REUSED, ""),
    (KeyInUse, code_pb2.ABORTED, Reason.KEY_IN_USE, ""),
    (KeyUndecided, code_pb2.FAILED_PRECONDITION, Reason.KEY_UNDECIDED, ""),
    (Outdated, code_pb2.ABORTED, Reason.OUTDATED, ""),
    (Conflict, code_pb2.FAILED_PRECONDITION, Reason.CONFLICT, ""),
    (SlowReaderError, code_pb2.RESOURCE_EXHAUSTED, Reason.SLOW_READER, ""),
    (Throttled, code_pb2.RESOURCE_EXHAUSTED, Reason.RATE_LIMITED, ""),
    (Busy, code_pb2.RESOURCE_EXHAUSTED, Reason.BUSY, ""),
    (TooManyKeys, code_pb2.RESOURCE_EXHAUSTED, Reason.TOO_MANY_KEYS, ""),
    (TooMany, code_pb2.RESOURCE_EXHAUSTED, Reason.TOO_MANY, ""),
    (TooSlow, code_pb2.UNAVAILABLE, Reason.TOO_SLOW, ""),
    (IssuerAway, code_pb2.UNAVAILABLE, Reason.ISSUER_AWAY, ""),
    (KeysAway, code_pb2.UNAVAILABLE, Reason.KEYS_AWAY, ""),
    (RunnerAway, code_pb2.UNAVAILABLE, Reason.RUNNER_AWAY, ""),
    (StoreUnavailable, code_pb2.UNAVAILABLE, Reason.DATABASE_AWAY, "PostgreSQL can't be reached by this controller: "),
    (StoreError, code_pb2.INTERNAL, Reason.STATEMENT_REFUSED, "PostgreSQL refused the statement: "),
)
_COUNTED: Final[tuple[tuple[type[Exception], str], ...]] = (
    (Unauthenticated, "unauthenticated"),
    (Forbidden, "forbidden"),
    (Throttled, "rate"),
    (TooManyStreams, "streams"),
)
_RETRY_S: Final = {
    Reason.KEY_IN_USE: 1.0,
    Reason.BUSY: BUSY_S,
    Reason.TOO_MANY: TOO_MANY_S,
    Reason.DATABASE_AWAY: AWAY_S,
}


def status_of(
    error: Exception, fate: Fate = Fate.NOT_DONE, away_since: datetime | None = None
) -> tuple[status_pb2.Status, bool]:
    """The status, and whether the error was foreseen. `fate`: of what the call was to change."""
    match error:
        case InvalidRequest():
            return _bad_request("the request", error.violations), True
        case NeverRuns():
            return _bad_request("the request", [("spec.schedule", str(error))]), True
        case InvalidModule():
            return _bad_request("the module", error.problems), True
        case CircleOfJobs() if not all(map(sees, error.keys)):
            error = Conflict("it would run after itself in the end, by jobs that you may not view")
    code, reason, prefix = next(
        (rest for kind, *rest in _KINDS if isinstance(error, kind)), (code_pb2.INTERNAL, Reason.UNEXPECTED, "")
    )
    foreseen = reason is not Reason.UNEXPECTED
    unforeseen = f"unexpected {type(error).__name__}; the controller's log has the details"
    status = status_pb2.Status(
        code=code, message=_cut(f"{prefix}{error}" if foreseen else unforeseen, MESSAGE_LENGTH_MAX)
    )
    metadata = {} if fate is Fate.NOT_DONE else {FATE: str(fate)}
    if isinstance(error, IllegalTransition):
        reason = Reason.ILLEGAL_TRANSITION
        metadata |= {"job": error.job, "action": error.action, "state": error.state, "target": error.target}
    if reason is Reason.DATABASE_AWAY and away_since is not None:
        metadata[SINCE] = away_since.isoformat(timespec="seconds")
    sign(status, reason, metadata, error.retry_s if isinstance(error, Throttled) else _RETRY_S.get(reason))
    return status, foreseen


def counted_as(error: Exception) -> str:
    """The metric's word for a refusal; "": it isn't counted."""
    return next((what for kind, what in _COUNTED if isinstance(error, kind)), "")


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
    status = status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=message)
    sign(status, Reason.INVALID, {PROBLEMS: str(len(violations))} if shown < len(violations) else {})
    status.details.add().Pack(details)
    return status


def refusal_of(message: str, *, too_large: bool) -> status_pb2.Status:
    """The status of a message that was refused before it was parsed."""
    code = code_pb2.RESOURCE_EXHAUSTED if too_large else code_pb2.INVALID_ARGUMENT
    status = status_pb2.Status(code=code, message=_cut(message, MESSAGE_LENGTH_MAX))
    sign(status, Reason.INVALID, {})
    return status


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def refusal_message(refusal: Exception) -> jobs_pb2.JobProblem:
    """What a call for this job alone would fail with."""
    status, _ = status_of(refusal)
    said = said_in(status.details)
    code = code_pb2.Code.Name(status.code)
    return jobs_pb2.JobProblem(code=code, reason=said.reason if said else "", problem=status.message)
