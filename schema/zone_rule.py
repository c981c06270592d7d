"""The rule in a zone file's footer, for all time after its table: `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX TZ, RFC 9636)."""

import re
from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

_NAME: Final = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_TIME: Final = r"[+-]?[0-9]{1,3}(?::[0-9]{2}(?::[0-9]{2})?)?"
_DAY: Final = r"(?:M[0-9]{1,2}\.[1-5]\.[0-6]|J?[0-9]{1,3})"
_RULE: Final = re.compile(
    rf"{_NAME}({_TIME})(?:{_NAME}({_TIME})?,({_DAY})(?:/({_TIME}))?,({_DAY})(?:/({_TIME}))?)?", re.ASCII
)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY: Final = 86_400
_YEAR_SECONDS: Final = 31_556_952  # on average


class _Turn(NamedTuple):
    """The day (`M3.5.0`, `J60` or `59`) and the time of that day, in seconds of the clock until then, of a change."""

    day: str
    time: int

    def clock(self, year: int) -> int:
        """Seconds since 1970 on the wall clock that is about to change."""
        return self._day_number(year) * _SECONDS_PER_DAY + self.time

    def _day_number(self, year: int) -> int:
        """Days since 1970."""
        if self.day[0] != "M":
            start = date(year, 1, 1).toordinal() - _EPOCH_DAY
            if self.day[0] != "J":  # counted from 0, 29 February included
                return start + int(self.day)
            number = int(self.day[1:])  # counted from 1, 29 February never counted
            leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            return start + number - 1 + (leap and number >= 60)
        month, week, weekday = map(int, self.day[1:].split("."))
        first = date(year, month, 1)
        day = (weekday - first.isoweekday()) % 7 + 7 * (week - 1)
        following = date(year + month // 12, month % 12 + 1, 1)
        if day >= (following - first).days:  # week 5 is the last one, be it the fourth
            day -= 7
        return first.toordinal() - _EPOCH_DAY + day


class Rule(NamedTuple):
    """Offsets in seconds east of UTC. `summer`, `begins` and `ends` are None where the clock is never changed.

    In Dublin's rule `summer` is the lower of the two, from October to March.
    """

    standard: int
    summer: int | None = None
    begins: _Turn | None = None
    ends: _Turn | None = None

    def changes(self, after: int, until: int) -> Iterator[tuple[int, int]]:
        """(UTC second, offset from then on) of every change in (after, until], in order."""
        if self.summer is None or self.begins is None or self.ends is None:
            return
        found = []
        for year in range(1970 + after // _YEAR_SECONDS - 1, 1970 + until // _YEAR_SECONDS + 2):
            turns = [
                (self.begins.clock(year) - self.standard, self.summer),
                (self.ends.clock(year) - self.summer, self.standard),
            ]
            found += sorted(turns)
        # The sort is stable: where one year's end of summer is the next one's begin, the begin comes last and holds.
        yield from (change for change in sorted(found, key=lambda change: change[0]) if after < change[0] <= until)


def parse_rule(text: str) -> Rule:
    """Raises ValueError for what is no rule."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a rule of a time zone: {text!r}")
    standard_text, summer_text, begins, begins_at, ends, ends_at = match.groups()
    standard = -_seconds(standard_text)  # POSIX counts west of Greenwich
    if begins is None:
        return Rule(standard)
    summer = standard + 3600 if summer_text is None else -_seconds(summer_text)
    return Rule(standard, summer, _Turn(begins, _seconds(begins_at or "2")), _Turn(ends, _seconds(ends_at or "2")))


def _seconds(text: str) -> int:
    """`-1:30` as -5400."""
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    total = sum(part * size for part, size in zip(parts, (3600, 60, 1), strict=False))
    return -total if text.startswith("-") else total
