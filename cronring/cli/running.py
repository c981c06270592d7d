"""A run that was asked for, from its activation to its end, with its output as it comes."""

from typing import TYPE_CHECKING

from cronring.cli.conversation import links
from cronring.cli.execution_rows import print_execution
from cronring.cli.following import ending_of, follow_or_fail, telling_how_it_goes_on
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Activation, Execution


def _waits() -> None:
    say("still waiting to begin: another run of this job lasts, or no runner hosts it", err=True)


async def run_to_its_end(client: "AsyncClient", activation: "Activation", output: str) -> "Execution | None":
    """Prints its output while it runs, and then what there is to say of it; as JSON only the latter, with the output.

    None: it was cancelled before it began. Raises Failure (EXIT_UNREACHABLE) when it can't be followed.
    """
    from cronring.client.waiting import begun  # late, as it has gRPC with it

    with telling_how_it_goes_on(f"activation {activation.id} of {activation.job} still waits, and will run",
                                f"see it: cronring jobs activations {activation.job}"):  # fmt: skip
        execution = await begun(client.jobs.activations, client.executions, activation, _waits)
    if execution is None:
        return None
    quiet = output == "json"
    if not quiet:
        say(ending_of(execution), err=True)
    ended = await follow_or_fail(client, execution.id, quiet=quiet)
    row = await client.executions.get(execution.id) if quiet else ended
    print_execution(row, await links(client), output)
    return ended
