"""`cronring upcoming`: what comes, hour by hour, and where too much comes at once."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cronring.cli.conversation import ask
from cronring.cli.options import Duration, controllers_option, output_option
from cronring.cli.output import Column, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from datetime import datetime

    from cronring.client.forecast import ForecastStep

_HOUR_S: Final = 3_600.0
_ROWS: Final = 12  # of the 96 steps, so many rows: they fit a screen of 24 lines
_BAR: Final = 16


class ComingHours(NamedTuple):
    """Some steps that follow each other. `load`: the most of their averages."""

    at: "datetime | None"
    starts: int
    load: float
    herd: int


@click.command("upcoming")
@click.option("--within", type=Duration(_HOUR_S, 168 * _HOUR_S), default="1d", show_default=True,
              help="From an hour to a week.")  # fmt: skip
@output_option
@controllers_option
def upcoming(within: float, output: str, controllers: tuple[str, ...]) -> None:
    """Show what is coming: how many ticks, how many runs at once, what won't fit the runners, and the herds.

    By the schedules, by how long runs have lasted, and by the places of runners. A herd is what begins in one second.
    Runs that a policy will skip are counted as well. -o json has 96 steps.

    \b
    Examples:
      cronring upcoming
      cronring upcoming --within 7d
    """
    found = ask(controllers, lambda client: client.forecast.get(timedelta(seconds=within)))
    if output == "json":
        print_json(found)
        return
    rows = _rows(found.steps)
    most = max((row.starts for row in rows), default=0)
    columns: list[Column[ComingHours]] = [
        Column("from", lambda row: short_instant(row.at)),
        Column("ticks", lambda row: f"{row.starts:,}", right=True),
        Column("", lambda row: "#" * round(_BAR * row.starts / most) if most else ""),
        Column("runs at once", lambda row: f"{row.load:.1f}", right=True),
        Column("most in a second", lambda row: f"{row.herd:,}", right=True),
    ]
    print_rows(columns, rows, "nothing is coming: no job has a schedule")
    for over in found.overloads:
        say(f"{short_instant(over.at)}: {over.text}")
    if herd := _herd(found.steps):
        say(herd)
    if found.unmeasured:
        say(f"{found.unmeasured:,} jobs count as lasting no time: no run of theirs has ended")
    if found.left_out:
        say(f"{found.left_out:,} jobs of rare schedules are not in it")


def _rows(steps: "Sequence[ForecastStep]") -> "list[ComingHours]":
    each = max(1, -(-len(steps) // _ROWS))
    parts = [steps[first : first + each] for first in range(0, len(steps), each)]
    return [
        ComingHours(part[0].at, sum(s.starts for s in part), max(s.load for s in part), max(s.herd for s in part))
        for part in parts
    ]


def _herd(steps: "Sequence[ForecastStep]") -> str:
    """The largest one, and what jitter would make of it; "": there is none."""
    worst = max(steps, key=lambda step: step.herd, default=None)
    if worst is None or worst.herd < 2:
        return ""
    some = ", ".join(worst.herd_jobs[:3])
    spread = max(step.spread for step in steps)
    return (
        f"herd: {worst.herd:,} begin at {short_instant(worst.herd_at)}, {some} among them;"
        f' with jitter="auto" on all jobs {spread:,} would at most'
    )
