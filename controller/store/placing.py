"""Places of limits: who gets one of those that are left, and who waits. In the transaction of a claim, for few."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import asyncpg

from cronring.sql.parameters import LockPlaces, TakePlaces
from cronring.sql.records import Statement

Fetch: TypeAlias = Callable[[Statement], Awaitable[list[asyncpg.Record]]]


class WantedPlace(NamedTuple):
    """What a job under limits needs a place of. `waits_from`: since when, where a level of priority is a second."""

    module_limit: int | None
    namespace_limit: int | None
    waits_from: int

    @property
    def limits(self) -> tuple[int, ...]:
        """The module's before the namespace's."""
        return tuple(limit for limit in (self.module_limit, self.namespace_limit) if limit is not None)


def who_waits(wanted: Mapping[int, WantedPlace], free: Mapping[int, int]) -> dict[int, int]:
    """For each that gets no place, by its id, the limit that is full. Whoever has waited longest comes first.

    `free`: the places that each limit has left.
    """
    left = dict(free)
    waits: dict[int, int] = {}
    for each, waiting in sorted(wanted.items(), key=lambda item: (item[1].waits_from, item[0])):
        full = next((limit for limit in waiting.limits if left.get(limit, 0) <= 0), None)
        if full is not None:
            waits[each] = full
            continue
        for limit in waiting.limits:
            left[limit] -= 1
    return waits


async def lock_places(fetch: Fetch, wanted: Iterable[WantedPlace]) -> dict[int, int]:
    """The places that are left, by limit. They stay as many until the transaction ends, but for its own."""
    limits = sorted({limit for waiting in wanted for limit in waiting.limits})
    return dict(map(tuple, await fetch(LockPlaces(limit_ids=limits))))


async def take_places(fetch: Fetch, started: Iterable[WantedPlace]) -> None:
    """Of limits that are locked."""
    taken = Counter(limit for waiting in started for limit in waiting.limits)
    if taken:
        await fetch(TakePlaces(limit_ids=list(taken), places=list(taken.values())))
