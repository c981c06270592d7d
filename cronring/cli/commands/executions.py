"""`cronring executions`: what ran."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.commands.execution_control import cancel_execution, retry_execution, watch_executions
from cronring.cli.commands.logs import logs
from cronring.cli.completion import job_key
from cronring.cli.conversation import COUNTED_MAX, Links, ask, job_keys, links, nothing_found, or_nearest
from cronring.cli.execution_rows import duration_ms, listed, print_execution
from cronring.cli.filtering import (
    EXECUTION_SORTS,
    EXECUTION_WORDS,
    OUTCOMES,
    count_option,
    execution_query,
    filter_argument,
    given,
    job_options,
    outcome_options,
    sort_option,
)
from cronring.cli.instants import instant_option
from cronring.cli.options import ROW_ID, controllers_option, limit_option, output_option
from cronring.cli.output import Column, milliseconds, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.filters import ExecutionsCounted, ExecutionsFound
    from cronring.client.model import Execution


@click.group()
def executions() -> None:
    """Executions: what ran, when, where, and how it ended."""


@executions.command("list")
@filter_argument(EXECUTION_WORDS)
@outcome_options(OUTCOMES, "with")
@click.option("--job", default="", shell_complete=job_key, help="Only of this job (its key).")
@job_options
@click.option("--runner", default="", help="Only of this runner (its id).")
@instant_option("--since", zone="UTC", help="Only ticks at or after this instant")
@instant_option("--until", zone="UTC", help="Only ticks at or before this instant")
@sort_option(EXECUTION_SORTS, "newest (the default); slowest: from start to end; latest: after their run_at.")
@count_option
@limit_option(100)
@output_option
@controllers_option
def list_executions(
    filters: tuple[str, ...], count: bool, limit: int, output: str, controllers: tuple[str, ...], **values: Any
) -> None:
    """List executions, the newest first.

    KEY:VALUE says the same as the option, and both may be mixed: outcome:failed,lost module:reports since:1h. Labels
    and modules are those that a job has now. All conditions have to hold. Of one job, module or label, the newest tick
    comes first.

    \b
    Examples:
      cronring executions list --job billing.close_month
      cronring executions list --failed --since -1d
      cronring executions list label:team=billing since:1h --sort slowest
      cronring executions list outcome:failed,lost --count
      cronring executions list -n 1000 -o json | jq 'map(.lateness_ms) | max'
    """
    query = execution_query(filters, values)
    if count:
        _print_count(ask(controllers, lambda client: client.executions.count(query)), output)
        return

    async def question(client: "AsyncClient") -> "ExecutionsFound":
        return await or_nearest(client.executions.find(query, limit), "job", query.job, lambda: job_keys(client))

    found = ask(controllers, question)
    if found.looked_to is not None:
        say(
            f"looked back to {short_instant(found.looked_to)}, and no further; go on with --until, or narrow it by "
            "--job, --module, --label or --failed",
            err=True,
        )
    if output == "json":
        print_json([listed(row) for row in found.rows])
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
    print_rows(columns, found.rows, "" if found.rows else nothing_found(
        controllers, "executions", given(filters, values), lambda client: client.executions.list(limit=COUNTED_MAX),
        "no executions: nothing has run yet. When does what run? cronring jobs list",
    ))  # fmt: skip


def _print_count(counted: "ExecutionsCounted", output: str) -> None:
    if output == "json":
        print_json({"executions": counted.executions, "at_least": counted.at_least})
    else:
        say(f"at least {counted.executions:,}" if counted.at_least else f"{counted.executions:,}")


@executions.command("get")
@click.argument("execution_id", type=ROW_ID, metavar="ID")
@output_option
@controllers_option
def get_execution(execution_id: int, output: str, controllers: tuple[str, ...]) -> None:
    """Show one execution with its output."""

    async def question(client: "AsyncClient") -> "tuple[Execution, Links]":
        return await client.executions.get(execution_id), await links(client)

    print_execution(*ask(controllers, question), output)


for command in (cancel_execution, logs, retry_execution, watch_executions):
    executions.add_command(command)
