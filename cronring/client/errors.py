"""What a call to a controller may fail with. The message says what to do next."""

from collections.abc import Mapping, Sequence
from datetime import datetime
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
    """The request was refused. `violations` are (field, description) pairs, of `problems` in all: the first ones."""

    def __init__(self, message: str, violations: Sequence[tuple[str, str]] = (), problems: int | None = None) -> None:
        texts = [f"{field}: {description}" for field, description in violations]
        # A controller's message names them too; a list is for several.
        said = len(texts) == 1 and texts[0] in message
        super().__init__(message if said else "\n  ".join([message, *texts]))
        self.violations = tuple(violations)
        self.problems = max(problems or 0, len(self.violations))


class Unavailable(ClientError):
    """A controller answered, but it can't do this now. Nothing was changed; retry later."""


class DatabaseAway(Unavailable):
    """Controllers answer, but their PostgreSQL is away. `since`: None where the one that answered doesn't know."""

    def __init__(self, message: str, since: datetime | None = None) -> None:
        when = f" since {since:%Y-%m-%d %H:%M:%S}Z" if since else ""
        super().__init__(
            f"the controllers answer, but PostgreSQL is away{when}.\n"
            f"  seen: {message}\n"
            "  still works: what runs goes on, and its result is kept until PostgreSQL is back;\n"
            "    ticks that are missed meanwhile follow their job's on_missed\n"
            "  to do: start PostgreSQL, or mend the way to it; `cronring doctor` shows what each controller sees;\n"
            "    then repeat this command, which has changed nothing"
        )
        self.since = since


class Conflict(ClientError):
    """What was asked for doesn't go with how things stand; the message says what is so, and what would have to be.

    `info`: where a job's state doesn't allow it, "job", "action", its "state", and the "target" it would have led to.
    """

    def __init__(self, message: str, info: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.info = dict(info or {})


class EtagMismatch(Conflict):
    """What the `etag` was of has been changed since, or is gone. Nothing was done: read it anew, and decide again."""


class KeyReused(Conflict):
    """This idempotency key was given before, with another request. Take another one for this."""


class OutcomeUnknown(ClientError):
    """It may have been done, and may not: the answer was lost. Look before repeating it. `done`: it was done."""

    def __init__(self, why: str, look: str, *, done: bool = False) -> None:
        what = "it was done, but the answer was lost" if done else "unknown whether it was done"
        super().__init__(f"{what} ({why}); check with {look}")
        self.done = done


class Unauthenticated(ClientError):
    """The controllers don't know who asks: there is no token, or one that proves nothing (any more)."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\n"
            "Give your token: --token-file FILE, CRONRING_TOKEN_FILE or CRONRING_TOKEN (in Python: token=...). "
            "`cronring login` gets one from your issuer, `cronring token create` makes one."
        )


class PermissionDenied(ClientError):
    """The controllers know who asks, and that they may not do this."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\n`cronring whoami` shows who you are, and what you may do.")


class Refused(ClientError):
    """Anything else that a controller refused, with gRPC's word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
