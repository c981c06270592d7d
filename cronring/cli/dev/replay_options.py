"""The options of `cronring dev` that make it a replay in virtual time."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from cronring.cli.instants import instant_option
from cronring.cli.options import Duration

Command = TypeVar("Command", bound=Callable[..., Any])

MAX: Final = "max"
_SPEED: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)x?")


class Speed(click.ParamType[float | str]):
    """`3600x`, or `max`."""

    name = "SPEED"

    def convert(self, value: float | str, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if isinstance(value, float) or value == MAX:
            return value
        match = _SPEED.fullmatch(str(value).strip())
        if match is None or float(match[1]) <= 0:
            self.fail(f"{value!r} is no speed; write 3600x (an hour in a second), or max", param, ctx)
        return float(match[1])


class OutageText(click.ParamType[Any]):
    """`database@2026-03-29T01:00+2h`."""

    name = "PART@START+LENGTH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from cronring.virtual.outages import Outage, OutageError, parse_outage

        if isinstance(value, Outage):
            return value
        try:
            return parse_outage(value)
        except OutageError as error:
            self.fail(str(error), param, ctx)


class VerbDuration(click.ParamType[tuple[str, int]]):
    """`close_month=5m`, as (verb, microseconds)."""

    name = "VERB=LENGTH"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        verb, equals, length = value.partition("=")
        if not equals or not verb:
            self.fail(f"{value!r} names no duration; write VERB=LENGTH, like close_month=5m", param, ctx)
        return verb, round(Duration().convert(length, param, ctx) * 1_000_000)


def replay_options(command: Command) -> Command:
    """Adds them; they come as keywords."""
    for option in reversed(
        (
            click.option("--speed", type=Speed(),
                         help="Replay in virtual time, so many times as fast as real time: 3600x, max."),
            instant_option("--start", zone="UTC", help="With --speed: when the virtual time begins, else now"),
            click.option("--outage", multiple=True, type=OutageText(),
                         help="With --speed: database, controllers or runners are away then. Repeatable."),
            click.option("--duration", multiple=True, type=VerbDuration(),
                         help="With --speed: runs of this verb last so long in virtual time. Repeatable."),
            click.option("-o", "--output", type=click.Choice(["text", "json"]),
                         help="Lines in this form, instead of the live picture; in JSON an object on each."),
        )
    ):  # fmt: skip
        command = option(command)
    return command
