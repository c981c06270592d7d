"""Who makes the call that is being answered: set at the door, read where something is decided or noted."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from cronring.schema.identity import NOBODY, Principal

_CALLER: ContextVar[Principal] = ContextVar("caller", default=NOBODY)


def caller() -> Principal:
    """Of the call in hand. Outside of any call: NOBODY, who may do nothing."""
    return _CALLER.get()


@contextlib.contextmanager
def calling(principal: Principal) -> Iterator[None]:
    """What is done inside of it, in this task and those that it makes, is done for that principal."""
    token = _CALLER.set(principal)
    try:
        yield
    finally:
        _CALLER.reset(token)
