"""`cronring convert`: a pattern as an interval, and back."""

import sys
from typing import TYPE_CHECKING

import click

from cronring.cli.clock import wall_now
from cronring.cli.failures import Failure
from cronring.cli.options import output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say_lines
from cronring.cli.schedules import parse_given

if TYPE_CHECKING:
    from cronring.schema.convert import Conversion


@click.command()
@click.argument("schedule")
@output_option
def convert(schedule: str, output: str) -> None:
    """Say which interval is equal to a cron pattern, or which pattern to an interval; or why there is none.

    Exit code 1 if there is none. They are equal in UTC; an interval does not follow the clocks of a time zone.

    \b
    Examples:
      cronring convert "0 */6 * * *"            every 6h
      cronring convert "*/25 * * * *"           none: an hour ends with 10m
      cronring convert "every 6h"               the pattern 6h (0 0 */6 * * * *)
      cronring convert "every 90m"              none, and what comes near
    """
    found = converted(schedule)
    if output == "json":
        print_json(found)
    else:
        say_lines(in_words(found))
    sys.exit(0 if found.equal else 1)


def converted(text: str) -> "Conversion":
    """Raises Failure for what is no schedule, and for one that is neither a pattern nor an interval."""
    from cronring.schema.convert import interval_of, pattern_of
    from cronring.schema.schedule import CronSchedule, IntervalSchedule

    schedule = parse_given(text, wall_now()).schedule
    match schedule:
        case CronSchedule():
            return interval_of(schedule.pattern)
        case IntervalSchedule():
            return pattern_of(schedule.interval // 1_000_000)
    raise Failure(f"{schedule.text!r} is neither a pattern nor an interval, so there is nothing to convert")


def in_words(found: "Conversion") -> list[str]:
    if not found.equal:
        near = [f"near to it: {', or '.join(found.nearest)}"] if found.nearest else []
        return [f"none: {found.sense}", *near]
    every = found.equal.removeprefix("every ")
    anchor = [f'write: @every("{every}", anchor="{found.anchor}")'] if found.anchor else []
    return [found.equal, found.sense, *anchor]
