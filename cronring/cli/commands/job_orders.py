"""`cronring jobs pause|resume|skip-next|cancel|restore|actions`: one job, or all that match."""

import json
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.bulk import BulkOrder, Many, actor, as_option, many_options, note_option, one_or_many, order_many
from cronring.cli.completion import deployment_key, job_key, template_name
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.dependencies import followed
from cronring.cli.instants import Moment, instant_option, resolved
from cronring.cli.options import controllers_option, limit_option, output_option
from cronring.cli.output import Column, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from cronring.client import AsyncClient
    from cronring.client.model import Action, Job, SkippedTick

PAYLOAD_SHOWN: Final = 60  # characters of each in a table
DIGITS_SHOWN: Final = 12  # of a digest


def _order(command: "Callable[..., None]") -> "Callable[..., None]":
    """KEY, or which jobs; and what all orders take."""
    for each in (controllers_option, output_option, as_option, note_option, idempotency_key_option, many_options):
        command = each(command)
    return click.argument("key", required=False, shell_complete=job_key)(command)


class Until(click.ParamType[str]):
    """An instant as elsewhere, or a duration from now on."""

    name = "INSTANT|DURATION"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = value.strip()
        return Moment().convert(f"+{text}" if text[:1].isdigit() and text[-1:] in "smhdw" else text, param, ctx)


@click.command("pause")
@_order
@instant_option(
    "--until", type=Until(), zone="the job's (of many: UTC)", help="Go on by itself after 2h, or at an instant"
)
def pause_job(until: str | None, **values: Any) -> None:
    """Stop the ticks of the job KEY, or of all jobs that match. What runs finishes; `jobs trigger` still works.

    With --until, the first tick from then on runs again, whoever lives; without, `jobs resume` ends it. Pausing a
    paused job changes nothing, but for a --note or another --until.

    \b
    Examples:
      cronring jobs pause billing.close_month --note "the bank is away"
      cronring jobs pause billing.close_month --until 2026-03-30T06:00
      cronring jobs pause --module crawl --label tier=slow --until 2h --dry-run
    """
    key, many, controllers, output = _which(values)
    if key is None:
        end = None if until is None else resolved(until)
        _many(values, many, "pause", controllers, output, end)
        return

    async def question(client: "AsyncClient") -> "Job":
        end = None
        if until is not None:
            end = resolved(until, "" if until.startswith("+") else (await client.jobs.get(key)).timezone)
        return await client.jobs.pause(key, values["note"], actor(values["as_name"]), end)

    job = _asked(controllers, key, question)
    if output == "json":
        print_json(job)
        return
    _say(job, "paused")
    if job.running_execution_id is not None or job.running:
        say("  what had begun goes on to its end")
    if job.paused is not None and job.paused.until is not None:
        say(f"  until      {short_instant(job.paused.until)}")


@click.command("resume")
@_order
def resume_job(**values: Any) -> None:
    """Let paused jobs tick again, from their next tick on. Those since the pause are skipped, with that reason.

    \b
    Examples:
      cronring jobs resume billing.close_month
      cronring jobs resume --module crawl --yes
      cronring jobs backfill billing.close_month --from -2d  # what it skipped
    """
    key, many, controllers, output = _which(values)
    if key is None:
        _many(values, many, "resume", controllers, output)
        return
    by = actor(values["as_name"])
    job = _asked(controllers, key, lambda client: client.jobs.resume(key, by, values["note"]))
    if output == "json":
        print_json(job)
    else:
        _say(job, "resumed")


@click.command("skip-next")
@_order
@instant_option("--tick", zone="the job's", help="Skip exactly this tick; nothing, if another one is next")
def skip_next(tick: str | None, **values: Any) -> None:
    """Skip the next tick that would run: its reason in the books is `cancelled`. The one after it runs again.

    The tick is looked up first, and named then, so that repeating it after a broken connection skips no other. With
    --tick, two people who mean the same tick skip one, too. One that has begun is told with its execution.

    \b
    Examples:
      cronring jobs skip-next billing.close_month --note "closed by hand"
      cronring jobs skip-next billing.close_month --tick 2026-04-01T06:00
    """
    key, many, controllers, output = _which(values)
    if key is None:
        if tick is not None:
            raise click.UsageError("--tick is of one job; give its KEY")
        _many(values, many, "skip_next", controllers, output)
        return

    async def question(client: "AsyncClient") -> "SkippedTick":
        note, by = values["note"], actor(values["as_name"])
        if tick is not None:
            meant: datetime | None = resolved(tick, (await client.jobs.get(key)).timezone)
        else:
            meant = (await client.jobs.skip_next(key, by=by, dry_run=True)).tick
        return await client.jobs.skip_next(key, meant, note, by)

    skipped = _asked(controllers, key, question)
    if output == "json":
        print_json(skipped)
        return
    before = "" if skipped.skipped else " (it was so before; nothing changed)"
    say(f"{key} skips its tick {short_instant(skipped.tick)}{before}")
    _next(skipped.job)


@click.command("cancel")
@_order
def cancel_job(**values: Any) -> None:
    """End jobs until `jobs restore`: no tick, no run by hand. What waits is forgotten, what runs is told to stop.

    It stays so when its module is deployed anew.

    \b
    Examples:
      cronring jobs cancel crawl.site:docs --note "they asked us to stop"
      cronring jobs cancel --label team=search --dry-run
    """
    key, many, controllers, output = _which(values)
    if key is None:
        _many(values, many, "cancel", controllers, output)
        return
    note, by = values["note"], actor(values["as_name"])
    job, cancelling = _asked(controllers, key, lambda client: client.jobs.cancel(key, note, by))
    if output == "json":
        print_json({"job": job, "cancelling": cancelling})
        return
    _say(job, "cancelled")
    if cancelling:
        say(f"  executions told to stop: {cancelling}; see `cronring executions list --job {key}`")
    say(f"  back again: cronring jobs restore {key}")


@click.command("restore")
@_order
def restore_job(**values: Any) -> None:
    """Begin the schedule of cancelled jobs anew. Nothing of what passed meanwhile was due.

    \b
    Example:
      cronring jobs restore crawl.site:docs
    """
    key, many, controllers, output = _which(values)
    if key is None:
        _many(values, many, "restore", controllers, output)
        return
    note, by = values["note"], actor(values["as_name"])
    job = _asked(controllers, key, lambda client: client.jobs.restore(key, note, by))
    if output == "json":
        print_json(job)
    else:
        _say(job, "restored")


@click.command("actions")
@click.argument("key", required=False, shell_complete=job_key)
@click.option("--deployment", default="", shell_complete=deployment_key, help="To this version of a module.")
@click.option(
    "--template", default="", shell_complete=template_name, help="To this template: its name, or NAMESPACE/NAME."
)
@limit_option(100)
@output_option
@controllers_option
def list_actions(
    key: str | None, deployment: str, template: str, limit: int, output: str, controllers: tuple[str, ...]
) -> None:
    """List what operators did, the newest first: to the job KEY, to a deployment, to a template, or at all.

    \b
    Examples:
      cronring jobs actions billing.close_month
      cronring jobs actions -n 20 -o json
    """
    if sum(map(bool, (key, deployment, template))) > 1:
        raise click.UsageError("give one of a KEY, --deployment and --template")

    async def question(client: "AsyncClient") -> "list[Action]":
        asking = client.jobs.actions(key or "", deployment, limit, template)
        return await or_nearest(asking, "job", key or deployment, lambda: job_keys(client))

    rows = ask(controllers, question)
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Action]] = [
        Column("at", lambda row: short_instant(row.at)),
        Column("who", lambda row: row.actor),
        Column("did", lambda row: row.action),
        Column("to", _object),
        Column("note", lambda row: row.note or "-"),
        Column("details", _details),
    ]
    nothing = "nobody has done anything yet"
    if key:
        nothing = (
            "nobody has done anything to it alone; to a version of its module: cronring jobs actions --deployment KEY"
        )
    print_rows(columns, rows, nothing)


def _details(row: "Action") -> str:
    """As JSON; of a payload how it begins, which -o json has more of."""
    told: dict[str, Any] = dict(row.details)
    if changed := told.get("payload"):
        told["payload"] = {when: _payload(kept) for when, kept in changed.items()}
    return json.dumps(told, ensure_ascii=False) if told else "-"


def _payload(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return ""
    text = kept.get("text")
    if text is None:  # of several jobs at once, or not for this caller
        return f"{kept['bytes']} bytes, sha256 {kept['sha256'][:DIGITS_SHOWN]}…"
    return text if len(text) <= PAYLOAD_SHOWN else f"{text[:PAYLOAD_SHOWN]}… ({kept['bytes']} bytes)"


def _object(row: "Action") -> str:
    if row.execution_id:
        return f"execution {row.execution_id}"
    return row.job or row.deployment or f"template {row.template}"


def _which(values: dict[str, Any]) -> tuple[str | None, Many, tuple[str, ...], str]:
    key = values.pop("key")
    many = Many.taken_from(values)
    one_or_many(key, many, {"--dry-run": values["dry_run"], "--yes": values["yes"]})
    return key, many, values["controllers"], values["output"]


def _many(
    values: dict[str, Any], many: Many, action: str, controllers: tuple[str, ...], output: str,
    until: "datetime | None" = None,
) -> None:  # fmt: skip
    wanted = BulkOrder(action, values["note"], actor(values["as_name"]), until)
    order_many(controllers, many, wanted, dry_run=values["dry_run"], yes=values["yes"], output=output)


def _asked(controllers: tuple[str, ...], key: str, question: "Callable[[AsyncClient], Awaitable[Any]]") -> Any:
    async def asking(client: "AsyncClient") -> Any:
        return await or_nearest(question(client), "job", key, lambda: job_keys(client))

    return ask(controllers, asking)


def _say(job: "Job", done: str) -> None:
    say(f"{job.key} is {done}" if not job.unchanged else f"{job.key} was so already; nothing changed")
    if job.unchanged and job.paused is not None:
        note = f": {job.paused.note}" if job.paused.note else ""
        say(f"  paused     since {short_instant(job.paused.at)} by {job.paused.by or '?'}{note}")
    _next(job)


def _next(job: "Job") -> None:
    if job.next_tick is not None:
        say(f"  next tick  {job.next_tick_local}  ({short_instant(job.next_tick)})")
        say(f"  runs at    {short_instant(job.next_execution)}")
    elif job.orphaned_at is not None and job.cancelled is None:
        say(f"  no tick until a version of {job.module} has its verb {job.verb} again: it is orphaned")
    elif job.paused is None and job.cancelled is None and followed(job):
        say(f"  runs after {followed(job)}")
    elif job.paused is None and job.cancelled is None:
        say("  no next tick" if job.schedule != "manual" else f"  run it: cronring jobs trigger {job.key}")
