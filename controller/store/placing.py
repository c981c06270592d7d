"""Places of limits: which claims get the free ones, and which wait. Only claims under a limit come here."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import asyncpg

from cronring.sql.parameters import FindPlaces, LockPlaces, MakePlaces, TakePlaces
from cronring.sql.records import Statement

Fetch: TypeAlias = Callable[[Statement], Awaitable[list[asyncpg.Record]]]
Places: TypeAlias = tuple[int, ...]  # ids of limits, or of values of limits by label


class WantedPlace(NamedTuple):
    """What a job under limits needs a place of.

    `turn`: the turn of its share, by its controller. `waits_from`: since when it waits, a second earlier per level of
    priority.
    """

    places: Places
    turn: int
    waits_from: int


def who_waits(wanted: Mapping[int, WantedPlace], free: Mapping[int, int]) -> dict[int, int]:
    """For each id that gets no place, the full limit. Lower turns come first; within a turn, the one that waits
    longest.

    `free`: the places that are left of each limit, or value.
    """
    left = dict(free)
    waits: dict[int, int] = {}
    for each, waiting in sorted(wanted.items(), key=lambda item: (item[1].turn, item[1].waits_from, item[0])):
        full = next((place for place in waiting.places if left.get(place, 0) <= 0), None)
        if full is not None:
            waits[each] = full
            continue
        for place in waiting.places:
            left[place] -= 1
    return waits


# docs/decisions/0092: an end gives back the places that the claim took, even if the job's labels have changed
async def find_places(fetch: Fetch, job_ids: Iterable[int]) -> dict[int, Places]:
    """By job, the limits and values that it needs a place of. The transaction has locked the jobs, but no places."""
    wanted = sorted(set(job_ids))
    found = await fetch(FindPlaces(job_ids=wanted))
    new = [job_id for job_id, places in found if None in places]
    if new:
        await fetch(MakePlaces(job_ids=new))
        found = await fetch(FindPlaces(job_ids=wanted))
    none: dict[int, Places] = dict.fromkeys(wanted, ())
    return none | {job_id: tuple(places) for job_id, places in found}


async def lock_places(fetch: Fetch, wanted: Iterable[WantedPlace]) -> dict[int, int]:
    """The free places. Their number is locked until the transaction ends: only this one changes it."""
    return dict(map(tuple, await fetch(LockPlaces(limit_ids=_ids(wanted)))))


async def take_places(fetch: Fetch, started: Iterable[WantedPlace]) -> None:
    """Take places of limits that this transaction has locked."""
    taken = Counter(place for waiting in started for place in waiting.places)
    if taken:
        await fetch(TakePlaces(limit_ids=list(taken), places=list(taken.values())))


def placed(wanted: Mapping[int, WantedPlace], ids: Iterable[int]) -> list[str]:
    """The places of these, as PostgreSQL writes arrays."""
    return [f"{{{','.join(map(str, wanted[each].places))}}}" for each in ids]


def _ids(wanted: Iterable[WantedPlace]) -> list[int]:
    return sorted({place for waiting in wanted for place in waiting.places})
