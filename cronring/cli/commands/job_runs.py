"""`cronring jobs trigger|backfill|activations`: runs beside the schedule."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.bulk import BulkOrder, Many, actor, as_option, many_options, note_option, one_or_many, order_many
from cronring.cli.completion import job_key
from cronring.cli.conditions import idempotency_key_option, refuse_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.following import telling_how_it_goes_on
from cronring.cli.instants import instant_option, past, resolved
from cronring.cli.job_options import payload_option
from cronring.cli.options import ROW_ID, controllers_option, output_option
from cronring.cli.output import Column, print_json, print_rows, short_instant
from cronring.cli.printing import progress_bar, say
from cronring.cli.running import run_to_its_end

if TYPE_CHECKING:
    from collections import Counter

    from cronring.client import AsyncClient
    from cronring.client.model import Activation, Backfill, BackfillTick, Execution


@click.command("trigger")
@click.argument("key", required=False, shell_complete=job_key)
@payload_option
@click.option("--wait", is_flag=True, help="Follow its output until it has ended, and show its outcome.")
@many_options
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def trigger_job(key: str | None, payload: str | None, wait: bool, **values: Any) -> None:
    """Run a job once, as soon as it may: at once, or when what runs of it has ended. Its schedule goes on as it was.

    Many at once (--label, --module, ...) run each with its own payload.

    Exit codes with --wait: 0 completed; 1 any other outcome, or cancelled before it began; 3 it could not be followed.
    Ctrl-C ends the waiting (130); the run goes on, and it is said how to see it.

    \b
    Examples:
      cronring jobs trigger billing.close_month
      cronring jobs trigger crawl.site:docs --wait \\
        --payload '{"url": "https://example.com/new"}'
      cronring jobs trigger --module crawl --label tier=slow --dry-run
    """
    many, note, by = Many.taken_from(values), values["note"], actor(values["as_name"])
    output, controllers = values["output"], values["controllers"]
    one_or_many(key, many, {"--dry-run": values["dry_run"], "--yes": values["yes"]})
    if key is None:
        if payload is not None or wait:
            raise click.UsageError("--payload and --wait are of one job; give its KEY")
        wanted = BulkOrder("trigger", note, by)
        order_many(controllers, many, wanted, dry_run=values["dry_run"], yes=values["yes"], output=output)
        return

    async def question(client: "AsyncClient") -> "tuple[Activation, Execution | None]":
        from cronring.client.payloads import JsonText

        triggering = client.jobs.trigger(key, None if payload is None else JsonText(payload), by, note)
        activation = await or_nearest(triggering, "job", key, lambda: job_keys(client))
        return activation, await run_to_its_end(client, activation, output) if wait else None

    activation, execution = ask(controllers, question)
    if not wait:
        if output == "json":
            print_json(activation)
            return
        if activation.execution_id:
            say(f"{key} runs as execution {activation.execution_id} (tick {short_instant(activation.tick)})")
            say(f"  see it: cronring logs -f {activation.execution_id}")
            return
        say(f"{key} runs as soon as it may (activation {activation.id}, tick {short_instant(activation.tick)})")
        say(f"  see it: cronring logs -f {key}; why it waits: cronring why {key}")
        return
    if execution is None:
        raise Failure(f"activation {activation.id} of {key} was cancelled before it began")
    if execution.outcome != "completed":
        raise click.exceptions.Exit(EXIT_FAILED)


@click.command("backfill")
@click.argument("key", shell_complete=job_key)
@instant_option("--from", zone="the job's", required=True, help="Ticks from this instant on")
@instant_option("--to", zone="the job's", default="now", show_default=True,
                help="Ticks up to this instant, or the end of this date")  # fmt: skip
@click.option("--overlap", type=click.Choice(["wait", "allow"]), default="wait", show_default=True,
              help="Take turns with the job's own runs, or run beside them, ten at once.")  # fmt: skip
@click.option("--again", is_flag=True, help="Also ticks that have completed.")
@click.option("--dry-run", is_flag=True, help="Only say which ticks, and which of them ran already.")
@click.option("--wait", is_flag=True, help="Wait for the last of them, and show how they ended.")
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def backfill_job(key: str, again: bool, dry_run: bool, wait: bool, output: str, **values: Any) -> None:
    """Run the past ticks of a job, one after the other, the oldest first. Its schedule goes on as it was.

    Exit codes with --wait: 0 all completed; 1 some did not.

    \b
    Examples:
      cronring jobs backfill billing.close_day --dry-run \\
        --from 2026-03-01 --to 2026-03-07
      cronring jobs backfill billing.close_day --wait \\
        --from 2026-03-01 --to 2026-03-07
      cronring jobs backfill crawl.site:docs --from -6h --overlap allow --again
    """
    if wait and dry_run:
        raise click.UsageError("--wait and --dry-run exclude each other: a dry run is done at once")

    async def question(client: "AsyncClient") -> "tuple[Backfill, Counter[str]]":
        job = await or_nearest(client.jobs.get(key), "job", key, lambda: job_keys(client))
        newest = await client.executions.list(limit=1)
        backfill = await client.jobs.backfill(
            key, past("--from", values["from"], job.timezone), resolved(values["to"], job.timezone, end_of_day=True),
            beside=values["overlap"] == "allow", again=again, dry_run=dry_run, by=actor(values["as_name"]),
            note=values["note"],
        )  # fmt: skip
        return backfill, await _finished(client, backfill, newest[0].id if newest else 0, wait)

    backfill, outcomes = ask(values["controllers"], question)
    if output == "json":
        print_json({"ticks": backfill.ticks, "activation": backfill.activation,
                    "first_ticks": backfill.first_ticks, "outcomes": dict(outcomes)})  # fmt: skip
    else:
        _print_backfill(key, backfill, outcomes, dry_run=dry_run, again=again)
    if any(outcome != "completed" for outcome in outcomes):
        raise click.exceptions.Exit(EXIT_FAILED)


async def _finished(client: "AsyncClient", backfill: "Backfill", after_id: int, wait: bool) -> "Counter[str]":
    from collections import Counter

    if not wait or backfill.activation is None:
        return Counter()
    from cronring.cli.waiting import wait_for_backfill

    ticks = backfill.activation.ticks_left
    with progress_bar(ticks, "ticks", show_pos=True) as bar:
        done = 0

        def progress(begun: int) -> None:
            nonlocal done
            bar.update(begun - done)
            done = begun

        waiting = f"cronring jobs activations {backfill.activation.job}"
        with telling_how_it_goes_on(
            f"the backfill of {backfill.activation.job} goes on without this command",
            f"see it: {waiting}",
            f"stop it: {waiting} --cancel {backfill.activation.id}",
        ):
            return await wait_for_backfill(client, backfill.activation, after_id, progress)


def _print_backfill(key: str, backfill: "Backfill", outcomes: "Counter[str]", *, dry_run: bool, again: bool) -> None:
    if dry_run:
        _print_rehearsal(backfill, again)
    elif backfill.activation is None:
        say(f"{key} has no tick to run there", err=True)
    elif outcomes:
        say(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    else:
        activation = backfill.activation
        say(f"{backfill.ticks} ticks from {short_instant(activation.tick)} on (activation {activation.id})")
        say(f"  see how far it is: cronring jobs activations {key}")


def _print_rehearsal(backfill: "Backfill", again: bool) -> None:
    columns: list[Column[BackfillTick]] = [
        Column("tick", lambda row: short_instant(row.tick)),
        Column("ran before", lambda row: (row.outcome or "running") if row.execution_id else "-"),
        Column("execution", lambda row: str(row.execution_id or "-"), right=True),
        Column("would run", lambda row: "no" if row.completed and not again else "yes"),
    ]
    print_rows(columns, backfill.first_ticks, "no tick lies there")
    completed = sum(row.completed for row in backfill.first_ticks)
    shown = len(backfill.first_ticks)
    first = "" if shown == backfill.ticks else f"; the first {shown} are shown"
    left_out = "" if again or not completed else f"; {completed} of these have completed, and run only with --again"
    say(f"{backfill.ticks} ticks{first}{left_out}", err=True)


@click.command("activations")
@click.argument("key", shell_complete=job_key)
@click.option("--cancel", type=ROW_ID, metavar="ID", help="Cancel this one before it runs.")
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def list_activations(
    key: str, cancel: int | None, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """List what waits beside a job's schedule: retries, manual runs, backfills.

    \b
    Examples:
      cronring jobs activations crawl.site:docs
      cronring jobs activations crawl.site:docs --cancel 42
    """
    if cancel is None:
        refuse_key("give it with --cancel; a list changes nothing")
        if note:
            raise click.UsageError("--note: give it with --cancel; a list changes nothing")

    async def question(client: "AsyncClient") -> "tuple[bool, tuple[Activation, ...]]":
        gone = cancel is None
        if cancel is not None:
            cancelling = client.jobs.cancel_activation(key, cancel, actor(as_name), note)
            gone = await or_nearest(cancelling, "job", key, lambda: job_keys(client))
        return gone, await or_nearest(client.jobs.activations(key), "job", key, lambda: job_keys(client))

    gone, rows = ask(controllers, question)
    if not gone:
        raise Failure(f"{key} has no activation {cancel} that waits: it has begun, or was cancelled before")
    if output == "json":
        print_json(rows)
        return
    print_rows(activation_columns(), rows, "nothing waits beside its schedule")


def activation_columns() -> "list[Column[Activation]]":
    return [
        Column("id", lambda row: str(row.id), right=True),
        Column("trigger", lambda row: row.trigger),
        Column("tick", lambda row: short_instant(row.tick)),
        Column("run at", lambda row: short_instant(row.run_at)),
        Column("try", lambda row: str(row.attempt), right=True),
        Column("ticks left", lambda row: str(row.ticks_left) if row.until_tick else "-", right=True),
        Column("until", lambda row: short_instant(row.until_tick)),
        Column("beside", lambda row: "yes" if row.beside else "no"),
    ]
