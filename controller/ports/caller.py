"""The call that is being answered, and who makes it: set at the door, read where something is decided or noted."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final, NamedTuple

from cronring.schema.identity import NOBODY, Principal


class Call(NamedTuple):
    """`method`: of gRPC, "/cronring.v1.Jobs/PauseJob". `origin`: the address it came from, as gRPC writes it."""

    principal: Principal = NOBODY
    method: str = ""
    origin: str = ""


_OUTSIDE: Final = Call()
_CALL: ContextVar[Call] = ContextVar("call", default=_OUTSIDE)


def caller() -> Principal:
    """Of the call in hand. Outside of any call: NOBODY, who may do nothing."""
    return _CALL.get().principal


def call_in_hand() -> Call:
    """Outside of any call: of NOBODY."""
    return _CALL.get()


@contextlib.contextmanager
def calling(principal: Principal, method: str = "", origin: str = "") -> Iterator[None]:
    """What is done inside of it, in this task and those that it makes, is done for that principal."""
    token = _CALL.set(Call(principal, method, origin))
    try:
        yield
    finally:
        _CALL.reset(token)
