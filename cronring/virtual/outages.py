"""That a part of a virtual cluster is away for a while, as text: `database@2026-03-29T01:00+2h`."""

import re
from typing import Final, NamedTuple

from cronring.schema.duration import DurationError, format_duration, parse_duration
from cronring.schema.instant import InstantError, format_instant, parse_instant

PARTS: Final = ("database", "controllers", "runners")
_OUTAGE: Final = re.compile(r"(?P<part>[^@]*)@(?P<start>.*)\+(?P<length>[^+:]*)", re.DOTALL)
_EXAMPLE: Final = "database@2026-03-29T01:00+2h"


class OutageError(ValueError):
    """A text that names no outage; the message says what to write."""


class Outage(NamedTuple):
    """In microseconds since 1970."""

    part: str
    start_us: int
    length_us: int

    @property
    def end_us(self) -> int:
        return self.start_us + self.length_us

    def __str__(self) -> str:
        return f"{self.part}@{format_instant(self.start_us)}+{format_duration(self.length_us // 1_000)}"


def parse_outage(text: str) -> Outage:
    """`PART@START+LENGTH`, START in UTC if it names no offset. Raises OutageError."""
    match = _OUTAGE.fullmatch(text)
    if match is None:
        raise OutageError(f"{text!r} is no outage: write PART@START+LENGTH, like {_EXAMPLE}")
    part = check_part(match["part"])
    try:
        return Outage(part, parse_instant(match["start"]), parse_duration(match["length"]) * 1_000)
    except InstantError as error:
        raise OutageError(f"{text!r}: its start: {error}") from None
    except DurationError as error:
        raise OutageError(f"{text!r}: its length: {error}") from None


def check_part(part: str) -> str:
    """Raises OutageError if there is no such part."""
    if part not in PARTS:
        raise OutageError(f"{part!r} can't be away: there are {', '.join(PARTS)}")
    return part
