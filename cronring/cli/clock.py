"""The user's own wall clock, for what has no cluster to ask: `cronring next`, and lines before a database is up."""

from datetime import UTC, datetime


def wall_now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the shell of this process; nothing here decides about ticks
