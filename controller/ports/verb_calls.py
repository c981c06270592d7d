"""What verbs change through their runners. Each call of an execution is done once, while the execution goes on."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from cronring.controller.errors import Conflict, CronringError


class RunOver(Conflict):
    """The execution that asks has ended, or is not that runner's: it changes nothing any more."""


class CallDone(CronringError):
    """This call was done before. The transaction that did it again is rolled back."""


class VerbCall(NamedTuple):
    """A call that a verb makes. `number`: counts the calls of its execution, from 1. `runner_id`: passes it on."""

    execution_id: int
    number: int
    runner_id: str

    def over(self) -> RunOver:
        """What to raise for an execution that has ended."""
        return RunOver(
            f"execution {self.execution_id} has ended, or was taken for lost: what it asks for now is not done. "
            "A run that must not go on unseen is stopped; let VerbStopped and CancelledError pass"
        )


class VerbCalls(Protocol):
    """The store's part of it."""

    async def standing(self, call: VerbCall) -> tuple[str, bool]:
        """The job that runs, by its key, and whether this call was done before.

        Raises RunOver where it was not done, and can't be any more.
        """
        ...

    def keeping(self, call: VerbCall) -> AbstractContextManager[None]:
        """The one transaction inside of it also notes the call as done: both are committed, or neither is.

        If that transaction raises CallDone or RunOver, it changes nothing.
        """
        ...


_KEPT: ContextVar[VerbCall | None] = ContextVar("verb_call", default=None)


def call_to_keep() -> VerbCall | None:
    """The call that a transaction must note as done; None: there is none."""
    return _KEPT.get()


@contextlib.contextmanager
def keeping(call: VerbCall) -> Iterator[None]:
    """Transactions that begin inside of it, in this task, are done for that call."""
    token = _KEPT.set(call)
    try:
        yield
    finally:
        _KEPT.reset(token)
