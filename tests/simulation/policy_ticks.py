"""The product's own calendar: worlds of faults need no brute force, which the year and tests/oracle hold it against."""

from typing import Final

from cronring.controller.core.ledger.books import Span
from cronring.schema.timetable import timetable
from tests.simulation.year_oracle import Oracle

LONG_BEFORE_US: Final = 3_600_000_000


class Calendar(Oracle):
    def __init__(self, start_us: int) -> None:  # it has no ticks to walk to
        self._from_us = start_us - LONG_BEFORE_US

    def ticks(self, span: Span, until_us: int) -> list[int]:
        return ticks_between(span, max(span.from_at, self._from_us), until_us)


def ticks_between(span: Span, after_us: int, until_us: int) -> list[int]:
    """Those of its schedule in (after, until], whenever that was in force."""
    schedule = timetable(span.schedule, span.anchor, span.policy).schedule
    ticks: list[int] = []
    tick = schedule.next_after(after_us)
    while tick is not None and tick <= until_us:
        ticks.append(tick)
        tick = schedule.next_after(tick)
    return ticks
