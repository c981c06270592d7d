"""Cron patterns: `CronPattern.parse("0 6 1 * *").next_after(moment)`. The dialect stands in docs/schedules.md."""

import datetime
from dataclasses import dataclass
from typing import Final, Self

from cronring.schema import search
from cronring.schema.pattern_parse import PatternError, parse_pattern
from cronring.schema.search import FieldSets

__all__ = ["CronPattern", "PatternError"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND: Final = datetime.timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class CronPattern:
    """When something is due, by the clock and calendar of UTC. Made by `parse`; two of the same text are equal."""

    text: str
    """As written, but with one space between fields and none around them."""
    fields: tuple[str, ...]
    """The seven fields it stands for, second first and year last: `25m` is `0 */25 * * * * *`."""
    sets: FieldSets

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern; PatternError when it isn't one, or when it could never fire in any year from 1970 to 2099."""
        return cls(*parse_pattern(text))

    def next_after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The first tick after `moment`, in UTC; None when the years of the pattern are past (or 2099 is).

        `moment` may be in any time zone. Raises ValueError when it has none.
        """
        if moment.utcoffset() is None:
            raise ValueError(
                f"{moment.isoformat()} has no time zone, so it names no instant; "
                "give one, for example moment.replace(tzinfo=datetime.UTC)"
            )
        tick = search.next_tick(self.sets, (moment - _EPOCH) // _SECOND)
        return None if tick is None else _EPOCH + datetime.timedelta(seconds=tick)

    def next_second(self, after: int) -> int | None:
        """`next_after` in whole seconds since 1970."""
        return search.next_tick(self.sets, after)

    def last_second(self, until: int) -> int | None:
        """The last tick at or before `until`, in whole seconds since 1970; None when there is none since 1970."""
        return search.last_tick(self.sets, until)

    def count_seconds(self, after: int, until: int) -> int:
        """How many ticks lie in (after, until], both in whole seconds since 1970."""
        return search.count_ticks(self.sets, after, until)

    def __str__(self) -> str:
        return self.text
