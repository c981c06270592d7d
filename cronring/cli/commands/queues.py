"""`cronring queues list|put|messages|dead|replay|remove|set`: messages that wait for consumers, and those that died."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.clock import wall_now
from cronring.cli.commands.queue_consume import consume
from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.commands.queue_put import put
from cronring.cli.conditions import idempotency_key_option, if_match_option, refuse_key
from cronring.cli.consent import LOOK_FIRST, confirm
from cronring.cli.conversation import ask, nothing_found
from cronring.cli.failures import Failure
from cronring.cli.options import ROW_ID, controllers_option, count, output_option
from cronring.cli.output import Column, group_name, milliseconds, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.queues import DeadLetter, Queue, QueueMessage

SHOWN: Final = 60  # characters of a payload in a table
COUNTED_MAX: Final = 100_000


workspace_option = click.option("--workspace", metavar="NAME", help='Only of this one; "" for those without one.')


@click.group()
def queues() -> None:
    """Queues of messages: what waits, who works on it, and what died.

    A lane is what a queue has of one workspace: one consumer at a time gets it, in order. A message whose deliveries
    failed too often is a dead letter: look at it, and replay it once its reason is gone. QUEUE is a name in the
    namespace default, or NAMESPACE/NAME.
    """


queues.add_command(consume)
queues.add_command(put)


@queues.command("list")
@click.option("--namespace", default="", help="Only of this namespace.")
@output_option
@controllers_option
def list_queues(namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """List queues: how many messages wait, since when, and who works on them."""
    rows = ask(controllers, lambda client: client.queues.list(namespace))
    if output == "json":
        print_json(rows)
        return
    now = wall_now()
    columns: list[Column[Queue]] = [
        Column("queue", lambda row: group_name(row.namespace, row.queue)),
        Column("messages", lambda row: _counted(row.depth), right=True),
        Column("oldest", lambda row: _age(row.oldest_at, now), right=True),
        Column("lanes", lambda row: _counted(row.lanes), right=True),
        Column("leased", lambda row: _counted(row.leased), right=True),
        Column("consumers", lambda row: str(row.consumers), right=True),
        Column("dead", lambda row: _counted(row.dead), right=True),
        Column("deliveries", lambda row: str(row.max_deliveries), right=True),
        Column("retry", lambda row: row.on_retry),
    ]
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "queues", {"namespace": namespace}, lambda client: client.queues.list(),
        "no queue has a message. Jobs with a queue as their target, and services, put some there",
    ))  # fmt: skip


@queues.command()
@queue_argument
@workspace_option
@click.option("--limit", type=count(), default=100, show_default=True, help="At most so many.")
@output_option
@controllers_option
def messages(queue: str, workspace: str | None, limit: int, output: str, controllers: tuple[str, ...]) -> None:
    """List messages that are not done, the oldest first, and who has them.

    Those of one workspace stand in the order in which consumers get them.
    """
    namespace, name = queue_named(queue)
    rows = ask(controllers, lambda client: client.queues.messages(name, namespace, workspace=workspace, limit=limit))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[QueueMessage]] = [
        Column("id", lambda row: str(row.id), right=True),
        Column("workspace", lambda row: row.workspace or "-"),
        Column("not before", lambda row: short_instant(row.run_at)),
        Column("failed", lambda row: str(row.failures), right=True),
        Column("consumer", lambda row: row.consumer or "-"),
        Column("job", lambda row: row.job or "-"),
        Column("payload", lambda row: _short(row.payload)),
    ]
    print_rows(columns, rows, f"no message waits in {queue}{_of(workspace)}")


@queues.command()
@queue_argument
@workspace_option
@click.option("--limit", type=count(), default=100, show_default=True, help="At most so many.")
@output_option
@controllers_option
def dead(queue: str, workspace: str | None, limit: int, output: str, controllers: tuple[str, ...]) -> None:
    """List dead letters, the oldest first, and why the last delivery of each failed."""
    namespace, name = queue_named(queue)
    rows = ask(
        controllers, lambda client: client.queues.dead_letters(name, namespace, workspace=workspace, limit=limit)
    )
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[DeadLetter]] = [
        Column("id", lambda row: str(row.id), right=True),
        Column("workspace", lambda row: row.workspace or "-"),
        Column("died", lambda row: short_instant(row.died_at)),
        Column("failed", lambda row: str(row.failures), right=True),
        Column("last", lambda row: row.outcome),
        Column("error", lambda row: _short(f"{row.error_type}: {row.error_message}".strip(": "))),
        Column("payload", lambda row: _short(row.payload)),
    ]
    print_rows(columns, rows, f"no message of {queue}{_of(workspace)} is dead")


ids_argument = click.argument("ids", nargs=-1, type=ROW_ID, metavar="[ID]...")
# Each has a variable of its own: nobody removes all for having set it for something else.
replay_all_option, remove_all_option = (
    click.option(
        "--all",
        "everything",
        is_flag=True,
        envvar=f"CRONRING_QUEUES_{verb}_ALL",
        help="All of the queue, or of its --workspace.",
    )
    for verb in ("REPLAY", "REMOVE")
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say which.")
yes_option = click.option("--yes", is_flag=True, help="Don't ask before doing it to all.")


@queues.command()
@queue_argument
@ids_argument
@replay_all_option
@workspace_option
@dry_run_option
@yes_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def replay(  # noqa: PLR0917 - click passes them by name
    queue: str, ids: tuple[int, ...], everything: bool, workspace: str | None, dry_run: bool, yes: bool, note: str,
    as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make dead letters messages again, with all their deliveries before them.

    \b
    Examples:
      cronring queues replay reports 4711
      cronring queues replay reports --all --dry-run
    """
    _order(
        "replay", queue, _Which(ids, everything, workspace), (dry_run, yes), (actor(as_name), note), output, controllers
    )


@queues.command()
@queue_argument
@ids_argument
@remove_all_option
@workspace_option
@dry_run_option
@yes_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def remove(  # noqa: PLR0917 - click passes them by name
    queue: str, ids: tuple[int, ...], everything: bool, workspace: str | None, dry_run: bool, yes: bool, note: str,
    as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Remove dead letters for good. Nothing brings them back.

    \b
    Examples:
      cronring queues remove reports 4711
      cronring queues remove reports --all --dry-run
    """
    _order(
        "remove", queue, _Which(ids, everything, workspace), (dry_run, yes), (actor(as_name), note), output, controllers
    )


@queues.command("set")
@queue_argument
@click.option("--max-deliveries", type=click.IntRange(1, 1_000), metavar="N",
              help="After so many that failed or were lost, a message is dead.")  # fmt: skip
@click.option("--on-retry", type=click.Choice(["block", "pass"]),
              help="While a message waits for its retry, its lane waits with it, or others pass it.")  # fmt: skip
@click.option("--dead-kept-days", type=click.IntRange(1, 3_650), metavar="N", help="How long dead letters stay.")
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def set_queue(  # noqa: PLR0917 - click passes them by name
    queue: str, max_deliveries: int | None, on_retry: str | None, dead_kept_days: int | None, if_match: str, note: str,
    as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Set what becomes of messages that fail. What isn't given stays as it is.

    \b
    Examples:
      cronring queues set reports --max-deliveries 3
      cronring queues set prod/reports --on-retry pass --note "any order"
    """
    if max_deliveries is None and on_retry is None and dead_kept_days is None:
        raise click.UsageError("give --max-deliveries, --on-retry or --dead-kept-days: nothing is changed yet")
    namespace, name = queue_named(queue)
    row = ask(controllers, lambda client: client.queues.set(
        name, namespace, max_deliveries=max_deliveries, on_retry=on_retry, dead_kept_days=dead_kept_days,
        by=actor(as_name), note=note, etag=if_match,
    ))  # fmt: skip
    if output == "json":
        print_json(row)
        return
    waits = "its lane waits with it" if row.on_retry == "block" else "others pass it"
    say(
        f"{queue}: {row.max_deliveries} deliveries, then dead; while one waits for its retry {waits}; "
        f"dead letters stay for {row.dead_kept_days} days"
    )


class _Which(NamedTuple):
    """Of a queue's dead letters: these ids, or all; of one workspace, or of any."""

    ids: Sequence[int]
    everything: bool
    workspace: str | None


def _order(
    what: str, queue: str, which: _Which, how: tuple[bool, bool], told: tuple[str, str],
    output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """`how`: a dry run, and whether it was agreed to. `told`: by whom, and why."""
    (ids, everything, workspace), (dry_run, agreed) = which, how
    if bool(ids) == everything:
        raise click.UsageError(f"give IDs or --all; `cronring queues dead {queue}` lists them")
    if everything:
        refuse_key("of IDs alone; --all is many changes, a thousand by each")
    if everything and not dry_run and not agreed:
        confirm([f"would {what} all dead letters of {queue}{_of(workspace)}"], LOOK_FIRST)
    namespace, name = queue_named(queue)

    async def question(client: "AsyncClient") -> list[int]:
        order = client.queues.replay if what == "replay" else client.queues.remove
        found: dict[int, None] = {}
        while True:
            done = await order(
                name, namespace, ids=ids, everything=everything, workspace=workspace, dry_run=dry_run, by=told[0],
                note=told[1],
            )  # fmt: skip
            goes_on = any(each not in found for each in done)
            found |= dict.fromkeys(done)
            if ids or dry_run or not goes_on:
                return list(found)

    done = ask(controllers, question)
    if output == "json":
        print_json({"ids": done, "dry_run": dry_run})
    else:
        word = {"replay": "replayed", "remove": "removed"}[what]
        more = " at least" if dry_run and everything and len(done) >= 1_000 else ""
        say(f"{queue}: {len(done):,}{more} {'would be ' if dry_run else ''}{word}")
    if missing := sorted(set(ids) - set(done)):
        these = ", ".join(map(str, missing[:10]))
        said = f"no dead letters of {queue}{_of(workspace)}: {these}"
        raise Failure(f"{said}; `cronring queues dead {queue}` lists those that there are")


def _of(workspace: str | None) -> str:
    return "" if workspace is None else f" in the workspace {workspace!r}" if workspace else " without a workspace"


def _counted(number: int) -> str:
    return f"{number:,}+" if number >= COUNTED_MAX else f"{number:,}"


def _age(moment: datetime | None, now: datetime) -> str:
    return "-" if moment is None else milliseconds(max((now - moment).total_seconds(), 0) * 1_000)


def _short(text: str) -> str:
    return (text if len(text) <= SHOWN else text[: SHOWN - 1] + "…") or "-"
