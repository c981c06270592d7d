"""Which jobs have changed since last asked, told from ids that only grow.

Ids are drawn before they are committed, so a lower one may appear after a higher one: whatever is missing between two
answers stays open and is asked for again, until no transaction can still bring it.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

# A statement takes 8 s at most; an id that has not appeared after this was rolled back.
OPEN_FOR_US: Final = 15_000_000
# How far below the highest id a transaction may still be at work when one begins to look.
_LOOKED_BACK: Final = 5_000


class Row(NamedTuple):
    """`settled`: nothing more will happen to it."""

    row_id: int
    job_id: int
    settled: bool


class Stream(NamedTuple):
    """Ids seen so far. `missing`: below the highest and not seen, with the database time to give up at."""

    highest: int
    unsettled: frozenset[int]
    missing: tuple[tuple[int, int], ...]

    def open_ids(self) -> list[int]:
        return sorted(self.unsettled) + [row_id for row_id, _ in self.missing]

    def after(self, rows: Iterable[Row], now: int) -> tuple["Stream", list[int]]:
        """The stream after an answer about ids above the highest and the open ones; and the jobs that it tells of."""
        found = {row.row_id: row for row in rows}
        highest = max([self.highest, *found])
        missing = [(row_id, until) for row_id, until in self.missing if row_id not in found and until > now]
        missing += [
            (row_id, now + OPEN_FOR_US) for row_id in range(self.highest + 1, highest + 1) if row_id not in found
        ]
        unsettled = frozenset(row.row_id for row in found.values() if not row.settled)
        told = [row.job_id for row in found.values() if row.settled or row.row_id not in self.unsettled]
        return Stream(highest, unsettled, tuple(missing)), told


class Position(NamedTuple):
    """Where somebody who follows the jobs has come to. `deployments`, `jobs`: changes told, as (id, instant)."""

    database_now: int
    executions: Stream
    skips: Stream
    deployments: frozenset[tuple[int, int]]
    jobs: frozenset[tuple[int, int]]


def beginning(highest: int, unsettled: Iterable[int]) -> Stream:
    """A stream from which on nothing is left out; its first answers tell of a few that are older."""
    return Stream(max(highest - _LOOKED_BACK, 0), frozenset(unsettled), ())
