"""`cronring logs`: what an execution has printed, or prints."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.failures import Failure
from cronring.cli.following import ending_of, follow_as_json, print_output, running_or_next
from cronring.cli.options import ROW_ID, controllers_option, output_option
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient


@click.command()
@click.argument("what", metavar="EXECUTION|JOB", shell_complete=job_key)
@click.option("-f", "--follow", is_flag=True, help="Go on until it has ended; of a job, its running or next execution.")
@click.option("--colours", is_flag=True, help="Keep the colours of what it prints, into a pipe too.")
@output_option
@controllers_option
def logs(what: str, follow: bool, colours: bool, output: str, controllers: tuple[str, ...]) -> None:
    """Print what an execution has printed: of one, by its id, or of a job's latest one.

    Output goes to stdout, how it ended to stderr. When a controller dies, another goes on where it stopped. Of what is
    printed faster than it can be followed, and of long outputs, the last 64 KiB are kept. Characters that a terminal
    would obey are shown, such as \\x1b; --colours lets colours pass, and nothing else.

    -o json prints an object on each line: {"kind": "output", "text"}, or {"kind": "cut", "bytes"} where some is lost,
    and at the end {"kind": "execution", "execution"}, as it stands then. A "text" may end within a line.

    \b
    Examples:
      cronring logs 4711
      cronring logs -f billing.close_month
      cronring logs 4711 -o json | jq -j 'select(.kind == "output").text'
    """
    if colours and output == "json":
        raise click.UsageError("--colours is for text; in JSON every character of the output is there")

    async def question(client: "AsyncClient") -> None:
        execution_id = ROW_ID(what) if what.isdecimal() else await _of_job(client, what, follow)
        if output == "json":
            await follow_as_json(client, execution_id, once=not follow)
            return
        execution = await print_output(client, execution_id, once=not follow, colours=colours)
        say(ending_of(execution), err=True)

    ask(controllers, question)


async def _of_job(client: "AsyncClient", job: str, follow: bool) -> int:
    if follow:
        return await or_nearest(running_or_next(client, job), "job", job, lambda: job_keys(client))
    found = await or_nearest(client.executions.list(job, limit=1), "job", job, lambda: job_keys(client))
    if not found:
        raise Failure(f"{job} has not run yet; -f waits for its first execution")
    return found[0].id
