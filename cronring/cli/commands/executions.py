"""`cronring executions`: what ran."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.execution_rows import duration_ms, listed, print_execution
from cronring.cli.instants import instant_option, past
from cronring.cli.options import ROW_ID, controllers_option, limit_option, output_option
from cronring.cli.output import Column, milliseconds, print_json, print_rows, short_instant
from cronring.cli.session import COUNTED_MAX, ask, job_keys, nothing_found, or_nearest

if TYPE_CHECKING:
    from cronring.client import Client
    from cronring.client.model import Execution

OUTCOMES = ["running", "completed", "failed", "timed_out", "cancelled", "lost", "out_of_memory", "out_of_cpu"]


@click.group()
def executions() -> None:
    """Executions: what ran, when, where, and how it ended."""


@executions.command("list")
@click.option("--job", default="", shell_complete=job_key, help="Only of this job (its key).")
@click.option(
    "--outcome", type=click.Choice(OUTCOMES), metavar="OUTCOME", help=f"Only with this one: {', '.join(OUTCOMES)}."
)
@instant_option("--since", zone="UTC", help="Only ticks at or after this instant")
@limit_option(100)
@output_option
@controllers_option
def list_executions(
    job: str, outcome: str | None, since: str | None, limit: int, output: str, controllers: tuple[str, ...]
) -> None:
    """List executions, the newest first.

    \b
    Examples:
      cronring executions list --job billing.close_month
      cronring executions list --outcome failed --since -1d
      cronring executions list -n 1000 -o json | jq 'map(.lateness_ms) | max'
    """

    start = None if since is None else past("--since", since)

    async def question(client: "Client") -> "list[Execution]":
        return await or_nearest(
            client.executions.list(job, outcome or "", start, limit=limit), "job", job, lambda: job_keys(client)
        )

    rows = ask(controllers, question)
    if output == "json":
        print_json([listed(row) for row in rows])
        return
    columns: list[Column[Execution]] = [
        Column("id", lambda row: str(row.id), right=True),
        Column("job", lambda row: row.job),
        Column("tick", lambda row: short_instant(row.tick)),
        Column("run at", lambda row: short_instant(row.run_at)),
        Column("trigger", lambda row: row.trigger),
        Column("outcome", lambda row: row.outcome or "running"),
        Column("lateness", lambda row: milliseconds(row.lateness_ms), right=True),
        Column("took", lambda row: milliseconds(duration_ms(row)), right=True),
        Column("try", lambda row: str(row.attempt), right=True),
        Column("controller", lambda row: row.controller),
        Column("runner", lambda row: row.runner),
    ]
    filters = {"job": job, "outcome": outcome, "since": since}
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "executions", filters, lambda client: client.executions.list(limit=COUNTED_MAX),
        "no executions: nothing has run yet. When does what run? cronring jobs list",
    ))  # fmt: skip


@executions.command("get")
@click.argument("execution_id", type=ROW_ID, metavar="ID")
@output_option
@controllers_option
def get_execution(execution_id: int, output: str, controllers: tuple[str, ...]) -> None:
    """Show one execution with its output."""
    print_execution(ask(controllers, lambda client: client.executions.get(execution_id)), output)
