"""Which jobs and executions have changed since last asked, told from ids that only grow.

Ids are drawn before they are committed, so a lower one may appear after a higher one: whatever is missing between two
answers stays open and is asked for again, until no transaction can still bring it.
"""

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

# A statement takes 8 s at most; an id that has not appeared after this was rolled back.
OPEN_FOR_US: Final = 15_000_000
# How far below the highest id a transaction may still be at work when one begins to look.
_LOOKED_BACK: Final = 5_000


# What any tick lies between: years 1 to 9999.
EARLIEST: Final = -62_135_596_800_000_000
LATEST: Final = 253_402_300_799_999_999


class Row(NamedTuple):
    """`settled`: nothing more will happen to it."""

    row_id: int
    job_id: int
    settled: bool
    tick: int | None = None  # of an execution: its partition


class Stream(NamedTuple):
    """Ids seen so far. `missing`: below the highest and not seen, with the database time to give up at."""

    highest: int
    unsettled: frozenset[int]
    missing: tuple[tuple[int, int], ...]
    # The unsettled ones' ticks lie between these: only partitions of that time are asked for them.
    first_tick: int = EARLIEST
    last_tick: int = LATEST

    def open_ids(self) -> list[int]:
        return sorted(self.unsettled) + self.missing_ids()

    def missing_ids(self) -> list[int]:
        return [row_id for row_id, _ in self.missing]

    def by_tick(self) -> tuple[list[int], list[int], int, int]:
        """The missing ids, which may be of any tick, and the unsettled ones, with what is known of their ticks."""
        return self.missing_ids(), sorted(self.unsettled), self.first_tick, self.last_tick

    def has_told(self, row_id: int, *, settled: bool) -> bool:
        """Whether an answer has told of it, and, if that is asked, that it was settled."""
        seen = row_id <= self.highest and all(row_id != missing for missing, _ in self.missing)
        return seen and not (settled and row_id in self.unsettled)

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
        ticks = [row.tick for row in found.values() if not row.settled and row.tick is not None]
        return Stream(highest, unsettled, tuple(missing), *_reach(ticks, len(unsettled))), told


class Position(NamedTuple):
    """Where somebody who follows the jobs has come to. `deployments`, `jobs`: changes told, as (id, instant)."""

    database_now: int
    executions: Stream
    skips: Stream
    deployments: frozenset[tuple[int, int]]
    jobs: frozenset[tuple[int, int]]


def _reach(ticks: list[int], unsettled: int) -> tuple[int, int]:
    return (min(ticks), max(ticks)) if ticks and len(ticks) == unsettled else (EARLIEST, LATEST)


def beginning(highest: int, unsettled: Iterable[int]) -> Stream:
    """A stream from which on nothing is left out; its first answers tell of a few that are older."""
    return Stream(max(highest - _LOOKED_BACK, 0), frozenset(unsettled), ())


class ExecutionPosition(NamedTuple):
    """Where somebody who follows the executions has come to."""

    database_now: int
    executions: Stream


# Ids grow by little, so their differences pack well: a few bytes for each execution that runs.
_TOKEN_LENGTH_MAX: Final = 1_000_000
_DECODED_LENGTH_MAX: Final = 10_000_000


def encode_position(position: "Position | ExecutionPosition") -> str:
    """As a text that `decode_position` takes."""
    parts: list[Any] = [position.database_now, _pack(position.executions)]
    if isinstance(position, Position):
        parts += [_pack(position.skips), sorted(position.deployments), sorted(position.jobs)]
    packed = zlib.compress(json.dumps(parts, separators=(",", ":")).encode())
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_position(token: str) -> "Position | ExecutionPosition":
    """Raises ValueError for what is none of ours."""
    if len(token) > _TOKEN_LENGTH_MAX:
        raise ValueError("too long")
    try:
        unpacking = zlib.decompressobj()
        packed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        parts = json.loads(unpacking.decompress(packed, _DECODED_LENGTH_MAX))
        match parts:
            case [int(now), list(executions)]:
                return ExecutionPosition(_tick(now), _unpack(executions))
            case [int(now), list(executions), list(skips), list(deployments), list(jobs)]:
                return Position(_tick(now), _unpack(executions), _unpack(skips), _pairs(deployments), _pairs(jobs))
    except (zlib.error, TypeError, RecursionError) as error:
        raise ValueError("no token") from error
    raise ValueError("no token")


def _pack(stream: Stream) -> list[Any]:
    ids = sorted(stream.unsettled)
    steps = [later - earlier for earlier, later in zip([0, *ids], ids, strict=False)]
    return [stream.highest, steps, stream.missing, stream.first_tick, stream.last_tick]


def _unpack(parts: list[Any]) -> Stream:
    highest, steps, missing, first_tick, last_tick = parts
    ids: list[int] = []
    for step in steps:
        ids.append(_id(step) + (ids[-1] if ids else 0))
    ticks = _tick(first_tick), _tick(last_tick)
    return Stream(_id(highest), frozenset(map(_id, ids)), tuple(sorted(_pairs(missing))), *ticks)


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
