"""Time zones by their IANA names, out of the `tzdata` package alone: answers must not depend on the host's files."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from cronring.schema.zone_file import read_offsets
from cronring.schema.zone_hint import explain_unknown

_NO_ZONES: Final = frozenset({"Factory"})  # "not set up yet", says tzdata itself


class ZoneError(ValueError):
    """A name that is no zone's: `message`, `position` (always 0), `suggestion` (a zone's name, or None)."""

    def __init__(self, message: str, position: int = 0, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["ZoneError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


class OffsetChange(NamedTuple):
    """At `at` (UTC second) the clock moves: by `after - before` seconds, forward if that is positive."""

    at: int
    before: int
    after: int


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """What the clocks of a zone show: UTC plus an offset, which changes. Made by `load_zone`, one object for each name.

    `starts` and `offsets` are parallel: from `starts[n]` (UTC second) on, `offsets[n]` holds.
    """

    name: str
    starts: tuple[int, ...] = field(repr=False)
    offsets: tuple[int, ...] = field(repr=False)

    def offset_at(self, second: int) -> int:
        """Seconds east of UTC, at an instant in UTC seconds since 1970, before 1970 and up to 2100."""
        return self.offsets[max(bisect_right(self.starts, second) - 1, 0)]

    def changes_between(self, after: int, until: int) -> list[OffsetChange]:
        """Every change of the offset in (after, until], in UTC seconds since 1970. Changes of name alone are none."""
        first = max(bisect_right(self.starts, after), 1)
        end = bisect_right(self.starts, until)
        return [OffsetChange(self.starts[n], self.offsets[n - 1], self.offsets[n]) for n in range(first, end)]

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_zone, (self.name,)

    def __str__(self) -> str:
        return self.name


@cache
def load_zone(name: str) -> Zone:
    """The zone of an IANA name (`Europe/Berlin`, `UTC`; capitals count). Raises ZoneError.

    Names are few, so every zone once loaded is kept. Loading takes about a millisecond.
    """
    if name not in _known():
        raise ZoneError(*_unknown(name))
    data = resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes()
    return Zone(name, *read_offsets(data))


def _unknown(name: str) -> tuple[str, int, str | None]:
    message, suggestion = explain_unknown(name, zone_names())
    return message, 0, suggestion


@cache
def zone_data_version() -> str:
    """Of the rules that `load_zone` reads, like `2026.6`: of two versions a zone's ticks may differ."""
    text = resources.files("tzdata").joinpath("__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return "unknown" if found is None else found[1]


@cache
def zone_names() -> tuple[str, ...]:
    """Every name that `load_zone` takes, older spellings included, sorted."""
    listed = resources.files("tzdata").joinpath("zones").read_text("ascii").split()
    return tuple(sorted(set(listed) - _NO_ZONES))


@cache
def _known() -> frozenset[str]:
    return frozenset(zone_names())
