"""`cronring workspaces export`: what is kept of a workspace, as lines of JSON."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from cronring.cli.conversation import ask
from cronring.cli.failures import Failure
from cronring.cli.options import controllers_option
from cronring.cli.output import jsonable, print_json_line
from cronring.cli.printing import progress_bar, say
from cronring.client.errors import NotFound
from cronring.schema.filters import ExecutionQuery, JobQuery
from cronring.schema.queues import workspace_fault

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Execution


@click.command()
@click.argument("workspace")
@click.option("--namespace", default="default", show_default=True, help="Where it is.")
@controllers_option
def export(workspace: str, namespace: str, controllers: tuple[str, ...]) -> None:
    """Write all of WORKSPACE to stdout, a JSON object on each line.

    Its `kind` says what it is: job, activation (what waits beside a schedule),
    execution (with its output), message or dead_letter. Jobs that were deleted
    are gone; their executions are there. It is read page by page, not at one
    instant. To see payloads and outputs takes the role outputs-viewer.

    \b
    Examples:
      cronring workspaces export ws_3 > ws_3.ndjson
    """
    written: Counter[str] = Counter()

    async def question(client: "AsyncClient") -> None:
        executions = await client.executions.count(_executions(workspace, namespace))
        with progress_bar(executions.executions, "executions", show_pos=True, prints=True) as bar:
            async for kind, row in _rows(client, workspace, namespace):
                print_json_line({"kind": kind} | row)
                written[kind] += 1
                if kind == "execution":
                    bar.update(1)

    ask(controllers, question)
    if not written:
        listed = f"`cronring workspaces list --namespace {namespace}` shows those that there are"
        raise Failure(f"there is nothing of {workspace!r} in {namespace}; {listed}")
    say(", ".join(f"{kind} {count:,}" for kind, count in written.items()), err=True)


def _executions(workspace: str, namespace: str) -> ExecutionQuery:
    return ExecutionQuery(namespace=namespace, labels={"workspace": workspace})


async def _rows(client: "AsyncClient", workspace: str, namespace: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    for job in await client.jobs.find(JobQuery(namespace=namespace, labels={"workspace": workspace})):
        yield "job", jsonable(job)
        for activation in await client.jobs.activations(job.key):
            yield "activation", jsonable(activation)
    async for execution in client.executions.each(_executions(workspace, namespace)):
        yield "execution", jsonable(await _whole(client, execution))
    if workspace_fault(workspace):  # no queue has such a name
        return
    for queue in await client.queues.list(namespace):
        of = {"namespace": namespace, "queue": queue.queue}
        for message in await client.queues.messages(queue.queue, namespace, workspace=workspace, limit=None):
            yield "message", of | jsonable(message)
        for letter in await client.queues.dead_letters(queue.queue, namespace, workspace=workspace, limit=None):
            yield "dead_letter", of | jsonable(letter)


async def _whole(client: "AsyncClient", listed: "Execution") -> "Execution":
    """With its output; as it was listed, where retention has removed it since."""
    try:
        return await client.executions.get(listed.id)
    except NotFound:
        return listed
