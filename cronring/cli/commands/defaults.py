"""`cronring defaults [set|unset]`: what jobs of the cluster have that don't say it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import ask
from cronring.cli.options import Duration, controllers_option, count, output_option
from cronring.cli.output import print_fields, print_json, short_instant
from cronring.schema.duration import format_duration
from cronring.schema.nearest import nearest

if TYPE_CHECKING:
    from cronring.client.defaults import ClusterDefaults

NAMES: Final = {"timeout": "10m", "late_after": "30s", "retries": "2"}  # each with an example
_BUILT_IN: Final = "not set: what the controllers were started with (--timeout, else 5m)"
_NONE: Final = "not set: webhooks hear only of jobs that say it themselves"
_NO_RETRIES: Final = "not set: only jobs that say it themselves are tried again"


@click.group(invoke_without_command=True)
@click.pass_context
def defaults(ctx: click.Context) -> None:
    """Show or change the cluster's defaults: for jobs that set no value, and whose verbs set none.

    timeout is the soft timeout of a run. late_after is when webhooks hear of a tick that has not started. retries
    is how often a tick is tried again whose run failed: a job that may not run twice says retries=0.

    A change counts at once for all such jobs; nothing is deployed anew. What runs keeps what it began with.
    `cronring jobs show` says where a job has its values from.

    \b
    Examples:
      cronring defaults
      cronring defaults set timeout=10m late_after=30s retries=2
      cronring defaults unset timeout
    """
    if ctx.invoked_subcommand is None:
        with show.make_context("show", [], parent=ctx) as shown:
            show.invoke(shown)


@defaults.command()
@output_option
@controllers_option
def show(output: str, controllers: tuple[str, ...]) -> None:
    """Show what is set, as `cronring defaults` alone does."""
    _show(ask(controllers, lambda client: client.defaults.get()), output)


def _changing(command: Callable[..., None]) -> Callable[..., None]:
    """What both that change them take."""
    for each in (
        controllers_option, output_option, as_option, note_option, idempotency_key_option, if_match_option,
    ):  # fmt: skip
        command = each(command)
    return command


@defaults.command("set")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@_changing
def set_defaults(values: tuple[str, ...], output: str, controllers: tuple[str, ...], **how: Any) -> None:
    """Set NAME to VALUE, for all jobs that don't say it: timeout=10m, late_after=30s, retries=2. The rest stays.

    \b
    Example:
      cronring defaults set timeout=10m late_after=30s --note "slow database"
    """
    wanted: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        name = _known(name)
        if not equals or not value.strip():
            raise click.UsageError(
                f"{each!r}: write {name}=VALUE, as {name}={NAMES[name]}; `cronring defaults unset` takes it back"
            )
        if name in wanted:
            raise click.UsageError(f"{name} is given twice")
        wanted[name] = value.strip()
    _update(wanted, output, controllers, **how)


@defaults.command("unset")
@click.argument("unset", metavar="NAME...", nargs=-1, required=True)
@_changing
def unset_defaults(unset: tuple[str, ...], output: str, controllers: tuple[str, ...], **how: Any) -> None:
    """Take a default back: timeout, late_after, retries.

    \b
    Example:
      cronring defaults unset timeout
    """
    _update(dict.fromkeys(map(_known, unset), ""), output, controllers, **how)


def _known(name: str) -> str:
    """Raises click.UsageError."""
    written = name.strip().replace("-", "_")
    if written in NAMES:
        return written
    close = nearest(written, NAMES)
    hint = f"; do you mean {close}?" if close else ""
    raise click.UsageError(f"{name!r} is no default of the cluster, which has {', '.join(NAMES)}{hint}")


def _update(
    wanted: dict[str, str], output: str, controllers: tuple[str, ...], as_name: str | None, note: str, if_match: str
) -> None:
    timeout_ms = retries = None
    if "timeout" in wanted:
        text = wanted["timeout"]
        timeout_ms = round(Duration().convert(text, None, None) * 1_000) if text else 0
    if "retries" in wanted:
        retries = count(0)(wanted["retries"] or 0)
    late_after, by = wanted.get("late_after"), actor(as_name)
    _show(
        ask(
            controllers,
            lambda client: client.defaults.update(
                timeout_ms=timeout_ms, late_after=late_after, retries=retries, etag=if_match, by=by, note=note
            ),
        ),
        output,
    )


def _show(row: "ClusterDefaults", output: str) -> None:
    if output == "json":
        print_json(row)
        return
    fields = [
        ("timeout", format_duration(row.timeout_ms) if row.timeout_ms else _BUILT_IN),
        ("late_after", row.late_after or _NONE),
        ("retries", str(row.retries or _NO_RETRIES)),
    ]
    if row.revision:
        note = f": {row.note}" if row.note else ""
        fields.append(("changed", f"{short_instant(row.changed_at)} by {row.changed_by}{note}"))
    print_fields(fields)
