"""`cronring next`: when would a pattern fire? Needs nothing but itself."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from cronring.cli.clock import wall_now
from cronring.cli.commands.executions import Instant
from cronring.cli.failures import Failure
from cronring.cli.options import output_option
from cronring.cli.output import instant_text, print_json

if TYPE_CHECKING:
    from schema.pattern_parse import PatternError


@click.command("next")
@click.argument("pattern")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many ticks.")
@click.option("--from", "start", envvar="CRONRING_NEXT_FROM", type=Instant(),
              help="Ticks after this instant (ISO 8601, UTC by default).  [now]")  # fmt: skip
@output_option
def next_ticks(pattern: str, count: int, start: datetime | None, output: str) -> None:
    """Print the next ticks of a cron PATTERN, in UTC. Needs no controller and no database.

    \b
    Examples:
      cronring next "0 6 1 * *"                 at 06:00 on the first of the month
      cronring next "*/15 9-17 * * 1-5" -n 3    each quarter of an hour at work
      cronring next 25m                         short for "0 */25 * * * * *"
      cronring next Mon --from 2027-01-01       Mondays' midnights of 2027
    """
    from schema.pattern import CronPattern, PatternError

    try:
        parsed = CronPattern.parse(pattern)
    except PatternError as error:
        raise Failure(pointed(pattern, error)) from error
    moment: datetime | None = start if start is not None else wall_now()
    ticks: list[datetime] = []
    while len(ticks) < count and moment is not None:
        moment = parsed.next_after(moment)
        if moment is not None:
            ticks.append(moment)
    if output == "json":
        print_json(ticks)
        return
    for tick in ticks:
        click.echo(f"{instant_text(tick)}  {tick:%a}")
    if len(ticks) < count:
        click.echo("it never fires again" if ticks else "it never fires after that", err=True)


def pointed(pattern: str, error: "PatternError") -> str:
    """The pattern with a caret under the fault, what is wrong, and what to write instead."""
    shown = pattern if len(pattern) <= 200 else pattern[:200] + "..."
    position = min(error.position, len(shown))
    # Control characters would move the caret.
    printable = "".join(char if char.isprintable() else "?" for char in shown)
    remedy = f"\n  write instead: {error.suggestion}" if error.suggestion else ""
    return f"{error.message}\n  {printable}\n  {' ' * position}^{remedy}"
