"""`cronring rollback`: an older version of a module becomes the active one again."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import active_module, deployment_key
from cronring.cli.failures import Failure, nearest
from cronring.cli.options import controllers_option, option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.session import ask

if TYPE_CHECKING:
    from cronring.client import Client
    from cronring.client.model import Activated, Deployment


@click.command()
@click.argument("module", shell_complete=active_module)
@click.option("--to", metavar="KEY", shell_complete=deployment_key, help="This version.  [default: the one before]")
@option("--namespace", default="default", show_default=True, help="Where the module is.")
@note_option
@as_option
@output_option
@controllers_option
def rollback(
    module: str, to: str | None, namespace: str, note: str, as_name: str | None, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make an older version of MODULE the active one: the one that was active before, or --to KEY.

    With --to, repeating it changes nothing; without, it goes back to the one that it had taken the place of.

    Its jobs are those that it declares: what the version after it added is removed, what it had removed comes back with
    its next tick; jobs made by `jobs create` stay while it has their verb. Pauses, notes and cancelled jobs stay. What
    runs of other versions goes on to its end, on their runners; new runs need a runner that hosts this version.

    \b
    Examples:
      cronring deployments list --module billing
      cronring rollback billing --note "month end was wrong since yesterday"
      cronring rollback billing --to billing@3fa9c1d2e4b5
    """

    async def question(client: "Client") -> "Activated":
        versions = await client.deployments.list(namespace, module)
        return await client.deployments.activate(_target(module, to, versions), note, actor(as_name))

    activated = ask(controllers, question)
    if output == "json":
        print_json(activated)
        return
    click.echo("\n".join(_summary(activated)))


def _target(module: str, to: str | None, versions: "list[Deployment]") -> str:
    """The key of the version that is meant."""
    keys = [version.key for version in versions]
    if not versions:
        raise Failure(f"there is no version of a module {module!r}; `cronring deployments list` shows all")
    if to is not None:
        if to not in keys:
            raise Failure(f"{module} has no version {to!r}.{nearest(to, keys)} It has {', '.join(keys)}")
        return to
    before = [version for version in versions if not version.active and version.deactivated_at is not None]
    if not before:
        raise Failure(f"no version of {module} was active before; `cronring deployments list --module {module}`")
    return max(before, key=_ended_at).key


def _ended_at(version: "Deployment") -> float:
    return version.deactivated_at.timestamp() if version.deactivated_at else 0.0


def _summary(activated: "Activated") -> list[str]:
    row, previous = activated.deployment, activated.previous
    if not activated.activated:
        lines = [f"{row.key} was active already (since {short_instant(row.activated_at)}); nothing changed"]
    else:
        lines = [f"{row.key} is active" + (f" in place of {previous.key}" if previous else "")]
    for word, keys in (
        ("added", activated.jobs_added),
        ("removed", activated.jobs_removed),
        ("carried over", activated.jobs_carried_over if activated.activated else ()),
    ):
        lines += [f"  {word}: {each}" for each in keys]
    if activated.previous_running:
        lines.append(f"executions of other versions that go on to their end: {activated.previous_running}")
    if row.runners == 0:
        lines.append(
            "no runner hosts it: its ticks wait a moment, and are skipped as no_runner then. Start one with its file: "
            "cronring runner FILE"
        )
    return lines
