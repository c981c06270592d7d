"""`cronring rollback`: an older version of a module becomes the active one again."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import active_module, deployment_key
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import ask
from cronring.cli.failures import Failure, suggestion
from cronring.cli.options import controllers_option, option, output_option
from cronring.cli.output import short_instant
from cronring.cli.versions import Changes, consent_options, tell, with_consent

if TYPE_CHECKING:
    from cronring.client.versions import Activated, Deployment


@click.command()
@click.argument("module", shell_complete=active_module)
@click.option("--to", metavar="KEY", shell_complete=deployment_key, help="This version.  [default: the one before]")
@option("--namespace", default="default", show_default=True, help="Where the module is.")
@consent_options
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def rollback(  # noqa: PLR0917 - click passes them by name
    module: str, to: str | None, namespace: str, dry_run: bool, yes: bool, if_match: str, note: str,
    as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make an older version of MODULE the active one: the one that was active before, or --to KEY.

    With --to, repeating it changes nothing. Without --to, repeating it makes the version active that it had replaced.

    Its jobs are those that it declares. Jobs that the newer version added are removed. Jobs that the newer version
    removed come back with their next tick. Jobs made by `jobs create` come back with its verbs, as they were; those
    whose verb it has not got are orphaned, never removed. Pauses, notes and cancelled jobs stay. What runs of other
    versions goes on to its end, on their runners; new runs need a runner that hosts this version. Before jobs are
    removed or orphaned it asks; without a terminal it wants --yes.

    \b
    Examples:
      cronring deployments list --module billing
      cronring rollback billing --note "month end was wrong since yesterday"
      cronring rollback billing --to billing@3fa9c1d2e4b5
    """

    versions = ask(controllers, lambda client: client.deployments.list(namespace, module))
    key = _target(module, to, versions)

    def do(dry: bool) -> "Activated":
        by = actor(as_name)
        return ask(
            controllers, lambda client: client.deployments.activate(key, note, by, dry_run=dry, etag=if_match)
        )  # fmt: skip

    activated = with_consent(do, _changes, dry_run=dry_run, yes=yes)
    tell(activated, _summary(activated, dry_run=dry_run), output, dry_run=dry_run)


def _changes(activated: "Activated") -> Changes:
    return Changes(
        activated.jobs_added, activated.jobs_removed, activated.jobs_orphaned, activated.jobs_back,
        activated.jobs_carried_over if activated.activated else (),
    )  # fmt: skip


def _target(module: str, to: str | None, versions: "list[Deployment]") -> str:
    """The key of the version that is meant."""
    keys = [version.key for version in versions]
    if not versions:
        raise Failure(f"there is no version of a module {module!r}; `cronring deployments list` shows all")
    if to is not None:
        if to not in keys:
            raise Failure(f"{module} has no version {to!r}.{suggestion(to, keys)} It has {', '.join(keys)}")
        return to
    before = [version for version in versions if not version.active and version.deactivated_at is not None]
    if not before:
        raise Failure(f"no version of {module} was active before; `cronring deployments list --module {module}`")
    return max(before, key=_ended_at).key


def _ended_at(version: "Deployment") -> float:
    return version.deactivated_at.timestamp() if version.deactivated_at else 0.0


def _summary(activated: "Activated", *, dry_run: bool) -> list[str]:
    row, previous = activated.deployment, activated.previous
    if not activated.activated:
        lines = [f"{row.key} was active already (since {short_instant(row.activated_at)}); nothing changed"]
    else:
        is_now = "would be" if dry_run else "is"
        lines = [f"{row.key} {is_now} active" + (f" in place of {previous.key}" if previous else "")]
    lines += _changes(activated).lines
    if activated.previous_running:
        lines.append(f"executions of other versions that go on to their end: {activated.previous_running}")
    if row.runners == 0:
        lines.append(
            "no runner hosts it: its ticks wait a moment, and are skipped as no_runner then. Start one with its file: "
            "cronring runner FILE"
        )
    return lines
