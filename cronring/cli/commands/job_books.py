"""`cronring jobs books` and `cronring jobs policies`: what became of a job's ticks, and what its policy may say."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import Column, milliseconds, print_json, print_rows, short_instant

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import BookEntry


@click.command("books")
@click.argument("key", shell_complete=job_key)
@click.option("-n", "--last", type=click.IntRange(1, 200), default=20, show_default=True, help="How many entries.")
@instant_option("--before", zone="the job's", help="Only ticks before this instant")
@output_option
@controllers_option
def job_books(key: str, last: int, before: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """List what became of the ticks of the job KEY, the latest first: runs, and ticks that did not run.

    An entry is a run, or consecutive ticks that did not run for one reason. `cronring why KEY --at TICK` says more.

    \b
    Examples:
      cronring jobs books billing.close_month
      cronring jobs books crawl.site:docs -n 50 --before -2h
      cronring jobs books crawl.site:docs -o json | jq '.[].skipped'
    """

    async def question(client: "AsyncClient") -> "list[BookEntry]":
        job = await or_nearest(client.jobs.get(key), "job", key, lambda: job_keys(client))
        instant: datetime | None = None if before is None else resolved(before, job.timezone)
        return (await client.ledger.books([job.key], last, instant)).get(job.key, [])

    rows = ask(controllers, question)
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[BookEntry]] = [
        Column("tick", lambda row: short_instant(row.tick)),
        Column("to", lambda row: short_instant(row.last_tick) if row.ticks > 1 else "-"),
        Column("ticks", lambda row: f"{max(row.ticks, 1):,}", right=True),
        Column("became", _became),
        Column("trigger", lambda row: row.trigger or "-"),
        Column("attempt", lambda row: str(row.attempt or "-"), right=True),
        Column("late", lambda row: milliseconds(row.lateness_ms) if row.execution_id else "-", right=True),
        Column("took", lambda row: milliseconds(row.duration_ms) if row.outcome else "-", right=True),
        Column("execution", lambda row: str(row.execution_id or "-"), right=True),
    ]
    print_rows(columns, rows, f"no tick of {key} is in the books" + (f" before {before}" if before else " yet"))


def _became(row: "BookEntry") -> str:
    if not row.execution_id:
        return f"skipped: {row.skipped}"
    outcome = row.outcome or "running"
    return f"{outcome}: {row.error_type}" if row.error_type else outcome


@click.command("policies")
@output_option
@controllers_option
def list_policies(output: str, controllers: tuple[str, ...]) -> None:
    """List what the policy of a job may say, by the controllers that answer: their release decides it.

    Each is an option of `cronring jobs create`, `jobs update` and `template set`: on_missed is --on-missed. In a
    module it stands in the decorator. In files of `cronring apply` it is a key of the job.

    \b
    Examples:
      cronring jobs policies
      cronring jobs policies -o json | jq -r .retries
    """
    found = ask(controllers, lambda client: client.schedules.policies())
    if output == "json":
        print_json(found)
        return
    columns: list[Column[tuple[str, str]]] = [
        Column("policy", lambda row: row[0]),
        Column("what for", lambda row: row[1]),
    ]
    print_rows(columns, list(found.items()), "the controllers know no policy")
