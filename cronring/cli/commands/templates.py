"""`cronring template set|list|show|delete`: named defaults that jobs start from."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import template_name
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import COUNTED_MAX, ask, nothing_found, or_nearest
from cronring.cli.job_options import job_options
from cronring.cli.job_specs import given_fields, spec_of
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import Column, jsonable, print_fields, print_json, print_rows, short_instant
from cronring.cli.policies import in_words, policy_options
from cronring.cli.printing import say, say_lines
from cronring.schema.keys import qualified

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Action, Template

Answer = TypeVar("Answer")

_LISTED = 10  # actions shown with a template
namespace_option = click.option(
    "--namespace", default="default", show_default=True, help="Whose jobs may start from it."
)


@click.group()
def template() -> None:
    """Templates: named defaults that jobs made with `cronring jobs create --template NAME` start from.

    A job copies its template: changing or deleting that later changes no job.
    """


@template.command("set")
@click.argument("name", shell_complete=template_name)
@namespace_option
@click.option("--description", help="What it is for.")
@click.option("--replace", is_flag=True, help="The template is what is given here, and nothing else stays of it.")
@job_options
@click.option("--remove-label", metavar="KEY", multiple=True, help="May be repeated.")
@policy_options
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def set_template(
    name: str, namespace: str, description: str | None, replace: bool, remove_label: tuple[str, ...], **values: Any
) -> None:
    """Make the template NAME, or change what is given of it; the rest stays. An empty value unsets.

    Jobs that came from it stay as they are. Repeating it changes nothing.

    \b
    Examples:
      cronring template set nightly --cron "0 3 * * *" --retries 3 \\
        --timezone Europe/Berlin --backoff 1m
      cronring template set careful --overlap skip --timeout 10m \\
        --pause-after-failures 5 --label tier=slow
      cronring template set nightly --window "" --note "nights are free now"
      cronring jobs create billing.close_day --name berlin --template nightly
    """
    fields = [*given_fields(values), *(f"labels.{label}" for label in remove_label)]
    fields += [] if description is None else ["description"]
    if not fields and not replace:
        raise click.UsageError("nothing to set is given; --help shows what there is")

    async def question(client: "AsyncClient") -> "Template":
        zone = values["timezone"]
        if zone is None and not replace and (values["at"] or values["anchor"]):
            zone = await _zone(client, name, namespace)
        return await client.templates.set(
            name, spec_of(values, zone), () if replace else fields, description=description or "",
            namespace=namespace, by=actor(values["as_name"]), note=values["note"], etag=values["if_match"],
        )  # fmt: skip

    done = ask(values["controllers"], question)
    if values["output"] == "json":
        print_json(done)
        return
    say(f"template {name} {_became(done)}")
    _print_values(done)


@template.command("list")
@click.option("--namespace", default="", help="Only of this namespace.")
@output_option
@controllers_option
def list_templates(namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """List templates.

    \b
    Example:
      cronring template list -o json | jq -r '.[] | select(.jobs == 0) | .name'
    """
    rows = ask(controllers, lambda client: client.templates.list(namespace))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Template]] = [
        Column("template", lambda row: qualified(row.namespace, row.name)),
        Column("jobs", lambda row: str(row.jobs), right=True),
        Column("sets", lambda row: ", ".join(name for name, _ in _values(row)) or "nothing"),
        Column("changed", lambda row: short_instant(row.changed_at)),
        Column("by", lambda row: row.changed_by),
        Column("description", lambda row: row.description or "-"),
    ]
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "templates", {"namespace": namespace}, lambda client: client.templates.list(limit=COUNTED_MAX),
        "no templates. Make one: cronring template set NAME --retries 3",
    ))  # fmt: skip


@template.command("show")
@click.argument("name", shell_complete=template_name)
@namespace_option
@output_option
@controllers_option
def show_template(name: str, namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show what a template sets, how many jobs came from it, and who changed it, when and why.

    \b
    Example:
      cronring template show nightly
    """

    async def question(client: "AsyncClient") -> "tuple[Template, list[Action]]":
        found = await _or_nearest(client, client.templates.get(name, namespace), name)
        return found, await client.jobs.actions(template=f"{namespace}/{name}", limit=_LISTED)

    found, actions = ask(controllers, question)
    if output == "json":
        print_json(jsonable(found) | {"actions": jsonable(actions)})
        return
    print_fields([
        ("template", found.name),
        ("namespace", found.namespace),
        ("description", found.description or "-"),
        ("jobs", f"{found.jobs} came from it"),
        ("made", f"{short_instant(found.created_at)} by {found.created_by}"),
        ("changed", f"{short_instant(found.changed_at)} by {found.changed_by}   (revision {found.revision})"),
    ])  # fmt: skip
    _print_values(found)
    if actions:
        say_lines(["", "the latest changes:"])
        print_rows(_action_columns(), actions, "")


@template.command("delete")
@click.argument("name", shell_complete=template_name)
@namespace_option
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def delete_template(
    name: str, namespace: str, if_match: str, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Delete a template. Jobs that came from it stay as they are, and still name it.

    \b
    Example:
      cronring template delete nightly --note "each job says it itself now"
    """

    async def question(client: "AsyncClient") -> int:
        deleting = client.templates.delete(name, namespace, actor(as_name), note, etag=if_match)
        return await _or_nearest(client, deleting, name)

    jobs = ask(controllers, question)
    if output == "json":
        print_json({"namespace": namespace, "name": name, "deleted": True, "jobs": jobs})
        return
    say(f"template {name} is deleted; {jobs} jobs that came from it stay as they are")


async def _or_nearest(client: "AsyncClient", answer: Awaitable[Answer], name: str) -> Answer:
    async def names() -> list[str]:
        return [each.name for each in await client.templates.list(limit=1000)]

    return await or_nearest(answer, "template", name, names, "cronring template list")


async def _zone(client: "AsyncClient", name: str, namespace: str) -> str | None:
    """On whose clocks instants without an offset are read; None: there is no such template yet."""
    from cronring.client.errors import NotFound

    try:
        return str((await client.templates.get(name, namespace)).spec.policy.get("timezone", "UTC"))
    except NotFound:
        return None


def _became(done: "Template") -> str:
    if done.unchanged:
        return "was so already; nothing changed"
    return "is made" if done.revision == 1 else f"is changed; the {done.jobs} jobs that came from it stay as they are"


def _print_values(found: "Template") -> None:
    fields = [(f"  {name}", text) for name, text in _values(found)]
    print_fields(fields or [("  sets", "nothing")])


def _values(found: "Template") -> list[tuple[str, str]]:
    """What it sets, each in words."""
    from cronring.schema.duration import format_duration

    spec = found.spec
    fields = [("schedule", f"{spec.schedule}   ({found.schedule_words})")] if spec.schedule else []
    fields += [("anchor", short_instant(spec.anchor))] if spec.anchor else []
    for name, value in spec.policy.items():
        plain = ", ".join(value) if isinstance(value, list) else str(value)
        fields.append((name, f"{plain}   ({in_words(name, plain)})"))
    fields += [("payload", spec.payload)] if spec.payload else []
    if spec.labels:
        fields.append(("labels", ", ".join(f"{key}={value}" for key, value in sorted(spec.labels.items()))))
    fields += [("timeout", format_duration(spec.timeout_ms))] if spec.timeout_ms else []
    return fields + ([("on disconnect", spec.on_disconnect)] if spec.on_disconnect else [])


def _action_columns() -> "list[Column[Action]]":
    return [
        Column("at", lambda row: short_instant(row.at)),
        Column("who", lambda row: row.actor),
        Column("did", lambda row: row.action),
        Column("note", lambda row: row.note or "-"),
    ]
