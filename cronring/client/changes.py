"""One change, over all its tries: whether it may have been done, and whether it may be asked for again."""

from typing import Final

from cronring.client.failures import Failed, Kind
from cronring.protos.problems import Fate, Reason

_OF_KEYS: Final = frozenset({Reason.KEY_IN_USE, Reason.KEY_REUSED, Reason.KEY_UNDECIDED})


class Keyless(Exception):
    """The caller has no key left, and nothing was done."""


class Stopped(Exception):
    """It may have been done, and must not be done again."""


class Change:
    """`key`: whoever is asked again knows it by that. `repeatable`: done twice, it comes to the same.

    `needs_key`: it is not to be done without.

    `maybe`: the first try that may have done it. `is_lost`: no controller has said what became of one.
    """

    def __init__(self, key: str = "", *, repeatable: bool = False, needs_key: bool = False) -> None:
        self.key = key
        self._needs_key = needs_key
        self._repeatable = repeatable
        self.maybe: tuple[str, Failed] | None = None
        self.is_lost = False

    @property
    def is_asked_again(self) -> bool:
        """After a pause, of controllers that gave no answer before."""
        return self.is_lost and (self._repeatable or bool(self.key))

    def failed(self, address: str, failed: Failed) -> None:
        """Take note of a try. Raises Keyless; Stopped if there must be no other one."""
        if failed.fate is Fate.NOT_DONE:
            self._not_done(failed)
            return
        self.maybe = self.maybe or (address, failed)
        self.is_lost = self.is_lost or not failed.reason
        # A controller that has begun it and doesn't know its end will not know it later, either.
        if not self._repeatable and (failed.reason or not self.key):
            raise Stopped

    def _not_done(self, failed: Failed) -> None:
        if failed.reason == Reason.TOO_MANY_KEYS and self.maybe is None and not self._needs_key:
            raise Keyless
        if self.key and failed.kind is Kind.REFUSED and failed.reason not in {"", *_OF_KEYS}:
            self.maybe = None  # what had been begun under this key would have been the answer
