"""What a zone's clock shows from 1970 to 2099, cut into pieces without jumps: where a search runs as it does in UTC.

A wall-clock time is *shown* at no instant (it was skipped: it lies in a gap), at one, or at several (an overlap).
Nothing is assumed of the changes: they may follow each other within minutes, and skip or repeat more than a day.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from cronring.schema.search import CLOCK_END, SECONDS_PER_DAY
from cronring.schema.zone import Zone

Showing = Literal["both", "first", "second"]
"""Which showings of a repeated wall-clock time count. A time shown once counts always."""

# Offsets differ by at most 26 hours (-12:00 to +14:00), so stretches further apart never show the same time.
_REACH: Final = 2 * SECONDS_PER_DAY


class ZoneTimeline(NamedTuple):
    """Pieces are parallel tuples in order of time: in [starts, ends), UTC seconds, the clock shows UTC + offset.

    Gaps are parallel tuples too: at the instant `gap_ats` the clock skipped from `gap_starts` to `gap_ends`, in seconds
    since 1970 of the wall clock. No instant ever shows a time in between. The order of time is also that of the wall
    clock: a clock passes a time by showing or skipping it, and only the first skip counts.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    offsets: tuple[int, ...]
    gap_ats: tuple[int, ...]
    gap_starts: tuple[int, ...]
    gap_ends: tuple[int, ...]


class _Stretch(NamedTuple):
    """One offset holds in [start, end)."""

    start: int
    end: int
    offset: int

    @property
    def shown(self) -> tuple[int, int]:
        return self.start + self.offset, self.end + self.offset


@lru_cache(maxsize=2000)  # three for each zone
def timeline(zone: Zone, showing: Showing) -> ZoneTimeline:
    """The timeline of those instants of 1970 to 2099 that count."""
    stretches = _stretches(zone)
    pieces = [piece for number in range(len(stretches)) for piece in _pieces(stretches, number, showing)]
    pieces = [
        _Stretch(max(piece.start, 0), min(piece.end, CLOCK_END), piece.offset)
        for piece in pieces
        if piece.end > 0 and piece.start < CLOCK_END
    ]
    gaps = [gap for gap in _gaps(stretches) if 0 <= gap[0] < CLOCK_END]
    return ZoneTimeline(
        tuple(piece.start for piece in pieces),
        tuple(piece.end for piece in pieces),
        tuple(piece.offset for piece in pieces),
        tuple(at for at, _, _ in gaps),
        tuple(start for _, start, _ in gaps),
        tuple(end for _, _, end in gaps),
    )


def _stretches(zone: Zone) -> list[_Stretch]:
    """Also a little before 1970 and after 2099: a time first shown there is shown again here."""
    first, end = -_REACH, CLOCK_END + _REACH
    changes = zone.changes_between(first, end - 1)
    starts = [first, *(change.at for change in changes)]
    offsets = [zone.offset_at(first), *(change.after for change in changes)]
    return [_Stretch(*stretch) for stretch in zip(starts, [*starts[1:], end], offsets, strict=True)]


def _pieces(stretches: Sequence[_Stretch], number: int, showing: Showing) -> Iterator[_Stretch]:
    """What counts of a stretch."""
    stretch = stretches[number]
    counts = _RULES[showing]
    others = [] if showing == "both" else _near(stretches, number)
    start = stretch.start
    for low, high in _cuts(stretch.shown, others):
        earlier = sum(1 for other in others if other.start < stretch.start and _covers(other, low))
        later = sum(1 for other in others if other.start > stretch.start and _covers(other, low))
        if not counts(earlier, later):
            if start < low - stretch.offset:
                yield _Stretch(start, low - stretch.offset, stretch.offset)
            start = high - stretch.offset
    if start < stretch.end:
        yield _Stretch(start, stretch.end, stretch.offset)


_RULES: Final[dict[Showing, Callable[[int, int], bool]]] = {
    "both": lambda _earlier, _later: True,
    "first": lambda earlier, _later: earlier == 0,
    "second": lambda earlier, later: earlier == 1 or earlier == later == 0,
}


def _gaps(stretches: Sequence[_Stretch]) -> Iterator[tuple[int, int, int]]:
    """(instant, first wall-clock second skipped, end) of what no instant shows, each under the first change over it."""
    for number in range(1, len(stretches)):
        before, after = stretches[number - 1], stretches[number]
        skipped = (after.start + before.offset, after.start + after.offset)
        if skipped[0] >= skipped[1]:
            continue
        near = _near(stretches, number)
        for low, high in _cuts(skipped, near):
            if not any(_covers(other, low) for other in near) and not _was_skipped(stretches, number, low):
                yield after.start, low, high


def _was_skipped(stretches: Sequence[_Stretch], number: int, clock: int) -> bool:
    """Whether a change before that of `number`, not far away, skipped this wall-clock second already."""
    for later in range(number - 1, 0, -1):
        before, after = stretches[later - 1], stretches[later]
        if after.start + _REACH < stretches[number].start:
            return False
        if after.start + before.offset <= clock < after.start + after.offset:
            return True
    return False


def _near(stretches: Sequence[_Stretch], number: int) -> list[_Stretch]:
    """The stretches before and after this one that may show the same times."""
    low, high = number, number + 1
    while low > 0 and stretches[low - 1].end > stretches[number].start - _REACH:
        low -= 1
    while high < len(stretches) and stretches[high].start < stretches[number].end + _REACH:
        high += 1
    return [*stretches[low:number], *stretches[number + 1 : high]]


def _cuts(span: tuple[int, int], others: Sequence[_Stretch]) -> Iterator[tuple[int, int]]:
    """A span of wall-clock seconds, cut wherever another stretch begins or ends to show it."""
    edges = {edge for other in others for edge in other.shown if span[0] < edge < span[1]}
    cuts = [span[0], *sorted(edges), span[1]]
    return pairwise(cuts)


def _covers(stretch: _Stretch, clock: int) -> bool:
    start, end = stretch.shown
    return start <= clock < end
