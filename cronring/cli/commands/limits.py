"""`cronring limits set|list|remove`: how much may run at once of a module, a namespace, or each value of a label."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import limited_group
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import ask, nothing_found, or_nearest
from cronring.cli.options import controllers_option, count, output_option
from cronring.cli.output import Column, group_name, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.limits import Limit

_BY: Final = "label:"

group_argument = click.argument("group", metavar="[GROUP]", default="", shell_complete=limited_group)
by_option = click.option(
    "--by", default="", metavar="label:KEY", help="Of each value of this label, as of each workspace: label:workspace."
)


def _named(group: str, by: str) -> tuple[str, str, str]:
    """Namespace, module ("": all of the namespace) and label ("": none). Raises click.UsageError."""
    label = by.removeprefix(_BY)
    if by and (label == by or not label):
        raise click.UsageError(f"--by {by!r}: write label:KEY, as label:workspace")
    if not group and not label:
        raise click.UsageError("of what? Name a module, a namespace (`prod/`), or a label (--by label:workspace)")
    return *_group(group or "default/"), label


def _group(group: str) -> tuple[str, str]:
    namespace, slash, module = group.rpartition("/")
    if not slash:
        return "default", module
    if not namespace:
        raise click.UsageError(f"{group!r} names no namespace; write NAMESPACE/ for one, or NAMESPACE/MODULE")
    return namespace, module


@click.group()
def limits() -> None:
    """Limits: how many executions of a module, or of a whole namespace, may run at once.

    With --by label:KEY: of each value of that label. What finds no place waits for one; workspaces take turns. GROUP
    is a module (`billing`, or `prod/billing` in the namespace prod), or a namespace with a slash at its end (`prod/`).
    """


@limits.command("set")
@group_argument
@by_option
@click.option("--max-concurrent", "--max", type=count(), metavar="N", required=True, help="How many at once.")
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def set_limit(
    group: str, by: str, max_concurrent: int, if_match: str, note: str, as_name: str | None, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """At most N executions of GROUP run at once. What runs already goes on, and counts.

    With --by: N of each value of that label. Jobs that have no such label are not limited by it.

    \b
    Examples:
      cronring limits set billing --max-concurrent 5 --note "database"
      cronring limits set prod/billing --max-concurrent 5
      cronring limits set prod/ --max-concurrent 100
      cronring limits set --by label:workspace --max-concurrent 1
      cronring limits set prod/crawl --by label:workspace --max-concurrent 2
    """
    namespace, module, label = _named(group, by)
    row = ask(
        controllers,
        lambda client: client.limits.set(
            max_concurrent, module, namespace, label=label, by=actor(as_name), note=note, etag=if_match
        ),
    )
    if output == "json":
        print_json(row)
        return
    each = f" of each {label}" if label else ""
    say(f"{_shown(row)}: at most {row.max_concurrent}{each} at once; {row.running} run now")


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
        Column("group", _shown),
        Column("running", lambda row: str(row.running), right=True),
        Column("at most", lambda row: str(row.max_concurrent), right=True),
        Column("full", _full),
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
@by_option
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def remove_limit(
    group: str, by: str, if_match: str, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Let as many of GROUP run as there are. What waits for a place begins at once."""
    namespace, module, label = _named(group, by)

    async def question(client: "AsyncClient") -> "Limit":
        answer: Awaitable[Limit] = client.limits.remove(
            module, namespace, label=label, by=actor(as_name), note=note, etag=if_match
        )
        named = group_name(namespace, module) + (f" --by {by}" if by else "")
        return await or_nearest(answer, "limit", named, lambda: _groups(client), "cronring limits list")

    row = ask(controllers, question)
    if output == "json":
        print_json(row)
        return
    say(f"{_shown(row)}: no limit any more (it was {row.max_concurrent}, and {row.running} run now)")


async def _groups(client: "AsyncClient") -> list[str]:
    return [_shown(row) for row in await client.limits.list()]


def _shown(row: "Limit") -> str:
    """As it is written on the command line."""
    return group_name(row.namespace, row.module) + (f" --by {_BY}{row.label}" if row.label else "")


def _full(row: "Limit") -> str:
    """Of a limit by label how many values are full, and the fullest ones."""
    if not row.label:
        return "yes" if row.running >= row.max_concurrent else "-"
    if not row.values:
        return "-"
    named = ", ".join(f"{each.value} {each.running}" for each in row.fullest)
    return f"{row.full_values} of {row.values}: {named}" + (", ..." if row.values > len(row.fullest) else "")
