"""The fate of the changes that one call asks for, so that a failed call can say whether it was done."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from cronring.protos.problems import Fate


class FatedCall:
    """One call of the API. `fate`: of all its changes until now."""

    def __init__(self) -> None:
        self.fate = Fate.NOT_DONE


# docs/decisions/0056: a call that fails must say whether it was done
class FatedChange:
    """One transaction of a call."""

    def __init__(self, call: FatedCall) -> None:
        self._call = call
        self._before: Fate | None = None

    def committing(self) -> None:
        """The COMMIT is on its way: from now on its fate is unknown until it has answered."""
        self._before, self._call.fate = self._call.fate, Fate.UNKNOWN

    def done(self) -> None:
        if self._before is not None:
            self._call.fate = Fate.UNKNOWN if self._before is Fate.UNKNOWN else Fate.DONE

    def refused(self) -> None:
        """PostgreSQL refused it, so it has changed nothing."""
        if self._before is not None:
            self._call.fate, self._before = self._before, None


_CALL: ContextVar[FatedCall | None] = ContextVar("call", default=None)


@contextlib.contextmanager
def call() -> Iterator[FatedCall]:
    """Changes inside of it, in this task, count for this call; or for the HTTP request that the call is a part of."""
    with _telling(_CALL.get() or FatedCall()) as here:
        yield here


@contextlib.contextmanager
def beside() -> Iterator[None]:
    """Changes inside of it don't count for the call."""
    with _telling(FatedCall()):
        yield


def fate() -> Fate:
    """The fate of all that the present call has changed until now."""
    return (_CALL.get() or FatedCall()).fate


@contextlib.contextmanager
def _telling(here: FatedCall) -> Iterator[FatedCall]:
    token = _CALL.set(here)
    try:
        yield here
    finally:
        _CALL.reset(token)


@contextlib.contextmanager
def change(is_refusal: Callable[[Exception], bool]) -> Iterator[FatedChange]:
    """Around a transaction, or a statement that is one. After an error of `is_refusal` it has changed nothing."""
    here = FatedChange(_CALL.get() or FatedCall())
    try:
        yield here
    except Exception as error:
        if is_refusal(error):
            here.refused()
        raise
    here.done()
