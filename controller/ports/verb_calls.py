"""What verbs change through their runners: each call of an execution is done once, and only while that goes on."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from cronring.controller.errors import Conflict, CronringError


class RunOver(Conflict):
    """The execution that asks has ended, or is not that runner's: it changes nothing any more."""


class CallDone(CronringError):
    """This call was done before. What has just been done for it again is rolled back."""


class VerbCall(NamedTuple):
    """A call that a verb makes. `number`: from 1, of its execution. `runner_id`: who passes it on."""

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
        """What the store changes inside of it, by one transaction, is that call: both are kept, or neither is.

        The transaction raises CallDone, or RunOver, and changes nothing then.
        """
        ...


_KEPT: ContextVar[VerbCall | None] = ContextVar("verb_call", default=None)


def call_to_keep() -> VerbCall | None:
    """Which call a transaction is done for; None: it is nobody's."""
    return _KEPT.get()


@contextlib.contextmanager
def keeping(call: VerbCall) -> Iterator[None]:
    """Transactions that begin inside of it, in this task, are done for that call."""
    token = _KEPT.set(call)
    try:
        yield
    finally:
        _KEPT.reset(token)
