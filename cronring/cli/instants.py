"""Instants as people type them: `2026-03-29T00:30:00Z`, `2026-03-29T02:30` on a zone's clocks, a date, `-2h`, `now`."""

from datetime import UTC, datetime, timedelta

import click

from cronring.cli.clock import wall_now
from cronring.cli.failures import Failure


class Moment(click.ParamType[str]):
    """A text that `resolved` takes, checked as far as it can be without knowing the zone."""

    name = "INSTANT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = value.strip()
        try:
            resolved(text)
        except Failure as error:
            self.fail(error.message, param, ctx)
        return text


def resolved(text: str, zone: str = "", *, end_of_day: bool = False) -> datetime:
    """The instant, in UTC. What names no offset is on the clocks of `zone` ("": UTC).

    A date alone is its first second, or its last one with `end_of_day`. Raises Failure, saying what to write instead.
    """
    from schema.duration import DurationError, parse_duration
    from schema.instant import InstantError, parse_instant
    from schema.zone import ZoneError

    if text == "now":
        return wall_now()
    try:
        if text.startswith(("-", "+")):
            distance = timedelta(milliseconds=parse_duration(text[1:]))
            return wall_now() - distance if text[0] == "-" else wall_now() + distance
        instant_us = parse_instant(text, zone, end_of_day=end_of_day)
    except (DurationError, InstantError, ZoneError, OverflowError) as error:
        raise Failure(f"{text!r}: {error}. Other forms: 2026-03-29T00:30:00Z, -2h, now") from error
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant_us)
