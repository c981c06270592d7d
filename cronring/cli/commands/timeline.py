"""`cronring timeline`: what happened to the cluster, and when?"""

from typing import TYPE_CHECKING, Final

import click

from cronring.cli.conversation import ask
from cronring.cli.instants import instant_option, past, resolved
from cronring.cli.options import controllers_option, limit_option, output_option
from cronring.cli.output import Column, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client.history import TimelineEntry

TEXT_WIDTH: Final = 57  # beside an instant, in 80 places


@click.command()
@instant_option("--since", zone="UTC", help="What happened from this instant on", default="-1d", show_default=True)
@instant_option("--until", zone="UTC", help="Up to this instant, or the end of this date")
@click.option("--markdown", is_flag=True, help="As a list to paste into a note or a ticket, the earliest first.")
@limit_option(100)
@output_option
@controllers_option
def timeline(
    since: str, until: str | None, markdown: bool, limit: int, output: str, controllers: tuple[str, ...]
) -> None:
    """Tell what happened: who came and went, what failed and recovered, who did what. The latest first.

    Of jobs that fail time after time it tells the first failure, and when they completed again. It goes back as far as
    executions are kept (`cronring controller`: --history-days, --history-runs). Texts that don't fit are
    whole in `-o json`.

    \b
    Examples:
      cronring timeline --since -2h
      cronring timeline --since 02:00 --until 04:00 --markdown
    """
    if markdown and output == "json":
        raise click.UsageError("give --markdown or -o json, not both")
    begin = past("--since", since)
    end = None if until is None else resolved(until, end_of_day=True)
    rows = ask(controllers, lambda client: client.history.timeline(begin, end, limit))
    if output == "json":
        print_json(rows)
        return
    if markdown:
        for row in reversed(rows):
            say(f"- {short_instant(row.at)} {_escaped(row.text)}")
        return
    columns: list[Column[TimelineEntry]] = [
        Column("at", lambda row: short_instant(row.at)),
        Column("what", lambda row: row.text if len(row.text) <= TEXT_WIDTH else f"{row.text[: TEXT_WIDTH - 1]}…"),
    ]
    print_rows(columns, rows, f"nothing happened since {short_instant(begin)}")


def _escaped(text: str) -> str:
    """So that names look as they are."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>#|~" else each for each in text)
