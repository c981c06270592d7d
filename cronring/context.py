"""What a verb is told about the execution it is part of."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class VerbStopped(BaseException):
    """Raised inside a verb that must stop now: its deadline has passed, or it was cancelled.

    Sync verbs get it wherever they are; an async verb gets asyncio.CancelledError instead, unless it blocks its event
    loop. It is no Exception, so that `except Exception` doesn't swallow it. Clean up within two seconds and let it
    pass: a verb that goes on is killed.
    """


class RunFacts(NamedTuple):
    """An execution as the runner describes it. Instants are microseconds since 1970 in PostgreSQL's clock."""

    execution_id: int
    job: str
    tick_us: int
    run_at_us: int
    deadline_us: int
    attempt: int
    trigger: str
    started_us: int


class Context:
    """One execution. Instants are aware datetimes in UTC, by PostgreSQL's clock."""

    __slots__ = ("_facts",)

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts

    @property
    def job(self) -> str:
        """The job's key: `module.verb`, or `namespace/module.verb`."""
        return self._facts.job

    @property
    def execution_id(self) -> int:
        return self._facts.execution_id

    @property
    def attempt(self) -> int:
        """1 for the first attempt at this tick."""
        return self._facts.attempt

    @property
    def trigger(self) -> str:
        """Why it runs: "schedule" for a tick."""
        return self._facts.trigger

    @property
    def tick(self) -> datetime:
        """The nominal instant, exactly on the schedule."""
        return _EPOCH + timedelta(microseconds=self._facts.tick_us)

    @property
    def run_at(self) -> datetime:
        """When it was to start: the tick and its jitter."""
        return _EPOCH + timedelta(microseconds=self._facts.run_at_us)

    @property
    def deadline(self) -> datetime:
        """When the soft timeout cancels it."""
        return _EPOCH + timedelta(microseconds=self._facts.deadline_us)

    @property
    def lateness(self) -> timedelta:
        """Actual start minus run_at."""
        return timedelta(microseconds=self._facts.started_us - self._facts.run_at_us)

    @property
    def log(self) -> logging.Logger:
        """A logger under the job's name. Its lines are kept with the execution, like anything printed."""
        return logging.getLogger(self._facts.job)

    def __repr__(self) -> str:
        return f"<Context {self.job} tick={self.tick.isoformat()} attempt={self.attempt} execution={self.execution_id}>"
