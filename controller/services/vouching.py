"""Whose secret a caller shows: by PostgreSQL, and while it is away, by what it said within the last minute."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.identity import TokenRefused
from cronring.schema.identity import Principal

# While PostgreSQL is away, nobody could ask why, as `doctor` needs a token too. So a secret that PostgreSQL vouched for
# within this time is still believed. While PostgreSQL is there, the door asks anew each second (docs/decisions/0069).
REMEMBERED_S: Final = 60
REMEMBERED_MAX: Final = 1_024
AWAY_S: Final = 1.0  # an answer that takes longer counts as none, since callers of `doctor` wait for 3 s
_NS: Final = 1_000_000_000


class Vouched(NamedTuple):
    """What PostgreSQL has said. `now`: by its own clock, in microseconds since 1970."""

    principal: Principal
    now: int


class _Remembered(NamedTuple):
    principal: Principal
    until_ns: int


class Vouching:
    """Asks by the hash of a secret, and remembers. `now_ns`: a monotonic clock."""

    def __init__(self, ask: Callable[[bytes], Awaitable[Vouched]], now_ns: Callable[[], int]) -> None:
        """`ask` is one statement. It raises TokenRefused; StoreUnavailable when that can't be told now."""
        self._ask = ask
        self._now_ns = now_ns
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()  # by hash; the oldest first

    async def principal(self, digest: bytes) -> Principal:
        """Raises as `ask` does."""
        known = self._known(digest)
        try:
            async with asyncio.timeout(AWAY_S if known else None):
                found = await self._ask(digest)
        except (StoreUnavailable, TimeoutError):
            if known is None:
                raise
            return known
        except TokenRefused:
            self._remembered.pop(digest, None)
            raise
        self._remember(digest, found)
        return found.principal

    def _known(self, digest: bytes) -> Principal | None:
        found = self._remembered.get(digest)
        return found.principal if found is not None and self._now_ns() < found.until_ns else None

    def _remember(self, digest: bytes, found: Vouched) -> None:
        left_ns = REMEMBERED_S * _NS
        if found.principal.expires_us is not None:
            left_ns = min(left_ns, (found.principal.expires_us - found.now) * 1_000)
        self._remembered[digest] = _Remembered(found.principal, self._now_ns() + left_ns)
        self._remembered.move_to_end(digest)
        if len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
