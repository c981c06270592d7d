"""`cronring executions cancel|retry|watch`."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import job_key
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.event_lines import execution_line
from cronring.cli.execution_rows import listed
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.following import ending_of, follow_or_fail
from cronring.cli.options import ROW_ID, controllers_option, output_option
from cronring.cli.output import print_json, print_json_line, short_instant
from cronring.cli.printing import say
from cronring.cli.running import run_to_its_end
from cronring.schema.execution import Outcome

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Activation, Execution, Job

OUTCOMES = [outcome.value for outcome in Outcome]


@click.command("cancel")
@click.argument("execution_id", type=ROW_ID, metavar="ID")
@click.option("--wait", is_flag=True, help="Wait until it has ended, and say how, and what comes next.")
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def cancel_execution(execution_id: int, wait: bool, note: str, **values: Any) -> None:
    """Cancel a running execution: it is asked to stop, and killed if it hasn't within the cluster's --cancel-grace.

    It is not retried by its job's policy, and its job goes on with its next tick. Repeating it changes nothing. If its
    runner can't be reached, it is told when it is back.

    Exit codes: 0 asked for (with --wait: cancelled); 1 it had ended before (with --wait: it ended otherwise).

    \b
    Examples:
      cronring executions cancel 4711 --note "wrong month" --wait
    """

    async def question(client: "AsyncClient") -> "tuple[Execution, Job | None]":
        execution = await client.executions.cancel(execution_id, note, actor(values["as_name"]))
        if not wait:
            return execution, None
        ended = await follow_or_fail(client, execution_id, quiet=True)
        return ended, await client.jobs.get(ended.job)

    execution, job = ask(values["controllers"], question)
    if values["output"] == "json":
        print_json(listed(execution))
    elif execution.outcome is None:
        say(f"{ending_of(execution)}; it has been asked to stop")
        say(f"  see its end: cronring logs -f {execution_id}")
    else:
        say(ending_of(execution))
    if job is not None:
        upcoming = f"its next tick is {short_instant(job.next_tick)}" if job.next_tick else "it has no tick to come"
        say(f"{job.key} is {job.status}: {upcoming}", err=True)
        if execution.outcome != "cancelled":
            raise click.exceptions.Exit(EXIT_FAILED)


@click.command("retry")
@click.argument("execution_id", type=ROW_ID, metavar="ID")
@click.option("--wait", is_flag=True, help="Follow its output until it has ended, and show its outcome.")
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def retry_execution(execution_id: int, wait: bool, output: str, **values: Any) -> None:
    """Try again what failed, timed out, was cancelled or lost: the same tick, as a new attempt.

    It runs with the payload that the execution ran with, whatever its job's is by now. If that had none, or
    it isn't known any more, the retry takes its job's.

    It runs as soon as its job is free, even if that is paused or later ticks have run since. One that waits for its
    backoff runs at once.

    Exit codes: 0 asked for (with --wait: completed); 1 it runs or has completed, or (with --wait) any other outcome;
    3 with --wait: it could not be followed.

    \b
    Example:
      cronring executions retry 4711 --wait --note "the disk was full"
    """

    async def question(client: "AsyncClient") -> "tuple[Activation, Execution | None]":
        activation = await client.executions.retry(execution_id, actor(values["as_name"]), values["note"])
        return activation, await run_to_its_end(client, activation, output) if wait else None

    activation, execution = ask(values["controllers"], question)
    if not wait:
        if output == "json":
            print_json(activation)
            return
        tick = short_instant(activation.tick)
        say(f"{activation.job} tries its tick {tick} again (attempt {activation.attempt}) as soon as it may")
        known = f"the one that execution {execution_id} ran with"
        own = f"its job's, as it is now: execution {execution_id} had none, or its own isn't known any more"
        say(f"  its payload is {known if activation.payload_of == 'run' else own}")
        say(f"  see it: cronring logs -f {activation.job}")
    elif execution is None:
        raise Failure(f"the retry of execution {execution_id} was cancelled before it began")
    elif execution.outcome != "completed":
        raise click.exceptions.Exit(EXIT_FAILED)


@click.command("watch")
@click.option("--job", default="", shell_complete=job_key, help="Only of this job (its key).")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only ends with this outcome.")
@output_option
@controllers_option
def watch_executions(job: str, outcome: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Follow every start and every end as it happens, until Ctrl-C.

    With -o json, each line is an event: {"kind": "started" | "ended", "execution": {...}}. None is left out: when a
    controller dies, another goes on where it stopped.

    \b
    Example:
      cronring executions watch --outcome failed -o json | \\
        jq -r .execution.error_message
    """

    async def question(client: "AsyncClient") -> None:
        if job:  # none that will never tell anything
            await or_nearest(client.jobs.get(job), "job", job, lambda: job_keys(client))
        async for event in client.executions.watch(job, outcome or ""):
            if output == "json":
                print_json_line({"kind": event.kind, "execution": listed(event.execution)})
            else:
                say(execution_line(event.execution))

    ask(controllers, question)
