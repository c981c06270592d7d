"""The calendar by brute force: look at a clock once a minute, and write down what it shows.

Written from the rules of docs/schedules.md, and slow on purpose. It shares no code with `schema`: clocks are those of
zoneinfo (over the files of the `tzdata` package, as the host's may differ). Patterns are read by the dumb twin of the
unit tests.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from tests.unit.schema.twin import Twin

Clock = Callable[[int], datetime]
"""What it shows (a naive datetime) at an instant in UTC seconds."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)  # wall-clock times are naive here
END = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
SECOND = timedelta(seconds=1)
# Clocks differ by 26 hours at most: whatever is shown twice is shown so near.
MARGIN = 27 * 3600
CHUNK = 20 * 86_400


def instant(text: str) -> int:
    """UTC seconds of `2026-03-29T01:00`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def shown(second: int) -> str:
    return (EPOCH + second * SECOND).isoformat()


@cache
def zoneinfo_of(name: str) -> ZoneInfo:
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def clock_of(name: str) -> Clock:
    zone = zoneinfo_of(name)
    return lambda second: datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0)


class Reading:
    """A pattern as a person reads it."""

    def __init__(self, text: str) -> None:
        self.twin = Twin(text)
        self.seconds, self.minutes, self.hours, *_ = self.twin.values
        self.fixed_time = not any(sign in field for sign in "*/" for field in self.twin.fields[1:3])

    def matches_minute(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.twin.is_day(wall)


class Walk:
    """What a clock shows at every step from `start` to `end` (UTC seconds, both included, multiples of the step)."""

    def __init__(self, clock: Clock, start: int, end: int, step: int = 60) -> None:
        self.start, self.end, self.step = start, end, step
        self.shown: list[tuple[int, datetime]] = []
        self.showings: dict[datetime, list[int]] = {}
        self.missed: dict[datetime, int] = {}
        jumps = []
        before: datetime | None = None
        for second in range(start - MARGIN, end + MARGIN + 1, step):
            wall = clock(second)
            assert step == 1 or wall.second == 0, "a clock whose minutes are not those of UTC: walk by the second"
            self.showings.setdefault(wall, []).append(second)
            if start <= second <= end:
                self.shown.append((second, wall))
            if before is not None and wall > before + step * SECOND:
                jumps.append((second, before + step * SECOND, wall))
            before = wall
        for second, wall, until in jumps:
            for more in range(int((until - wall).total_seconds()) // step):
                skipped = wall + more * step * SECOND
                if skipped not in self.showings:
                    self.missed.setdefault(skipped, second)

    @property
    def last(self) -> int:
        """The last second that is known: of a walk by the minute, that of its last minute."""
        return self.end + self.step - 1

    def match(self, text: str) -> "Match":
        return Match(self, Reading(text))


class Match:
    """What of a walk matches a pattern."""

    def __init__(self, walk: Walk, reading: Reading) -> None:
        self.walk, self.reading = walk, reading
        seconds = sorted(reading.seconds) if walk.step == 60 else [0]
        self.matching: list[tuple[int, int, int]] = []  # (instant, number of this showing, showings)
        for second, wall in walk.shown:
            if reading.matches_minute(wall) and (walk.step == 60 or wall.second in reading.seconds):
                showings = walk.showings[wall]
                number, count = showings.index(second), len(showings)
                self.matching += [(second + more, number, count) for more in seconds if 0 <= second + more < END]
        self.missed = {
            second
            for wall, second in walk.missed.items()
            if walk.start <= second <= walk.end and 0 <= second < END
            if reading.matches_minute(wall) and (walk.step == 60 or wall.second in reading.seconds)
        }

    def ticks(self, gap: str = "", overlap: str = "") -> list[int]:
        """In order, and no instant twice."""
        fixed = self.reading.fixed_time
        overlap = overlap or ("first" if fixed else "both")
        found = set(self.missed) if fixed and gap != "skip" else set()
        for second, number, count in self.matching:
            wanted = min(1, count - 1) if overlap == "second" else 0
            if overlap == "both" or number == wanted:
                found.add(second)
        return sorted(found)


@lru_cache(maxsize=8)
def _walk(zone: str, start: int) -> Walk:
    return Walk(clock_of(zone), start, start + CHUNK - 60)


def ticks_between(text: str, zone: str, after: int, until: int, gap: str = "", overlap: str = "") -> list[int]:
    """Every tick in (after, until], UTC seconds, of a valid pattern. About a second for each year and zone."""
    found: list[int] = []
    for start in range(after // CHUNK * CHUNK, until + 1, CHUNK):
        found += _walk(zone, start).match(text).ticks(gap, overlap)
    return [tick for tick in found if after < tick <= until]
