"""Errors of asyncpg and of the operating system, translated into those of cronring.controller.errors."""

import contextlib
from collections.abc import Iterator
from typing import Final

import asyncpg

from cronring.controller.errors import StoreError, StoreUnavailable

# Classes of SQLSTATE after which the same statement may well succeed: connection, resources, locks and deadlocks,
# operator intervention (restart, timeouts), I/O.
_RETRYABLE_CLASSES: Final = frozenset({"08", "40", "53", "55", "57", "58"})
# 25006: after a fail-over, our connection leads to a standby. 25P03, 25P04: a transaction was too slow.
READ_ONLY: Final = "25006"
_UNCERTAIN_CLASSES: Final = frozenset({"", "08", "57", "58", "XX"})
_COMPLETION_UNKNOWN: Final = "40003"
_RETRYABLE_STATES: Final = frozenset({READ_ONLY, "25P03", "25P04"})


def is_retryable(error: Exception) -> bool:
    """Whether the outcome is unknown, or may differ next time; False: it is refused for good."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state[:2] in _RETRYABLE_CLASSES or state in _RETRYABLE_STATES
    # asyncpg refuses an argument or a setting with a ValueError. Its other errors mean a broken connection.
    return not isinstance(error, ValueError)


def is_refusal(error: Exception) -> bool:
    """Whether PostgreSQL itself said that the statement, or the COMMIT, has failed. Then nothing was changed.

    An error from a server that stops is no such answer: a COMMIT that waits for a standby is done already.
    """
    if not isinstance(error, asyncpg.PostgresError):
        return False
    state = error.sqlstate or ""
    return state[:2] not in _UNCERTAIN_CLASSES and state != _COMPLETION_UNKNOWN


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise StoreUnavailable or StoreError for whatever a statement or a connection attempt fails with."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        reason = f"{what}: {str(error) or type(error).__name__}"
        if is_retryable(error):
            raise StoreUnavailable(reason) from error
        raise StoreError(reason) from error
