"""A job that ticks once a year, and one to be paused."""

from cronring import cron


@cron("0 0 1 1 *")
def yearly() -> None:
    """At new year."""


@cron("* * * * * *")
def halted() -> None:
    """Each second, until somebody pauses it."""
