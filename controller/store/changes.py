"""Which jobs and executions have changed since the last question. Growing ids tell it.

Ids are drawn before their rows are committed, so a lower id may appear after a higher one. So missing ids stay open,
and are asked for again until no transaction can bring them any more.
"""

import json
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

# A statement takes 8 s at most; an id that has not appeared after this was rolled back.
OPEN_FOR_US: Final = 15_000_000
# Each gap is looked up by itself, four times a second. So many take some ten milliseconds.
GAPS_MAX: Final = 500
# So far below the highest id, open transactions may still bring rows when somebody begins to look.
_LOOKED_BACK: Final = 5_000


# All ticks lie between these: years 1 to 9999.
EARLIEST: Final = -62_135_596_800_000_000
LATEST: Final = 253_402_300_799_999_999


class SeenRow(NamedTuple):
    """`ended`: nothing more will happen to it."""

    row_id: int
    job_id: int
    ended: bool
    tick: int | None = None  # of an execution: its partition


# docs/decisions/0053: ids are drawn before they are committed
class Gap(NamedTuple):
    """Ids from `first` to `last` that have not been seen. `until`: the database time to give them up at."""

    first: int
    last: int
    until: int

    def without(self, seen: Sequence[int]) -> Iterator["Gap"]:
        """What is left of the gap without the ids in `seen`, which are in order and may lie outside."""
        first = self.first
        for row_id in seen[bisect_left(seen, self.first) : bisect_right(seen, self.last)]:
            if first < row_id:
                yield self._replace(first=first, last=row_id - 1)
            first = row_id + 1
        if first <= self.last:
            yield self._replace(first=first)


class Stream(NamedTuple):
    """Ids seen so far. `missing`: below the highest and not seen, in order."""

    highest: int
    unfinished: frozenset[int]
    missing: tuple[Gap, ...]
    # The ticks of unfinished executions lie between these, so only partitions of that time are read.
    first_tick: int = EARLIEST
    last_tick: int = LATEST

    def gaps(self) -> tuple[list[int], list[int]]:
        """The first and the last missing id of each gap. Their ticks aren't known."""
        return [gap.first for gap in self.missing], [gap.last for gap in self.missing]

    def has_told(self, row_id: int, *, ended: bool) -> bool:
        """Whether an answer has told of this row. `ended`: whether it has also told its end."""
        below = bisect_right(self.missing, row_id, key=lambda gap: gap.first)
        missing = below > 0 and row_id <= self.missing[below - 1].last
        return row_id <= self.highest and not missing and not (ended and row_id in self.unfinished)

    def after(self, rows: Iterable[SeenRow], now: int) -> tuple["Stream", list[int]]:
        """The stream after an answer, and the ids of the jobs that the answer tells of. The answer covers ids above the
        highest, open gaps and unfinished rows.
        """
        found = {row.row_id: row for row in rows}
        seen = sorted(found)
        highest = max(self.highest, seen[-1]) if seen else self.highest
        news = Gap(self.highest + 1, highest, now + OPEN_FOR_US)
        open_still = [gap for gap in self.missing if gap.until > now]
        missing = joined([each for gap in (*open_still, news) for each in gap.without(seen)])
        unfinished = frozenset(row.row_id for row in found.values() if not row.ended)
        told = [row.job_id for row in found.values() if row.ended or row.row_id not in self.unfinished]
        ticks = [row.tick for row in found.values() if not row.ended and row.tick is not None]
        return Stream(highest, unfinished, missing, *_reach(ticks, len(unfinished))), told

    def having_told(self, rows: Sequence[SeenRow], now: int) -> "Stream":
        """The stream if only these rows of an answer have been told. The other rows come again.

        `rows`: executions, whose ticks are known.
        """
        seen = sorted(row.row_id for row in rows)
        highest = max([self.highest, *seen[-1:]])
        news = Gap(self.highest + 1, highest, now + OPEN_FOR_US)
        missing = joined([each for gap in (*self.missing, news) for each in gap.without(seen)])
        unfinished = self.unfinished.difference(seen).union(row.row_id for row in rows if not row.ended)
        ticks = [row.tick for row in rows if not row.ended and row.tick is not None]
        ticks += [self.first_tick, self.last_tick] if self.unfinished else []
        return Stream(highest, unfinished, missing, *_reach(ticks, len(ticks)))


def joined(gaps: list[Gap]) -> tuple[Gap, ...]:
    """At most GAPS_MAX gaps: the closest ones are joined. So no id is left out, and few rows are told twice."""
    excess = len(gaps) - GAPS_MAX
    if excess <= 0:
        return tuple(gaps)
    closest = sorted(range(1, len(gaps)), key=lambda at: gaps[at].first - gaps[at - 1].last)
    to_join = frozenset(closest[:excess])
    found: list[Gap] = []
    for at, gap in enumerate(gaps):
        if at in to_join:
            found[-1] = Gap(found[-1].first, gap.last, max(found[-1].until, gap.until))
        else:
            found.append(gap)
    return tuple(found)


class Position(NamedTuple):
    """How far a follower of the jobs has read. `deployments`, `jobs`: changes that were told, as (id, instant)."""

    database_now: int
    executions: Stream
    skips: Stream
    deployments: frozenset[tuple[int, int]]
    jobs: frozenset[tuple[int, int]]


def _reach(ticks: list[int], unfinished: int) -> tuple[int, int]:
    return (min(ticks), max(ticks)) if ticks and len(ticks) == unfinished else (EARLIEST, LATEST)


def beginning(highest: int, unfinished: Iterable[int]) -> Stream:
    """A stream that leaves out nothing from now on. Its first answers also tell of a few older rows."""
    return Stream(max(highest - _LOOKED_BACK, 0), frozenset(unfinished), ())


class ExecutionPosition(NamedTuple):
    """How far a follower of the executions has read."""

    database_now: int
    executions: Stream


_DECODED_LENGTH_MAX: Final = 10_000_000


def encode_position(position: "Position | ExecutionPosition") -> bytes:
    """As `decode_position` takes it."""
    parts: list[Any] = [position.database_now, pack(position.executions)]
    if isinstance(position, Position):
        parts += [pack(position.skips), sorted(position.deployments), sorted(position.jobs)]
    return zlib.compress(json.dumps(parts, separators=(",", ":")).encode())


def decode_position(packed: bytes) -> "Position | ExecutionPosition":
    """What `encode_position` gave. Raises ValueError for anything else."""
    try:
        parts = json.loads(zlib.decompressobj().decompress(packed, _DECODED_LENGTH_MAX))
        match parts:
            case [int(now), list(executions)]:
                return ExecutionPosition(_tick(now), unpack(executions))
            case [int(now), list(executions), list(skips), list(deployments), list(jobs)]:
                return Position(_tick(now), unpack(executions), unpack(skips), _pairs(deployments), _pairs(jobs))
    except (zlib.error, TypeError, RecursionError) as error:
        raise ValueError("no position") from error
    raise ValueError("no position")


def pack(stream: Stream) -> list[Any]:
    """For JSON. Ids lie close together, so their differences take only a few bytes for each unfinished execution."""
    ids = sorted(stream.unfinished)
    steps = [later - earlier for earlier, later in zip([0, *ids], ids, strict=False)]
    missing = [[gap.first, gap.until, gap.last][: 2 + (gap.first < gap.last)] for gap in stream.missing]
    return [stream.highest, steps, missing, stream.first_tick, stream.last_tick]


def unpack(parts: list[Any]) -> Stream:
    """What `pack` gave. Raises ValueError, TypeError."""
    highest, steps, missing, *ticks = parts
    ids: list[int] = []
    for step in steps:
        ids.append(_id(step) + (ids[-1] if ids else 0))
    gaps = tuple(sorted(_gap(*each) for each in missing))
    return Stream(_id(highest), frozenset(map(_id, ids)), gaps, *map(_tick, ticks))


def _gap(first: object, until: object, last: object = None) -> Gap:
    return Gap(_id(first), _id(first if last is None else last), _id(until))


def _pairs(parts: list[Any]) -> frozenset[tuple[int, int]]:
    return frozenset((_id(one), _id(other)) for one, other in parts)


def _id(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError("no id")
    return value


def _tick(value: Any) -> int:
    if not isinstance(value, int) or abs(value) > LATEST:
        raise ValueError("no tick")
    return value
