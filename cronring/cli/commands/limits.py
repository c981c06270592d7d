"""`cronring limits set|list|remove`: how much may run at once of a module, or of a namespace."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import limited_group
from cronring.cli.options import controllers_option, count, output_option
from cronring.cli.output import Column, group_name, print_json, print_rows, short_instant
from cronring.cli.printing import say
from cronring.cli.session import ask, nothing_found, or_nearest

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.limits import Limit

group_argument = click.argument("group", metavar="GROUP", shell_complete=limited_group)


def _named(group: str) -> tuple[str, str]:
    """Namespace and module ("": all of the namespace). Raises click.UsageError."""
    namespace, slash, module = group.rpartition("/")
    if not slash:
        return "default", module
    if not namespace:
        raise click.UsageError(f"{group!r} names no namespace; write NAMESPACE/ for one, or NAMESPACE/MODULE")
    return namespace, module


@click.group()
def limits() -> None:
    """Limits: how many executions of a module, or of a whole namespace, may run at once.

    What finds no place waits for one, by priority and then by how long it has waited. GROUP is a module (`billing`, or
    `prod/billing` in the namespace prod), or a namespace with a slash at its end (`prod/`).
    """


@limits.command("set")
@group_argument
@click.option("--max-concurrent", type=count(), metavar="N", required=True, help="How many at once.")
@note_option
@as_option
@output_option
@controllers_option
def set_limit(
    group: str, max_concurrent: int, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """At most N executions of GROUP run at once. What runs already goes on, and counts.

    \b
    Examples:
      cronring limits set billing --max-concurrent 5 --note "database"
      cronring limits set prod/billing --max-concurrent 5
      cronring limits set prod/ --max-concurrent 100
    """
    namespace, module = _named(group)
    row = ask(
        controllers,
        lambda client: client.limits.set(max_concurrent, module, namespace, by=actor(as_name), note=note),
    )
    if output == "json":
        print_json(row)
        return
    say(f"{group}: at most {row.max_concurrent} at once; {row.running} run now")


@limits.command("list")
@click.option("--namespace", default="", help="Only of this namespace.")
@output_option
@controllers_option
def list_limits(namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """List limits, and how much of each is taken."""
    rows = ask(controllers, lambda client: client.limits.list(namespace))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Limit]] = [
        Column("group", lambda row: group_name(row.namespace, row.module)),
        Column("running", lambda row: str(row.running), right=True),
        Column("at most", lambda row: str(row.max_concurrent), right=True),
        Column("changed", lambda row: short_instant(row.changed_at)),
        Column("by", lambda row: row.changed_by),
        Column("note", lambda row: row.note or "-"),
    ]
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "limits", {"namespace": namespace}, lambda client: client.limits.list(),
        "no limits. Set one: cronring limits set MODULE --max-concurrent 5",
    ))  # fmt: skip


@limits.command("remove")
@group_argument
@note_option
@as_option
@output_option
@controllers_option
def remove_limit(group: str, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Let as many of GROUP run as there are. What waits for a place begins at once."""
    namespace, module = _named(group)

    async def question(client: "AsyncClient") -> "Limit":
        answer: Awaitable[Limit] = client.limits.remove(module, namespace, by=actor(as_name), note=note)
        return await or_nearest(answer, "limit", group, lambda: _groups(client), "cronring limits list")

    row = ask(controllers, question)
    if output == "json":
        print_json(row)
        return
    say(f"{group}: no limit any more (it was {row.max_concurrent}, and {row.running} run now)")


async def _groups(client: "AsyncClient") -> list[str]:
    return [group_name(row.namespace, row.module) for row in await client.limits.list()]
