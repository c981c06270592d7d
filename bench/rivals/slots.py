"""Turns: each contender has its own second within a cycle of whole minutes, and some time to itself after it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

MARGIN_S = 8
CYCLES_MIN = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)  # that an hour is made of


class Slot(NamedTuple):
    """In seconds, `offset_s` counted from the beginning of a cycle; these begin with the hour."""

    offset_s: int
    length_s: int
    cycle_s: int

    @property
    def minutes(self) -> str:
        """A cron pattern's field."""
        first, cycle = self.offset_s // 60, self.cycle_s // 60
        return "*" if cycle == 1 else ",".join(map(str, range(first, 60, cycle)))

    @property
    def second(self) -> int:
        return self.offset_s % 60

    def tick(self, cycle_start: int) -> int:
        return cycle_start + self.offset_s


def length_s(jobs: int, slowest: int, margin_s: int = MARGIN_S) -> int:
    """Of the slot of a contender that does at least so many executions a second."""
    return margin_s + math.ceil(jobs / slowest)


def arrange(requests: Sequence[tuple[int, bool]]) -> list[Slot]:
    """A slot for each request, in their order: its length in seconds, and whether it must begin with a minute.

    Raises ValueError when they don't fit into an hour.
    """
    ends, offsets = 0, []
    for length, on_the_minute in requests:
        offset = math.ceil(ends / 60) * 60 if on_the_minute else ends
        offsets.append(offset)
        ends = offset + length
    for minutes in CYCLES_MIN:
        if minutes * 60 >= ends:
            return [Slot(offset, length, minutes * 60) for offset, (length, _) in zip(offsets, requests, strict=True)]
    raise ValueError(f"slots of {ends} s in all: fewer jobs or fewer contenders fit into an hour")


def next_cycle(now: float, cycle_s: int) -> int:
    """The instant when the next cycle begins."""
    return (int(now) // cycle_s + 1) * cycle_s
