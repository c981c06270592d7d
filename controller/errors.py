"""What the shell may fail with: retryable, the caller's fault, or fatal."""

from collections.abc import Sequence

from cronring.schema.identity import Principal


class CronringError(Exception):
    """Base of all errors that cronring raises on purpose. The message says what to do next."""


class StoreUnavailable(CronringError):
    """PostgreSQL can't be reached, or a statement's outcome is unknown. Retry later."""


class StoreError(CronringError):
    """PostgreSQL refused a statement. A retry won't mend it."""


class IssuerAway(CronringError):
    """Whose a token is can't be told now, without its issuer's keys. Another controller may have them."""


class KeysAway(CronringError):
    """The program that wraps and unwraps keys gives no answer. Try again later, or at another controller."""


class RunnerAway(CronringError):
    """The runner that is needed isn't connected to this controller. Another may have it."""


class TooMany(CronringError):
    """This controller, or a runner, serves as many already as it may. Try again later."""


class TooManyKeys(TooMany):
    """A caller has used as many idempotency keys as are kept for one. Without a key it can be done."""


class TooManyStreams(TooMany):
    """A caller has as many streams open as one may have. Close some, or try again later."""


class Throttled(CronringError):
    """A caller makes more calls than it may. Nothing was done; come again after `retry_s`."""

    def __init__(self, message: str, retry_s: float) -> None:
        super().__init__(message)
        self.retry_s = retry_s


class Busy(CronringError):
    """This controller has as many calls in hand as it takes. Nothing was done; come again in a moment."""


class TooSlow(CronringError):
    """A call's time was up before it was done."""


class NotFound(CronringError):
    """There is no such thing under that name."""


class Denied(CronringError):
    """A call is refused for who makes it. `principal`: whom they have proven to be, if anybody."""

    def __init__(self, message: str, principal: Principal | None = None) -> None:
        super().__init__(message)
        self.principal = principal


class Unauthenticated(Denied):
    """Nobody knows who calls, or who called is no longer known. The message says what to give."""


class Forbidden(Denied):
    """Whoever calls may not do this. The message says what it takes, and what they have."""


class Conflict(CronringError):
    """What is asked for doesn't go with how things stand. The message says what is so, and what would have to be."""


class CircleOfJobs(Conflict):
    """Jobs would run after each other in a circle. `keys`: theirs, in that order."""

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class IllegalTransition(Conflict):
    """A job's state doesn't allow what is asked for; see controller.core.orders.states. `target`: the state asked
    for.
    """

    def __init__(self, message: str, *, job: str, state: str, target: str, action: str) -> None:
        super().__init__(message)
        self.job = job
        self.state = state
        self.target = target
        self.action = action


class SecretLocked(Conflict):
    """A secret does not open here: its key is missing, or it is not what was encrypted. The message names the key."""


class Outdated(Conflict):
    """What was asked for had been judged by what somebody has changed since. Judge it anew."""


class NotAsSeen(CronringError):
    """The caller wants to change what it has seen, and that has been changed since. Read it anew."""


class KeyReused(CronringError):
    """An idempotency key was given before, with another request. Take another key."""


class KeyInUse(CronringError):
    """A request of the same idempotency key is being done. Come again in a moment."""


class KeyUndecided(CronringError):
    """Nobody knows what became of the request of this idempotency key. Look, then take another key."""


class SchemaVersionError(CronringError):
    """The database's schema is older or newer than this program; the message says which command mends it."""


class InvalidModule(CronringError):
    """The module's schema is refused. `problems` are (field, description) pairs."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {description}" for field, description in problems))
        self.problems = problems
