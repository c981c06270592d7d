"""Printing what executions print, while they do."""

import asyncio
import codecs
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.failures import Failure
from cronring.cli.output import milliseconds
from cronring.client.errors import Refused, Unavailable, Unreachable

if TYPE_CHECKING:
    from cronring.client import Client
    from cronring.client.model import Execution

EXIT_NOT_FOLLOWED: Final = 2
POLL_S: Final = 0.3


async def print_output(client: "Client", execution_id: int, *, once: bool = False, quiet: bool = False) -> "Execution":
    """Its output to stdout as it comes (unless `quiet`); how it ended, or stands. Raises what client.follow raises."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async for chunk in client.executions.follow(execution_id, once=once):
        if not quiet:
            if chunk.gap > 0:
                click.echo(decoder.decode(b"", final=True) + f"[… {chunk.gap} bytes of output cut …]")
                decoder.reset()
            click.echo(decoder.decode(chunk.data), nl=False)
        if chunk.execution is not None:
            return chunk.execution
    raise AssertionError("a stream that ended without an end")


async def follow_or_fail(client: "Client", execution_id: int, *, quiet: bool) -> "Execution":
    """The same; what can't be followed is a Failure with EXIT_NOT_FOLLOWED."""
    try:
        return await print_output(client, execution_id, quiet=quiet)
    except (Unreachable, Unavailable, Refused) as error:
        message = f"execution {execution_id} could not be followed to its end: {error}"
        raise Failure(f"{message}\n  see it: cronring executions get {execution_id}", EXIT_NOT_FOLLOWED) from error


async def running_or_next(client: "Client", job: str) -> int:
    """The id of the execution of a job that runs; of its next one, as soon as it runs, if none does."""
    latest = await client.executions.list(job, limit=1)
    after_id = latest[0].id if latest else 0
    if latest and latest[0].outcome is None:
        return after_id
    click.echo(f"{job} doesn't run; waiting for its next execution", err=True)
    while True:
        found = await client.executions.list(job, after_id=after_id, limit=1_000)
        if found:
            return found[-1].id
        await asyncio.sleep(POLL_S)


def ending_of(execution: "Execution") -> str:
    """One line: how it ended, or that it runs."""
    what = f"execution {execution.id} of {execution.job}"
    if execution.outcome is None:
        return f"{what} runs on {execution.runner}"
    error = (
        f" ({execution.error_type}: {execution.error_message.partition(chr(10))[0]})" if execution.error_type else ""
    )
    return f"{what}: {execution.outcome} after {milliseconds(execution.duration_ms)}{error}"
