"""What a call to a controller may fail with. The message says what to do next."""

from collections.abc import Mapping, Sequence
from typing import Final

SLOW: Final = "RESOURCE_EXHAUSTED"  # `Refused.code` of a stream that was read too slowly


class ClientError(Exception):
    """Base of all errors that the client raises on purpose."""


class Unreachable(ClientError):
    """No controller answered. `tried` holds (address, reason) pairs."""

    def __init__(self, tried: Sequence[tuple[str, str]]) -> None:
        lines = "\n".join(f"  {address}: {reason}" for address, reason in tried)
        super().__init__(
            f"no controller answered:\n{lines}\n"
            "Start one (`cronring controller`, or `cronring dev FILE` to try things out), or point elsewhere with "
            "--controllers HOST:PORT,... or CRONRING_CONTROLLERS."
        )
        self.tried = tuple(tried)


class NotFound(ClientError):
    """There is no such thing under that name."""


class Invalid(ClientError):
    """The request was refused. `violations` are (field, description) pairs."""

    def __init__(self, message: str, violations: Sequence[tuple[str, str]] = ()) -> None:
        texts = [f"{field}: {description}" for field, description in violations]
        # A controller's message names them too; a list is for several.
        said = len(texts) == 1 and texts[0] in message
        super().__init__(message if said else "\n  ".join([message, *texts]))
        self.violations = tuple(violations)


class Unavailable(ClientError):
    """A controller answered, but it can't do this now: its PostgreSQL is away, or it is leaving. Retry later."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\nThe controllers are up; retry when their PostgreSQL is back.")


class Conflict(ClientError):
    """What was asked for doesn't go with how things stand; the message says what is so, and what would have to be.

    `info`: where a job's state doesn't allow it, "job", "action", its "state", and the "target" it would have led to.
    """

    def __init__(self, message: str, info: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.info = dict(info or {})


class OutcomeUnknown(ClientError):
    """The controller that was asked may have done it, and may not: its answer was lost. Look before repeating it."""


class Refused(ClientError):
    """Anything else that a controller refused, with gRPC's word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
