"""Expected errors as messages with an exit code; a traceback is for defects only."""

import sys
from collections.abc import Iterable
from typing import IO, Any, Final

import click

from cronring.cli.printing import say_failure
from cronring.schema.nearest import nearest

EXIT_FAILED: Final = 1  # what was asked for is refused, invalid, not there, or did not succeed
EXIT_UNREACHABLE: Final = 3  # no controller, or no database, can be reached


class Failure(click.ClickException):
    """An expected failure. `message` says what to do next; `prefix` stands before it."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED, prefix: str = "error: ") -> None:
        super().__init__(message)
        self.prefix = prefix
        self.exit_code = exit_code  # type: ignore[misc]  # click declares a class variable, and reads it from here

    def show(self, file: IO[Any] | None = None) -> None:
        say_failure(self.prefix, self.message, file or sys.stderr)


def suggestion(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?`, or nothing."""
    close = nearest(word, known)
    return f" Did you mean {close!r}?" if close else ""


def translated(error: Exception) -> Failure | None:
    """The Failure for an error that cronring raises on purpose; None for anything else."""
    # Late imports, as this runs only once something has failed.
    from cronring.client.errors import ClientError, OutcomeUnknown, Unavailable, Unreachable
    from cronring.controller.errors import CronringError, StoreUnavailable

    match error:
        case Unreachable() | Unavailable() | OutcomeUnknown() | StoreUnavailable():
            return Failure(str(error), EXIT_UNREACHABLE)
        case ClientError() | CronringError():
            return Failure(str(error))
        case _:
            return None
