"""The call that is being answered, and who makes it: set at the door, read where something is decided or noted."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final, NamedTuple

from cronring.schema.identity import LOCAL, NOBODY, Principal

NO_METHOD: Final = "none"


class Call(NamedTuple):
    """`method`: of gRPC, "/cronring.v1.Jobs/PauseJob"; or the command that works on the database itself.

    `origin`: the address it came from, as gRPC writes it. `requested_by` and `note`: what the request says of who asked
    for it, and why. They prove nothing.
    """

    principal: Principal = NOBODY
    method: str = NO_METHOD
    origin: str = ""
    requested_by: str = ""
    note: str = ""

    @property
    def remark(self) -> str:
        """In words: "for ada: wrong month"."""
        asked = f"for {self.requested_by}" if self.requested_by else ""
        return ": ".join(filter(None, (asked, self.note)))

    @property
    def details(self) -> dict[str, object]:
        """Kept with each action, where the request says more of who asked than the actor does."""
        return {} if self.principal == LOCAL or not self.requested_by else {"requested_by": self.requested_by}


_OUTSIDE: Final = Call()
_CALL: ContextVar[Call] = ContextVar("call", default=_OUTSIDE)


def caller() -> Principal:
    """Of the call in hand. Outside of any call: NOBODY, who may do nothing."""
    return _CALL.get().principal


def call_in_hand() -> Call:
    """Outside of any call: of NOBODY."""
    return _CALL.get()


def acting(words: str) -> str:
    """Who acts, as it is kept: the caller. Where nobody is known (--insecure), who they say they are."""
    principal = caller()
    return words if principal == LOCAL else str(principal)


@contextlib.contextmanager
def calling(principal: Principal, method: str = NO_METHOD, origin: str = "") -> Iterator[None]:
    """Code inside of it, in this task and in tasks that it makes, acts for that principal."""
    with _in_hand(Call(principal, method, origin)):
        yield


@contextlib.contextmanager
def remarking(requested_by: str, note: str = "") -> Iterator[None]:
    """Code inside of it has these remarks in the call in hand."""
    with _in_hand(_CALL.get()._replace(requested_by=requested_by, note=note)):
        yield


@contextlib.contextmanager
def known_as(principal: Principal) -> Iterator[None]:
    """Code inside of it knows that this principal makes the call in hand."""
    with _in_hand(_CALL.get()._replace(principal=principal)):
        yield


@contextlib.contextmanager
def _in_hand(call: Call) -> Iterator[None]:
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)
