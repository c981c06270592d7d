"""A schedule as it is typed: a pattern or another text, in a zone, and an error that points at what is wrong."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.schema.instant import to_us
from cronring.schema.policy_model import DST_GAP, DST_OVERLAP

if TYPE_CHECKING:
    from cronring.schema.policy_model import Policy
    from cronring.schema.schedule import Schedule

Command = TypeVar("Command", bound=Callable[..., Any])

_SHOWN: Final = 200


class Given(NamedTuple):
    schedule: "Schedule"
    policy: "Policy"


class Pointing(Protocol):
    """An error of schema about a text."""

    message: str
    position: int
    suggestion: str | None


def zone_options(command: Command) -> Command:
    """--timezone, --dst-gap and --dst-overlap."""
    zone = click.option("--timezone", metavar="ZONE", help="IANA name, like Europe/Berlin.  [UTC]")
    gap = click.option("--dst-gap", type=click.Choice(DST_GAP), help="What becomes of fixed times that clocks skip.")
    overlap = click.option(
        "--dst-overlap", type=click.Choice(DST_OVERLAP), help="Of fixed times that clocks show twice, which run."
    )
    return zone(gap(overlap(command)))


def parse_given(
    text: str,
    start: datetime,
    timezone: str | None = None,
    dst_gap: str | None = None,
    dst_overlap: str | None = None,
) -> Given:
    """The schedule; an interval counts from `start`. Raises Failure."""
    from cronring.schema.policy import policy_faults, read_each
    from cronring.schema.schedule import ScheduleError, parse_schedule

    raw = {"timezone": timezone, "dst_gap": dst_gap, "dst_overlap": dst_overlap}
    policy, errors = read_each(raw)
    if errors:
        raise Failure("\n".join(f"--{each.field.replace('_', '-')}: {each.told(raw[each.field])}" for each in errors))
    try:
        schedule = parse_schedule(text, to_us(start), policy)
    except ScheduleError as error:
        raise Failure(pointed(text, error)) from error
    for field, message in policy_faults(policy, schedule.text):
        if field != "timezone":  # of an interval it says on which clocks to show the ticks
            raise Failure(f"--{field.replace('_', '-')} {message}")
    return Given(schedule, policy)


def pointed(text: str, error: Pointing) -> str:
    """The text with a caret under the fault, what is wrong, and what to write instead."""
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    position = min(error.position, len(shown))
    # Control characters would move the caret.
    printable = "".join(char if char.isprintable() else "?" for char in shown)
    remedy = f"\n  write instead: {error.suggestion}" if error.suggestion else ""
    return f"{error.message}\n  {printable}\n  {' ' * position}^{remedy}"
