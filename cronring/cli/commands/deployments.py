"""`cronring deployments`, `cronring deploy`, `cronring undeploy`: versions of modules."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.colours import SIGN_COLOURS
from cronring.cli.commands.check import warn_of_idle
from cronring.cli.commands.plan import in_words
from cronring.cli.completion import active_module, deployment_key
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import COUNTED_MAX, ask, nothing_found, or_nearest
from cronring.cli.dependencies import followed_by_module, warn_of_unknown
from cronring.cli.failures import Failure, suggestion
from cronring.cli.filtering import count_option
from cronring.cli.options import controllers_option, count, limit_option, option, output_option
from cronring.cli.output import Column, print_count, print_fields, print_json, print_rows, short_instant
from cronring.cli.printing import say, say_block
from cronring.cli.versions import Changes, consent_options, tell, with_consent
from cronring.schema.instant import to_us

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.comparing import VerbDifference
    from cronring.client.versions import Deployed, Deployment, Killed
    from cronring.schema.forecast import JobForecast


@click.group()
def deployments() -> None:
    """Deployments: versions of modules; at most one of each module is active."""


@deployments.command("list")
@click.option("--module", default="", help="Only of this module.")
@click.option("--namespace", default="", help="Only in this namespace.")
@click.option("--active", is_flag=True, help="Only active ones.")
@count_option
@limit_option(100)
@output_option
@controllers_option
def list_deployments(
    module: str, namespace: str, active: bool, count: bool, limit: int, output: str, controllers: tuple[str, ...]
) -> None:
    """List deployments, the newest first; of one --module, this is the history of its versions.

    `cronring jobs actions --deployment KEY` tells who activated one, and why; `cronring rollback` goes back to one.
    """
    if count:
        counted = ask(controllers, lambda client: client.deployments.count(namespace, module, active))
        print_count("deployments", counted, output)
        return
    rows = ask(controllers, lambda client: client.deployments.list(namespace, module, active, limit))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Deployment]] = [
        Column("deployment", lambda row: row.key),
        Column("namespace", lambda row: row.namespace),
        Column("module", lambda row: row.module),
        Column("active", lambda row: "yes" if row.active else "no"),
        Column("jobs", lambda row: str(row.jobs), right=True),
        Column("runners", lambda row: str(row.runners), right=True),
        Column("created", lambda row: short_instant(row.created_at)),
        Column("activated", lambda row: short_instant(row.activated_at)),
        Column("ended", lambda row: short_instant(row.deactivated_at)),
    ]
    filters = {"module": module, "namespace": namespace, "active": active}
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "deployments", filters, lambda client: client.deployments.list(limit=COUNTED_MAX),
        "no deployments. Make one: cronring deploy FILE, or start a runner: cronring runner FILE",
    ))  # fmt: skip


@deployments.command("get")
@click.argument("key", shell_complete=deployment_key)
@output_option
@controllers_option
def get_deployment(key: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show one deployment with its schema."""

    async def question(client: "AsyncClient") -> "Deployment":
        return await or_nearest(client.deployments.get(key), "deployment", key, lambda: _keys(client))

    row = ask(controllers, question)
    if output == "json":
        print_json(row)
        return
    print_fields(
        [
            ("deployment", row.key),
            ("namespace", row.namespace),
            ("module", row.module),
            ("active", "yes" if row.active else "no"),
            ("min replicas", str(row.min_replicas)),
            ("runners", str(row.runners)),
            ("jobs", str(row.jobs)),
            ("created", short_instant(row.created_at)),
            ("activated", short_instant(row.activated_at)),
            ("ended", short_instant(row.deactivated_at)),
            ("digest", row.digest),
        ]
    )
    say()
    say_block(row.schema_text)


@deployments.command("compare")
@click.argument("key", shell_complete=deployment_key)
@option("--from", "from_key", default="", metavar="KEY", help="The other version.  [default: the active one]")
@click.option("--days", type=click.IntRange(1, 366), default=7, show_default=True, help="So many days ahead.")
@output_option
@controllers_option
def compare_deployments(key: str, from_key: str, days: int, output: str, controllers: tuple[str, ...]) -> None:
    """Say which ticks a change to the version KEY moves, adds or takes away, as `cronring plan` does of a file.

    \b
    Examples:
      cronring deployments compare billing@41d0        # what would a rollback do?
      cronring deployments compare billing@9c3e --from billing@41d0 --days 30
    """
    found = ask(controllers, lambda client: client.deployments.compare(key, from_key, days))
    if output == "json":
        print_json(found)
        return
    say(f"from {found.from_key or 'nothing'}, to {found.key}: ticks until {short_instant(found.until_at)}")
    lines = [line for verb in found.verbs for line in in_words(_forecast(verb), list(verb.changed_fields))]
    for line in lines:
        say(line, colour=SIGN_COLOURS.get(line[:1]))
    say(f"{found.same} jobs stay as they are" if lines else f"nothing changes: {found.same} jobs stay as they are")


def _forecast(verb: "VerbDifference") -> "JobForecast":
    from cronring.schema.forecast import JobForecast

    ticks = verb.ticks
    return JobForecast(
        verb.verb, verb.change, ticks.old_schedule, ticks.new_schedule, ticks.before, ticks.after, ticks.gone,
        ticks.new, tuple(map(to_us, ticks.first_gone)), tuple(map(to_us, ticks.first_new)), ticks.shift_ms * 1_000,
    )  # fmt: skip


async def _keys(client: "AsyncClient") -> list[str]:
    return [row.key for row in await client.deployments.list(limit=1000)]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@option("--namespace", default="default", show_default=True, help="Where its jobs live (a .py; a text says so itself).")
@option("--python", metavar="PATH", help="The interpreter that imports FILE.  [default: this one]")
@click.option("--min-replicas", type=count(), default=1, show_default=True, help="Runners it wants.")
@consent_options
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def deploy(  # noqa: PLR0917 - click passes them by name
    file: str, namespace: str, python: str | None, min_replicas: int, dry_run: bool, yes: bool, note: str,
    as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make FILE's schema the active version of its module. Idempotent.

    Its jobs tick once a runner hosts it (`cronring runner FILE`, which deploys too). Jobs that the new version no
    longer declares are removed, new ones start with their next tick, running executions finish. Jobs that `jobs create`
    made are never removed: without their verb they are orphaned, until a version has it again.

    Before jobs are removed or orphaned it asks; without a terminal it wants --yes. `cronring rollback` undoes it.

    \b
    Examples:
      cronring deploy billing.py --dry-run
      cronring deploy billing.py --yes --note "release 41"      # in a pipeline
    """
    from cronring.cli.modules import described

    module = described(file, namespace, python)
    warn_of_idle(file, module.module)

    def do(dry: bool) -> "Deployed":
        async def question(client: "AsyncClient") -> "Deployed":
            made = await client.deployments.create(
                module.module, module.digest, min_replicas, note, actor(as_name), dry_run=dry
            )
            if dry == dry_run:
                await warn_of_unknown(client, followed_by_module(module.module))
            return made

        return ask(controllers, question)

    deployed = with_consent(do, _changes, dry_run=dry_run, yes=yes)
    tell(deployed, _summary(deployed, dry_run=dry_run), output, dry_run=dry_run)


def _changes(deployed: "Deployed") -> Changes:
    return Changes(
        deployed.jobs_added, deployed.jobs_removed, deployed.jobs_orphaned, deployed.jobs_back,
        deployed.jobs_carried_over, [f"{each.key}: {each.faults[0]}" for each in deployed.jobs_misfit],
    )  # fmt: skip


def _summary(deployed: "Deployed", *, dry_run: bool) -> list[str]:
    key = deployed.deployment.key
    if not deployed.created:
        return [
            f"{key} is active already; nothing would change"
            if dry_run
            else f"{key} was active already; nothing changed"
        ]
    lines = [f"{key} {'would be' if dry_run else 'is'} active", *_changes(deployed).lines]
    if deployed.deployment.runners == 0:
        lines.append("no runner hosts it yet: cronring runner FILE")
    return lines


@click.command()
@click.argument("name", metavar="MODULE|KEY", shell_complete=active_module)
@option("--namespace", default="default", show_default=True, help="Where the module is.")
@consent_options
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def undeploy(  # noqa: PLR0917 - click passes them by name
    name: str, namespace: str, dry_run: bool, yes: bool, if_match: str, note: str, as_name: str | None, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """End the active deployment of a module (or the deployment with this key): the jobs that it declares are removed.

    Jobs that `jobs create` made are orphaned: they wait until a version has their verb again, or somebody deletes them.
    What runs finishes, and history stays. It asks first; without a terminal it wants --yes. `cronring rollback` undoes
    it.

    \b
    Examples:
      cronring undeploy billing --dry-run
      cronring undeploy billing --yes --note "moved to the new cluster"
    """

    def do(dry: bool) -> "Killed":
        async def question(client: "AsyncClient") -> "Killed":
            key = await _find(client, name, namespace)
            return await client.deployments.kill(key, note, actor(as_name), dry_run=dry, etag=if_match)

        return ask(controllers, question)

    killed = with_consent(do, _ended, dry_run=dry_run, yes=yes)
    would_be = "would no longer be" if dry_run else "is no longer"
    tell(killed, [f"{killed.deployment.key} {would_be} active", *_ended(killed).lines], output, dry_run=dry_run)


def _ended(killed: "Killed") -> Changes:
    return Changes(removed=killed.jobs_removed, orphaned=killed.jobs_orphaned)


async def _find(client: "AsyncClient", name: str, namespace: str) -> str:
    """The key of the deployment that `name` means: a key itself, or a module with an active one."""
    rows = await client.deployments.list(active_only=True)
    of_module = [row.key for row in rows if row.module == name and row.namespace == namespace]
    if of_module:
        return of_module[0]
    if any(row.key == name for row in await client.deployments.list(limit=1000)):
        return name
    known = [row.module for row in rows if row.namespace == namespace] + [row.key for row in rows]
    raise Failure(f"no active deployment of a module {name!r}, nor one with that key.{suggestion(name, known)}")
