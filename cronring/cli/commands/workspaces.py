"""`cronring workspaces list|show|export|delete`: everything of one value of the label `workspace`."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.commands.workspace_export import export
from cronring.cli.consent import confirm
from cronring.cli.conversation import ask, nothing_found
from cronring.cli.failures import Failure, suggestion
from cronring.cli.options import controllers_option, count, output_option
from cronring.cli.output import Column, print_json, print_rows
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.workspaces import Workspace

namespace_option = click.option("--namespace", default="default", show_default=True, help="Where it is.")


@click.group()
def workspaces() -> None:
    """Workspaces: values of the label `workspace`, as the tenants of a product.

    \b
    A job is of one:       cronring jobs create ... --label workspace=ws_3
    One run each at once:  cronring limits set --by label:workspace --max 1
    Pause one, go on:      cronring jobs pause --label workspace=ws_3
                           cronring jobs resume --label workspace=ws_3
    See jobs and runs:     cronring jobs list --label workspace=ws_3
                           cronring executions list --label workspace=ws_3
    """


workspaces.add_command(export)


@workspaces.command("list")
@click.option("--namespace", default="", help="Only of this namespace.")
@output_option
@controllers_option
def list_workspaces(namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """List workspaces that have jobs or messages, and how many of the jobs run."""
    rows = ask(controllers, lambda client: client.workspaces.list(namespace))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Workspace]] = [
        Column("workspace", lambda row: row.workspace),
        Column("namespace", lambda row: row.namespace),
        Column("jobs", lambda row: str(row.jobs), right=True),
        Column("paused", lambda row: str(row.paused), right=True),
        Column("running", lambda row: str(row.running), right=True),
    ]
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "workspaces", {"namespace": namespace}, lambda client: client.workspaces.list(),
        "no job has the label, and no message. Give it: cronring jobs create ... --label workspace=NAME",
    ))  # fmt: skip


@workspaces.command("show")
@click.argument("workspace")
@namespace_option
@output_option
@controllers_option
def show_workspace(workspace: str, namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """Count what there is of WORKSPACE: jobs, what runs, what waits beside schedules, and messages."""
    row = ask(controllers, lambda client: _found(client, workspace, namespace))
    if output == "json":
        print_json(row)
        return
    say(_told(row))


@workspaces.command("delete")
@click.argument("workspace")
@namespace_option
@click.option("--dry-run", is_flag=True, help="Only say what there is of it.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--expect", type=count(0), metavar="N", help="Delete nothing unless it has exactly N jobs.")
@note_option
@as_option
@output_option
@controllers_option
def delete_workspace(
    workspace: str,
    *,
    namespace: str,
    dry_run: bool,
    yes: bool,
    expect: int | None,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
) -> None:
    """End all of WORKSPACE: its schedules, what waits, its runs, and then its messages and jobs.

    Its history stays. If this is cut in the middle, the same command goes on. If
    anything is left, this says what to do, and the exit code is 1.

    \b
    Examples:
      cronring workspaces delete ws_3 --dry-run
      cronring workspaces delete ws_3 --expect 12 --yes --note "left us"
    """
    found = ask(controllers, lambda client: _found(client, workspace, namespace))
    if not (dry_run or yes):
        confirm([f"would delete {_told(found)}"])
        expect = found.jobs if expect is None else expect
    done = ask(
        controllers,
        lambda client: client.workspaces.delete(
            workspace, namespace, expected=expect, dry_run=dry_run, by=actor(as_name), note=note
        ),
    )
    if output == "json":
        print_json(done)
    elif dry_run:
        say(f"would delete {_told(done.found)}")
    else:
        told = f"; {done.left.running} runs were told to stop" if done.left.running else ""
        messages = f", and {done.messages} messages" if done.messages else ""
        say(f"{workspace}: {done.deleted} jobs deleted{messages}{told}")
    if not done.done:
        counts = ((done.left.jobs, "jobs"), (done.left.messages, "messages"))
        left = " and ".join(f"{number} {what}" for number, what in counts if number)
        raise Failure(
            f"{left} left: somebody made them meanwhile, or has them locked, as a consumer does until it commits. "
            "Repeat the command then"
        )


async def _found(client: "AsyncClient", workspace: str, namespace: str) -> "Workspace":
    """Raises Failure where there is nothing of it: nobody makes workspaces, so the name may be wrong."""
    row = await client.workspaces.get(workspace, namespace)
    if row.jobs or row.running or row.waiting or row.messages:
        return row
    known = [each.workspace for each in await client.workspaces.list(namespace)]
    listed = f"`cronring workspaces list --namespace {namespace}` shows those that there are"
    raise Failure(f"there is nothing of {workspace!r} in {namespace}.{suggestion(workspace, known)} {listed}")


def _told(row: "Workspace") -> str:
    return (
        f"{row.workspace} in {row.namespace}: {row.jobs} jobs ({row.paused} paused), {row.running} runs, "
        f"{row.waiting} waiting, {row.messages} messages"
    )
