"""`cronring next`: when would a schedule tick? Needs nothing but itself."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cronring.cli.clock import wall_now
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import output_option
from cronring.cli.output import instant_text, print_json
from cronring.cli.printing import say
from cronring.cli.schedules import parse_given, zone_options
from cronring.schema.instant import from_us, to_us

if TYPE_CHECKING:
    from cronring.schema.explain import Tick


@click.command("next")
@click.argument("schedule")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many ticks.")
@instant_option("--from", "start", envvar="CRONRING_NEXT_FROM", zone="--timezone's", default="now", show_default=True,
                help="Ticks after this instant, from which intervals count")  # fmt: skip
@zone_options
@output_option
def next_ticks(
    schedule: str,
    count: int,
    start: str,
    timezone: str | None,
    dst_gap: str | None,
    dst_overlap: str | None,
    output: str,
) -> None:
    """Print the next ticks of a SCHEDULE. Needs no controller and no database.

    A SCHEDULE is a cron pattern, `every 30m`, or `at 2027-03-01T08:00:00Z`. Each line is an instant in UTC. With
    --timezone it is also shown by that zone's clocks, with what a change of these clocks did to it.

    \b
    Examples:
      cronring next "0 6 1 * *"                 at 06:00 on the first of the month
      cronring next "*/15 9-17 * * 1-5" -n 3    each quarter of an hour at work
      cronring next 25m                         short for "0 */25 * * * * *"
      cronring next Mon --from 2027-01-01       Mondays' midnights of 2027
      cronring next "every 90m"                 counted from now
      cronring next "30 2 * * *" --timezone Europe/Berlin --from 2027-03-27 -n 3
    """
    from cronring.schema.explain import next_ticks as ticks_after
    from cronring.schema.zone import load_zone, zone_data_version

    moment = resolved(start, parse_zone(timezone))
    given = parse_given(schedule, moment, timezone, dst_gap, dst_overlap)
    ticks = list(ticks_after(given.schedule, load_zone(given.policy.timezone or "UTC"), to_us(moment), count))
    if output == "json":
        print_json([tick_json(tick) for tick in ticks])
        return
    for line in tick_lines(ticks, local=timezone is not None):
        say(line)
    if given.policy.timezone:
        say(f"on the clocks of {given.policy.timezone}, by tzdata {zone_data_version()}", err=True)
    if len(ticks) < count:
        say(_end_text(given.schedule.text, bool(ticks)), err=True)


def _end_text(schedule: str, ticked: bool) -> str:
    if schedule == "manual":
        return "it has no ticks of its own; it runs when it is triggered: cronring jobs trigger KEY"
    return "it never fires again" if ticked else "it never fires after that"


def parse_zone(timezone: str | None) -> str:
    """The zone, if it is one. Raises Failure."""
    return parse_given("manual", wall_now(), timezone).policy.timezone if timezone else ""


def tick_lines(ticks: "Sequence[Tick]", *, local: bool) -> list[str]:
    """`2027-03-28T01:00:00Z  Sun 2027-03-28 03:00:00 +02:00  makes up for 02:30, which the clocks skip`."""
    lines = []
    for tick in ticks:
        moment = from_us(tick.instant)
        wall = f"{weekday(tick)} {tick.wall[:10]} {tick.wall[11:19]} {tick.wall[19:]}" if local else f"{moment:%a}"
        lines.append("  ".join(part for part in (instant_text(moment), wall, tick.note) if part))
    return lines


def weekday(tick: "Tick") -> str:
    """On the wall."""
    from datetime import date

    return f"{date.fromisoformat(tick.wall[:10]):%a}"


def tick_json(tick: "Tick") -> dict[str, object]:
    return {"tick": from_us(tick.instant), "local": tick.wall, "note": tick.note}
