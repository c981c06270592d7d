"""`cronring plan`: what would a deployment change?"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import click

from cronring.cli.clock import wall_now
from cronring.cli.colours import SIGN_COLOURS
from cronring.cli.conversation import ask
from cronring.cli.failures import Failure
from cronring.cli.options import controllers_option, option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.printing import say
from cronring.schema.instant import from_us, to_us

if TYPE_CHECKING:
    from cronring.cli.modules import ReadModule
    from cronring.client import AsyncClient
    from cronring.schema.forecast import JobForecast
    from cronring.schema.module import Module


class DeployedText(NamedTuple):
    """`text` is empty when the module has no active deployment."""

    key: str
    text: str
    anchors: dict[str, int]  # microseconds, by verb
    made: "tuple[Made, ...]"  # through the API


class Made(NamedTuple):
    """What becomes of a job that was made through the API. `faults`: why its payload no longer fits."""

    key: str
    change: str  # "orphaned" | "back" | "payload"
    faults: tuple[str, ...]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--days", type=click.IntRange(1, 3660), default=7, show_default=True, help="So many days ahead.")
@option("--namespace", default="default", show_default=True, help="Where its jobs live (a .py; a text says so itself).")
@option("--python", metavar="PATH", help="The interpreter that imports FILE.  [default: this one]")
@output_option
@controllers_option
def plan(file: str, days: int, namespace: str, python: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Compare the ticks of what is deployed with those of FILE, over the next days. Changes nothing.

    + are ticks that would be new, - ones that would be gone, ~ ones that would move. Jitter is left out.
    Jobs made through the API stay as they are while their verb is there; those that lose it are named, and ! are those
    whose payload their verb would no longer take.

    \b
    Examples:
      cronring plan billing.py
      cronring plan billing.py --days 365 -o json | \\
        jq '.jobs[] | select(.change != "same")'
    """
    from cronring.cli.modules import described
    from cronring.schema.diff import diff_modules
    from cronring.schema.forecast import forecast

    found = described(file, namespace, python)
    module = found.module
    deployed = ask(controllers, lambda client: active(client, found))
    now = wall_now()
    until = now + timedelta(days=days)
    old = _read(deployed) if deployed.text else None
    jobs = forecast(old, module, to_us(now), to_us(until), deployed.anchors)
    others: dict[str, list[str]] = {}
    if old is not None:
        changed = diff_modules(old, module).changed
        others = {verb.name: [field.field for field in verb.fields] for verb in changed}
    if output == "json":
        rows = [{**as_json(job), "changed_fields": others.get(job.verb, [])} for job in jobs]
        print_json(
            {
                "deployed": deployed.key,
                "from": now,
                "until": until,
                "jobs": rows,
                "api_jobs": [each._asdict() for each in deployed.made],
            }
        )
        return
    before = deployed.key or f"nothing, as {module.name} has no active deployment"
    say(f"from {before}, to {file}: ticks until {short_instant(until)}")
    lines = [line for job in jobs for line in in_words(job, others.get(job.verb, []))]
    lines += [line for each in deployed.made for line in made_in_words(each)]
    for line in lines:
        say(line, colour=SIGN_COLOURS.get(line[:1]))
    if not lines:
        same = sum(job.before for job in jobs)
        say(f"nothing changes: the {len(jobs)} jobs keep their {same:,} ticks")


def _read(deployed: "DeployedText") -> "Module":
    """Raises Failure for what this program can't read."""
    from cronring.schema.text import SchemaError, parse_module

    try:
        return parse_module(deployed.text)
    except SchemaError as error:
        raise Failure(
            f"the deployed schema of {deployed.key} can't be read: {error}. Is it of a newer cronring?"
        ) from error


async def active(client: "AsyncClient", wanted: "ReadModule") -> DeployedText:
    """What is deployed of the module now, and what controllers say of jobs made through the API."""
    module = wanted.module
    rows = await client.deployments.list(module.namespace, module.name, active_only=True)
    jobs = await client.jobs.list(module.namespace, module.name)
    anchors = {job.verb: to_us(job.anchor) for job in jobs if job.anchor is not None and job.source != "api"}
    would = await client.deployments.create(module, wanted.digest, dry_run=True)
    misfit = {each.key for each in would.jobs_misfit}
    made = (
        *(Made(key, "orphaned", ()) for key in would.jobs_orphaned),
        *(Made(key, "back", ()) for key in would.jobs_back if key not in misfit),
        *(Made(each.key, "payload", each.faults) for each in would.jobs_misfit),
    )
    return DeployedText(rows[0].key, rows[0].schema_text, anchors, made) if rows else DeployedText("", "", {}, made)


def made_in_words(made: Made) -> list[str]:
    if made.change == "orphaned":
        until = "its ticks are skipped as no_verb until a version has that again, or somebody deletes it"
        return [f"- {made.key}: made through the API, and its verb is gone: it would be orphaned; {until}"]
    if made.change == "back":
        return [f"+ {made.key}: orphaned, and its verb is back: it would go on with its next tick"]
    return [
        f"! {made.key}: made through the API, and its payload would no longer fit: its runs would fail "
        f"until `cronring jobs update {made.key} --payload ...`",
        *(f"    {fault}" for fault in made.faults),
    ]


def in_words(job: "JobForecast", fields: list[str]) -> list[str]:
    """A line that counts, and lines of the first ticks; nothing for a job that stays as it is."""
    match job.change:
        case "added":
            head = f"+ {job.verb}: {job.new_schedule}, {_ticks(job.after)}"
        case "removed":
            head = f"- {job.verb}: {job.old_schedule}, {_ticks(job.before)} gone"
        case "same" if not fields:
            return []
        case "same":
            return [f"  {job.verb}: the same {_ticks(job.after)}; changed: {', '.join(fields)}"]
        case _:
            schedules = job.new_schedule
            if job.old_schedule != job.new_schedule:
                schedules = f"{job.old_schedule} -> {job.new_schedule}"
            head = f"~ {job.verb}: {schedules}, {_ticks(job.before)} -> {job.after:,}: {_difference(job)}"
            if fields := [field for field in fields if field not in {"schedule", "anchor"}]:
                head += f"; changed: {', '.join(fields)}"
    return [head, *_first("-", job.first_gone, job.gone), *_first("+", job.first_new, job.new)]


def _difference(job: "JobForecast") -> str:
    if job.gone is None or job.new is None:
        return "too many to compare one by one"
    if job.shift_us:
        later = "later" if job.shift_us > 0 else "earlier"
        return f"{job.gone:,} move, each {_length(abs(job.shift_us))} {later}"
    return f"{job.gone:,} gone, {job.new:,} new"


def _first(sign: str, ticks: tuple[int, ...], count: int | None) -> list[str]:
    if not ticks:
        return []
    shown = ", ".join(short_instant(from_us(tick)) for tick in ticks)
    more = "" if count == len(ticks) else ", ..." if count is None else f", and {count - len(ticks):,} more"
    return [f"    {sign} {shown}{more}"]


def _ticks(count: int) -> str:
    return f"{count:,} tick{'' if count == 1 else 's'}"


def _length(duration_us: int) -> str:
    from cronring.schema.duration import format_duration

    return format_duration(duration_us // 1_000)


def as_json(job: "JobForecast") -> dict[str, object]:
    ticks: dict[str, list[datetime]] = {
        "first_gone": [from_us(tick) for tick in job.first_gone],
        "first_new": [from_us(tick) for tick in job.first_new],
    }
    return {
        "verb": job.verb, "change": job.change, "old_schedule": job.old_schedule, "new_schedule": job.new_schedule,
        "before": job.before, "after": job.after, "gone": job.gone, "new": job.new,
        "shift_s": job.shift_us // 1_000_000, **ticks,
    }  # fmt: skip
