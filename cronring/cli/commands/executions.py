"""`cronring executions`: what ran."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.completion import job_key
from cronring.cli.instants import instant_option, past
from cronring.cli.options import ROW_ID, controllers_option, limit_option, output_option
from cronring.cli.output import Column, jsonable, milliseconds, print_fields, print_json, print_rows, short_instant
from cronring.cli.printing import say_block, say_lines
from cronring.cli.session import COUNTED_MAX, ask, job_keys, nothing_found, or_nearest

if TYPE_CHECKING:
    from cronring.client import Client
    from cronring.client.model import Execution

OUTCOMES = ["running", "completed", "failed", "timed_out", "cancelled", "lost", "out_of_memory", "out_of_cpu"]


@click.group()
def executions() -> None:
    """Executions: what ran, when, where, and how it ended."""


def listed(execution: "Execution") -> dict[str, Any]:
    """A row of the listing, which carries none of what may be long."""
    row: dict[str, Any] = jsonable(execution)
    del row["output"], row["payload"], row["stack"], row["metrics"]
    return row


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


def duration_ms(execution: "Execution") -> float | None:
    """From the verb's start to its end; None while it has no end."""
    if execution.started_at is None or execution.ended_at is None:
        return None
    return (execution.ended_at - execution.started_at).total_seconds() * 1000


@executions.command("get")
@click.argument("execution_id", type=ROW_ID, metavar="ID")
@output_option
@controllers_option
def get_execution(execution_id: int, output: str, controllers: tuple[str, ...]) -> None:
    """Show one execution with its output."""
    print_execution(ask(controllers, lambda client: client.executions.get(execution_id)), output)


def print_execution(row: "Execution", output: str) -> None:
    """One execution with its output, as JSON or for people."""
    if output == "json":
        print_json(row)
        return
    print_fields(_fields(row))
    if row.stack:
        say_lines(["", "stack:"])
        say_block(row.stack, indent="  ")
    if row.output:
        say_lines(["", "output:"])
        say_block(row.output, indent="  ")


def _memory(row: "Execution") -> str:
    if row.memory_peak_bytes is None:
        return "-"
    shared = " (of a process that it shared)" if row.memory_shared else ""
    return f"{row.memory_peak_bytes / 2**20:.1f} MiB{shared}"


def _fields(row: "Execution") -> list[tuple[str, str]]:
    fields = [
        ("execution", str(row.id)),
        ("number", str(row.number)),
        ("job", row.job),
        ("tick", short_instant(row.tick)),
        ("run at", short_instant(row.run_at)),
        ("started", short_instant(row.started_at)),
        ("ended", short_instant(row.ended_at)),
        ("outcome", row.outcome or "running"),
        ("lateness", milliseconds(row.lateness_ms)),
        ("took", milliseconds(duration_ms(row))),
        ("CPU time", milliseconds(row.cpu_ms)),
        ("peak memory", _memory(row)),
        ("attempt", str(row.attempt)),
        ("trigger", row.trigger + (" (beside its job's own runs)" if row.beside else "")),
        ("missed before", f"{row.missed} ticks" if row.missed else "-"),
        ("previous tick", short_instant(row.previous_tick)),
        ("last success", short_instant(row.previous_success)),
        ("controller", row.controller),
        ("runner", row.runner),
        ("deployment", row.deployment),
    ]
    fields += [(name, str(value)) for name, value in row.metrics.items()]
    if row.payload:
        fields.append(("payload", row.payload))
    if row.retry_at is not None:
        fields.append(("retry at", f"{short_instant(row.retry_at)}, unless a tick comes before"))
    if row.cancel_requested_at is not None:
        why = f": {row.cancel_note}" if row.cancel_note else ""
        fields.append(("cancellation", f"{short_instant(row.cancel_requested_at)} by {row.cancel_requested_by}{why}"))
    if row.error_type or row.error_message:
        fields.append(("error", f"{row.error_type}: {row.error_message}".strip(": ")))
    return fields
