"""`cronring sets list|show|delete`: which jobs are whose."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.conditions import if_match_option
from cronring.cli.consent import confirm, require_terminal
from cronring.cli.conversation import COUNTED_MAX, ask, nothing_found, or_nearest
from cronring.cli.failures import Failure
from cronring.cli.files.reading import FileSet
from cronring.cli.options import controllers_option, option, output_option
from cronring.cli.output import Column, print_fields, print_json, print_rows, short_instant
from cronring.cli.printing import say
from cronring.cli.set_rows import as_json, told
from cronring.schema.keys import qualified

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Job
    from cronring.client.sets import AppliedSet, Set

namespace_option = option("--namespace", default="default", show_default=True, help="Of its jobs.")


@click.group()
def sets() -> None:
    """Sets: jobs that a file declares, as `cronring apply` has made them."""


@sets.command("list")
@click.option("--namespace", default="", help="Only of this namespace.")
@output_option
@controllers_option
def list_sets(namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """List sets.

    \b
    Example:
      cronring sets list -o json | jq -r '.[].name'
    """
    rows = ask(controllers, lambda client: client.sets.list(namespace))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Set]] = [
        Column("set", lambda row: qualified(row.namespace, row.name)),
        Column("jobs", lambda row: f"{row.jobs:,}", right=True),
        Column("changed", lambda row: short_instant(row.applied_at)),
        Column("by", lambda row: row.applied_by),
        Column("note", lambda row: row.note or "-"),
    ]
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "sets", {"namespace": namespace}, lambda client: client.sets.list(limit=COUNTED_MAX),
        "no sets. Make one: cronring apply FILE",
    ))  # fmt: skip


@sets.command("show")
@click.argument("name")
@namespace_option
@output_option
@controllers_option
def show_set(name: str, namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show the set NAME, and its jobs.

    \b
    Example:
      cronring sets show billing-prod
    """

    async def question(client: "AsyncClient") -> "tuple[Set, list[Job]]":
        row = await or_nearest(client.sets.get(name, namespace), "set", name, lambda: _names(client, namespace))
        return row, await client.sets.jobs(name, namespace)

    row, jobs = ask(controllers, question)
    if output == "json":
        print_json({"set": row, "jobs": jobs})
        return
    note = f": {row.note}" if row.note else ""
    print_fields([
        ("set", row.name), ("namespace", row.namespace), ("jobs", f"{row.jobs:,}"),
        ("changed", f"{short_instant(row.applied_at)} by {row.applied_by}{note}"),
    ])  # fmt: skip
    say()
    columns: list[Column[Job]] = [
        Column("job", lambda job: job.key),
        Column("status", lambda job: job.status),
        Column("schedule", lambda job: job.schedule),
        Column("next tick", lambda job: short_instant(job.next_tick)),
    ]
    print_rows(columns, jobs, "no jobs")


@sets.command("delete")
@click.argument("name")
@namespace_option
@click.option("--keep-jobs", is_flag=True, help="Leave its jobs to nobody: another set may adopt them.")
@click.option("--yes", is_flag=True, help="Don't ask before doing it.")
@if_match_option
@note_option
@as_option
@output_option
@controllers_option
def delete_set(  # noqa: PLR0917 - click passes them by name
    name: str, namespace: str, keep_jobs: bool, yes: bool, if_match: str, note: str, as_name: str | None, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Remove the set NAME with all its jobs. What runs finishes, and history stays.

    It is what `cronring apply --prune` does with a file that has no jobs any more.

    \b
    Examples:
      cronring sets delete billing-prod --note "moved"
      cronring sets delete billing-prod --keep-jobs --yes
    """
    from cronring.client.sets import HowToApply

    async def question(client: "AsyncClient", how: HowToApply) -> "AppliedSet":
        await or_nearest(client.sets.get(name, namespace), "set", name, lambda: _names(client, namespace))
        return await client.sets.apply(name, [], how, namespace, by=actor(as_name), note=note)

    nothing = FileSet(namespace, name, {})
    if not yes:
        require_terminal()
        look = ask(controllers, lambda client: question(client, HowToApply(not keep_jobs, keep_jobs, dry_run=True)))
        if_match = if_match or look.etag
        for line, colour in told(nothing, look, dry_run=True):
            say(line, err=True, colour=colour)
        confirm()
    done = ask(controllers, lambda client: question(client, HowToApply(not keep_jobs, keep_jobs, etag=if_match)))
    if output == "json":
        print_json(as_json(nothing, done))
    else:
        for line, colour in told(nothing, done, dry_run=False):
            say(line, colour=colour)
    if done.counts["refused"]:
        raise Failure("nothing was changed: see what is refused")


async def _names(client: "AsyncClient", namespace: str) -> list[str]:
    return [row.name for row in await client.sets.list(namespace)]
