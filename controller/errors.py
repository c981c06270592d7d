"""What the shell may fail with: retryable, the caller's fault, or fatal."""


class CronringError(Exception):
    """Base of all errors that cronring raises on purpose. The message says what to do next."""


class StoreUnavailable(CronringError):
    """PostgreSQL can't be reached, or a statement's outcome is unknown. Retry later."""


class StoreError(CronringError):
    """PostgreSQL refused a statement. A retry won't mend it."""


class NotFound(CronringError):
    """There is no such thing under that name."""


class Conflict(CronringError):
    """What is asked for doesn't go with how things stand. The message says what is so, and what would have to be."""


class Outdated(Conflict):
    """What was asked for had been judged by what somebody has changed since. Judge it anew."""


class SchemaVersionError(CronringError):
    """The database's schema is older or newer than this program; the message says which command mends it."""


class InvalidModule(CronringError):
    """The module's schema is refused. `problems` are (field, description) pairs."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {description}" for field, description in problems))
        self.problems = problems
