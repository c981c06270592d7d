"""`cronring cluster`: the controllers, their ring, and the runners."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.instants import instant_option, past
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import Column, print_fields, print_json, print_rows, short_instant
from cronring.cli.printing import say
from cronring.schema.duration import measured

if TYPE_CHECKING:
    from datetime import datetime

    from cronring.client import AsyncClient
    from cronring.client.history import PastMember
    from cronring.client.model import Member, Owners, Ring, Runner


@click.group()
def cluster() -> None:
    """The cluster: controllers, their share of the ring, and runners."""


@cluster.command("members")
@instant_option("--at", zone="UTC", help="As it was at this instant, by leases")
@output_option
@controllers_option
def members(at: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """List controllers, as the one that answers sees them; or as they were, with --at.

    \b
    Examples:
      cronring cluster members
      cronring cluster members --at 03:12
    """
    if at is not None:
        _members_then(past("--at", at), output, controllers)
        return
    view = ask(controllers, lambda client: client.cluster.get())
    if output == "json":
        print_json(view.members)
        return
    columns: list[Column[Member]] = [
        Column("controller", lambda row: row.id + (" *" if row.id == view.answered_by else "")),
        Column("status", lambda row: row.status),
        Column("share", lambda row: f"{row.share:.1%}", right=True),
        Column("primary", lambda row: str(row.primary_slots), right=True),
        Column("backup", lambda row: str(row.backup_slots), right=True),
        Column("grpc", lambda row: row.grpc_address),
        Column("http", lambda row: row.http_address),
        Column("pid", lambda row: str(row.pid), right=True),
        Column("lease until", lambda row: short_instant(row.lease_expires_at)),
        Column("version", lambda row: row.version),
    ]
    print_rows(columns, list(view.members), "no members")
    say()
    apart = measured(view.clock_offset_ms, signed=True)
    say(f"* answered; ring {view.ring_digest}; its clock is {apart} off PostgreSQL's")


def _members_then(at: "datetime", output: str, controllers: tuple[str, ...]) -> None:
    moment = ask(controllers, lambda client: client.history.moment(at))
    if output == "json":
        print_json(moment)
        return
    columns: list[Column[PastMember]] = [
        Column("controller", lambda row: row.id),
        Column("share", lambda row: f"{row.share:.1%}", right=True),
        Column("lease since", lambda row: short_instant(row.held_since)),
        Column("until", lambda row: short_instant(row.held_until) if row.held_until else "now"),
        Column("then", lambda row: "" if row.held_until is None else "left" if row.departed else "lost"),
    ]
    print_rows(columns, list(moment.members), f"no controller held a lease at {short_instant(moment.at)}")
    say()
    say(f"{len(moment.runners)} runners, {len(moment.executions)} runs; members are known since "
        f"{short_instant(moment.known_since)}")  # fmt: skip
    for late in moment.late:
        say(f"{late.job}, due {short_instant(late.run_at)}, began {measured(late.lateness_ms)} late. {late.text}")


@cluster.command("ring")
@output_option
@controllers_option
def ring(output: str, controllers: tuple[str, ...]) -> None:
    """Show who owns how many of the 4,096 slots. With -o json: the owner of each slot."""
    answer = ask(controllers, lambda client: client.cluster.ring())
    if output == "json":
        print_json(answer)
        return
    rows = list(enumerate(answer.members))
    columns: list[Column[tuple[int, str]]] = [
        Column("controller", lambda row: row[1]),
        Column("primary of", lambda row: str(answer.primary.count(row[0])), right=True),
        Column("backup of", lambda row: str(answer.backup.count(row[0])), right=True),
        Column("share", lambda row: _share(answer, row[0]), right=True),
    ]
    print_rows(columns, rows, "the ring is empty")
    unowned = answer.primary.count(-1)
    say()
    say(f"ring {answer.digest}" + (f"; {unowned} slots have no owner" if unowned else ""))


def _share(ring: "Ring", index: int) -> str:
    return f"{ring.primary.count(index) / max(1, len(ring.primary)):.1%}"


@cluster.command("owners")
@click.argument("job", shell_complete=job_key)
@instant_option("--at", zone="UTC", help="Who it was at this instant, by leases")
@output_option
@controllers_option
def owners(job: str, at: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Say who runs JOB (its key), and who is next; or who it was, with --at."""
    then = None if at is None else past("--at", at)

    async def question(client: "AsyncClient") -> "Owners":
        return await or_nearest(client.cluster.owners(job, then), "job", job, lambda: job_keys(client))

    answer = ask(controllers, question)
    if output == "json":
        print_json(answer)
        return
    print_fields(
        [
            ("job", answer.job),
            ("slot", str(answer.slot)),
            ("primary", answer.primary or "nobody"),
            ("backup", answer.backup or "nobody"),
        ]
    )


def _status(row: "Runner") -> str:
    if row.left_at is not None:
        return "left"
    return "alive" if row.alive else "dead"


def _places(row: "Runner") -> str:
    return f"{row.sync_places:,} sync, {row.async_places:,} async" if row.sync_places else "-"


@cluster.command("runners")
@output_option
@controllers_option
def runners(output: str, controllers: tuple[str, ...]) -> None:
    """List runners. Places: how many runs of each of its modules a runner holds at once."""
    view = ask(controllers, lambda client: client.cluster.get())
    if output == "json":
        print_json(view.runners)
        return
    columns: list[Column[Runner]] = [
        Column("runner", lambda row: row.id),
        Column("status", _status),
        Column("host", lambda row: row.hostname),
        Column("pid", lambda row: str(row.pid), right=True),
        Column("places", _places),
        Column("deployments", lambda row: ", ".join(row.deployments)),
        Column("last seen", lambda row: short_instant(row.last_seen_at)),
    ]
    print_rows(columns, list(view.runners), "no runners. Start one: cronring runner FILE")
