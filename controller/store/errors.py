"""What asyncpg and the operating system raise, as cronring.controller.errors says it."""

import contextlib
from collections.abc import Iterator
from typing import Final

import asyncpg

from cronring.controller.errors import StoreError, StoreUnavailable

# Classes of SQLSTATE after which the same statement may well succeed: connection, resources, locks and deadlocks,
# operator intervention (restart, timeouts), I/O.
_RETRYABLE_CLASSES: Final = frozenset({"08", "40", "53", "55", "57", "58"})
# 25006: a fail-over has made the server that we hold on to a standby. 25P03, 25P04: a transaction was too slow.
READ_ONLY: Final = "25006"
_UNCERTAIN_CLASSES: Final = frozenset({"", "08", "57", "58", "XX"})
_COMPLETION_UNKNOWN: Final = "40003"
_RETRYABLE_STATES: Final = frozenset({READ_ONLY, "25P03", "25P04"})


def is_retryable(error: Exception) -> bool:
    """Whether the outcome is unknown, or may differ next time; False: it is refused for good."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state[:2] in _RETRYABLE_CLASSES or state in _RETRYABLE_STATES
    # asyncpg's own refusals of an argument or a setting are ValueErrors; all else of its own is a broken connection.
    return not isinstance(error, ValueError)


def is_refusal(error: Exception) -> bool:
    """Whether PostgreSQL itself said that the statement, or the COMMIT, has failed: then nothing was changed.

    A server that stops may have committed before it said so: those that wait for a standby have.
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
