"""The one place that reads instants as people type them, for every option that takes one."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import click

from cronring.cli.clock import wall_now
from cronring.cli.failures import Failure

Command = TypeVar("Command", bound=Callable[..., Any])

FORMS: Final = "now, -2h, +30m, 09:00, 2026-03-29, 2026-03-29T02:30, 2026-03-29T00:30:00Z"
_SHORT: Final = "now, -2h, 09:00 (today's), 2026-03-29, 2026-03-29T02:30"
_TIME: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?", re.ASCII)
_DISTANCE: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?[a-z].*", re.ASCII | re.DOTALL)


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


def instant_option(*flags: str, zone: str, **settings: Any) -> Callable[[Command], Command]:
    """An option for an instant. `zone`: on whose clocks it is read where it names no offset; its help says so."""
    settings["help"] = f"{settings['help']}: {_SHORT}, on {zone} clocks."
    return click.option(*flags, type=settings.pop("type", Moment()), **settings)


def resolved(text: str, zone: str = "", *, end_of_day: bool = False) -> datetime:
    """The instant, in UTC. What names no offset is on the clocks of `zone` ("": UTC); a time alone is today's there.

    A date alone is its first second, or its last one with `end_of_day`. Raises Failure, saying what to write instead.
    """
    from cronring.schema.duration import DurationError, parse_duration
    from cronring.schema.instant import InstantError, from_us, parse_instant
    from cronring.schema.zone import ZoneError

    if text == "now":
        return wall_now()
    try:
        if text.startswith(("-", "+")):
            distance = timedelta(milliseconds=parse_duration(text[1:]))
            return wall_now() - distance if text[0] == "-" else wall_now() + distance
        whole = f"{_today(zone)}T{text.zfill(5) if len(text) < 6 else text.zfill(8)}" if _TIME.fullmatch(text) else text
        instant_us = parse_instant(whole, zone, end_of_day=end_of_day)
    except (DurationError, InstantError, ZoneError, OverflowError) as error:
        signed = f" (did you mean -{text}, or +{text}?)" if _DISTANCE.fullmatch(text) else ""
        raise Failure(f"{text!r}: {error}{signed}. An instant is {FORMS}") from error
    return from_us(instant_us)


def past(flag: str, text: str, zone: str = "") -> datetime:
    """As `resolved`, of an option that only makes sense for what has been. Raises Failure for what is to come."""
    moment = resolved(text, zone)
    if moment > wall_now():
        ago = f"; {text[1:]} ago is -{text[1:]}" if text.startswith("+") else ""
        raise Failure(
            f"{flag} {text} is {moment:%Y-%m-%d %H:%M:%S}Z, which is to come; give an instant that has passed{ago}"
        )
    return moment


def canonical(text: str, zone: str) -> str:
    """An instant as the API takes it: that knows nothing of now, and nothing of today. What it knows stays as it is."""
    if text == "now" or text.startswith(("+", "-")) or _TIME.fullmatch(text):
        return f"{resolved(text, zone):%Y-%m-%dT%H:%M:%SZ}"
    return text


def _today(zone: str) -> str:
    """The date that the zone's clocks show. Raises ZoneError."""
    from cronring.schema.zone import load_zone

    now = wall_now()
    offset = load_zone(zone or "UTC").offset_at(int(now.timestamp()))
    return f"{now + timedelta(seconds=offset):%Y-%m-%d}"
