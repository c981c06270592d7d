"""`cronring jobs create|update|delete`."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.bulk import (
    BulkOrder,
    Many,
    actor,
    as_option,
    expect_option,
    many_options,
    note_option,
    one_or_many,
    order_many,
)
from cronring.cli.completion import job_key, template_name
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.dependencies import followed, warn_of_unknown
from cronring.cli.instants import resolved
from cronring.cli.job_options import VerbParam, changed_options, job_options, queue_options
from cronring.cli.job_specs import given_fields, spec_of
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.policies import policy_options
from cronring.cli.printing import say, say_lines
from cronring.cli.set_rows import previewed
from cronring.schema.keys import VerbName
from cronring.schema.policy_model import CONSUMED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cronring.client import AsyncClient
    from cronring.client.model import Job, JobSpec, QueueTarget, VerbTarget
    from cronring.client.schedules import Preview

    Target = VerbTarget | QueueTarget


@click.command("create")
@click.argument("verb", type=VerbParam(), required=False)
@queue_options
@click.option("--name", default="", help="Tells it from the target's other jobs; its key is MODULE.VERB:NAME.")
@click.option("--template", default="", metavar="NAME", shell_complete=template_name,
              help="Start from this template of VERB's namespace (cronring template list).")  # fmt: skip
@click.option("--now", is_flag=True, help="Run it once at once, too. Without a schedule, it is --manual.")
@click.option("--dry-run", is_flag=True, help="Only say what it would come to.")
@job_options
@policy_options
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def create_job(
    template: str,
    now: bool,
    dry_run: bool,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
    **values: Any,
) -> None:
    """Make a job for VERB (module.verb) of an active module, or for a queue. Repeating it changes nothing.

    It stays when the module is deployed anew, as long as VERB is there.

    With --queue each tick is a message in that queue, for its consumers to take: no runner is needed. There is one job
    for each queue, workspace and name; made again, it is changed into what is given. A tick is completed when its
    message is in the queue; with --await, when its consumer has ended it.

    With --template its values are copied into the job. What is given here wins, and an empty value (--window "")
    leaves the template's out. The template may change later: this job doesn't.

    With --now it also runs once at once, beside its schedule, as by `cronring jobs trigger`. A job that is there
    already is not run again.

    \b
    Examples:
      cronring jobs create billing.close_month --name berlin \\
        --cron "0 6 1 * *" --timezone Europe/Berlin
      cronring jobs create crawl.site --name docs --every 30m --retries 3 \\
        --payload '{"url": "https://example.com"}'
      cronring jobs create mail.send --name launch --payload @launch.json \\
        --at 2027-03-29T09:00 --timezone Asia/Tokyo
      cronring jobs create crawl.site --name by-hand --manual --label team=search
      cronring jobs create reports.month --name berlin \\
        --after billing.close_month:berlin
      cronring jobs create billing.close_day --name oslo --template nightly \\
        --timezone Europe/Oslo --note "new branch"
      cronring jobs create billing.close_day --name again --now
      cronring jobs create billing.close_day --name often --every 1h --now
      cronring jobs create --queue reports --workspace ws_3 --every 5m \\
        --payload '{"kind": "daily"}'
      cronring jobs create --queue reports --cron "0 6 * * *" --await \\
        --timeout 1h --retries 3
    """
    if values.pop("await"):
        values["completes"] = CONSUMED
    target = _target(values.pop("verb"), values.pop("queue"), values.pop("workspace"), values.pop("name"))
    if now and not template and not spec_of(values).schedule:
        values["manual"] = True
    if not template and not spec_of(values).schedule:
        raise click.UsageError(
            "when does it tick? Give --cron, --every, --at, --after, --manual or --now, or a --template that says so"
        )

    if dry_run:
        _show_preview(ask(controllers, lambda client: _previewed_new(client, values, target, template)), output, now)
        return

    async def question(client: "AsyncClient") -> "Job":
        spec, explicit = await _spec_of(client, values, target, template), given_fields(values) if template else ()
        job = await client.jobs.create_for(
            target, spec, actor(as_name), template=template, explicit=explicit, note=note, run_now=now
        )
        await warn_of_unknown(client, [followed(job)] if followed(job) else [])
        return job

    created = ask(controllers, question)
    _show(created, "created", output)
    if now and output != "json":
        say(f"  {_of_now(created)}")


def _of_now(job: "Job") -> str:
    if job.unchanged or job.updated:
        return f"one that is there isn't run again: cronring jobs trigger {job.key}"
    return f"it runs once now: cronring logs -f {job.key}"


async def _spec_of(client: "AsyncClient", values: dict[str, Any], target: "Target", template: str) -> "JobSpec":
    """Of what is given. Instants are on the clocks of the template's zone, where none is given."""
    zone = values["timezone"]
    if template and zone is None and (values["at"] or values["anchor"]):
        zone = str((await client.templates.get(template, target.namespace)).spec.policy.get("timezone", ""))
    return spec_of(values, zone)


async def _previewed_new(client: "AsyncClient", values: dict[str, Any], target: "Target", template: str) -> "Preview":
    from cronring.client.many import job_to_make

    spec, explicit = await _spec_of(client, values, target, template), given_fields(values) if template else ()
    return await client.schedules.preview_new(job_to_make(target, spec, template, explicit))


@click.command("update")
@click.argument("key", required=False, shell_complete=job_key)
@changed_options
@click.option("--remove-label", metavar="KEY", multiple=True, help="May be repeated.")
@policy_options
@many_options
@expect_option
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def update_job(
    key: str | None,
    remove_label: tuple[str, ...],
    expect: int | None,
    if_match: str,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
    **values: Any,
) -> None:
    """Change what is given of the job KEY that `jobs create` made, or of all that match. An empty value unsets.

    The rest stays. A new schedule takes effect at its next tick, and the old one never runs again. --label says which
    jobs; --set-label gives them one. In a script, give --yes, and --expect with the number that --dry-run has shown:
    if others match by then, nothing is changed.

    \b
    Examples:
      cronring jobs update billing.close_month:berlin --cron "0 7 1 * *"
      cronring jobs update crawl.site:docs --retries 5 --overlap ""
      cronring jobs update crawl.site:docs --every 10m --dry-run
      cronring jobs update crawl.site:docs --payload @docs.json \\
        --remove-label team
      cronring jobs update --label tier=slow --retries 3 --dry-run
      cronring jobs update --label tier=slow --retries 3 --expect 40 --yes
    """
    many = Many.taken_from(values)
    one_or_many(key, many, {"--yes": values["yes"], "--expect": expect})
    dry_run, yes, values["label"] = values.pop("dry_run"), values.pop("yes"), values.pop("set_label")
    fields = [*given_fields(values), *(f"labels.{label}" for label in remove_label)]
    if not fields:
        raise click.UsageError("nothing to change is given; --help shows what there is")
    if key is None:
        _check_instants(values)
        wanted = BulkOrder("update", note, actor(as_name), expected=expect, spec=spec_of(values), fields=fields)
        order_many(controllers, many, wanted, dry_run=dry_run, yes=yes, output=output)
        return
    name = key

    async def spec(client: "AsyncClient") -> "JobSpec":
        zone = values["timezone"]
        if zone is None and (values["at"] or values["anchor"]):
            zone = (await client.jobs.get(name)).timezone
        return spec_of(values, zone)

    if dry_run and if_match:
        raise click.UsageError("--dry-run and --if-match exclude each other: a dry run names the etag as it is now")
    if dry_run:
        _preview(controllers, name, spec, fields, output)
        return

    async def change(client: "AsyncClient") -> "Job":
        job = await client.jobs.update(name, await spec(client), fields, actor(as_name), note, etag=if_match)
        await warn_of_unknown(client, [followed(job)] if values["after"] else [])
        return job

    _show(_changed(controllers, name, change), "changed", output)


def _preview(
    controllers: tuple[str, ...], key: str, spec: "Callable[[AsyncClient], Awaitable[JobSpec]]", fields: list[str],
    output: str,
) -> None:  # fmt: skip
    """What a change of one job would do to it and to its ticks. It is not made."""

    async def question(client: "AsyncClient") -> "Preview":
        asked = client.schedules.preview(key, await spec(client), fields)
        return await or_nearest(asked, "job", key, lambda: job_keys(client))

    _show_preview(ask(controllers, question), output)


def _show_preview(found: "Preview", output: str, once: bool = False) -> None:
    """`once`: it is asked for to run once at once, too."""
    if output == "json":
        print_json(found)
        return
    for line, colour in previewed(found):
        say(line, colour=colour)
    if once:
        say("it would run once at once, too, unless it is there already")


@click.command("delete")
@click.argument("key", required=False, shell_complete=job_key)
@many_options
@expect_option
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def delete_job(
    key: str | None,
    expect: int | None,
    if_match: str,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
    **values: Any,
) -> None:
    """Remove the job KEY that `jobs create` made, or all that match. What runs finishes, and history stays.

    Jobs that a module declares can't be deleted, and are told. In a script, give --yes, and --expect with the number
    that --dry-run has shown: if others match by then, nothing is deleted.

    \b
    Examples:
      cronring jobs delete billing.close_month:berlin
      cronring jobs delete --label batch=2026-03 --dry-run
      cronring jobs delete --label batch=2026-03 --expect 1200 --yes
    """
    many = Many.taken_from(values)
    one_or_many(key, many, {"--dry-run": values["dry_run"], "--yes": values["yes"], "--expect": expect})
    if key is None:
        wanted = BulkOrder("delete", note, actor(as_name), expected=expect)
        order_many(controllers, many, wanted, dry_run=values["dry_run"], yes=values["yes"], output=output)
        return
    name = key

    async def question(client: "AsyncClient") -> None:
        deleting = client.jobs.delete(name, actor(as_name), note, etag=if_match)
        await or_nearest(deleting, "job", name, lambda: job_keys(client))

    ask(controllers, question)
    if output == "json":
        print_json({"key": key, "deleted": True})
        return
    say(f"{key} is deleted")


def _target(verb: VerbName | None, queue: str, workspace: str, name: str) -> "Target":
    """Raises UsageError for none, or two."""
    from cronring.client.model import QueueTarget, VerbTarget

    if verb is not None and (queue or workspace):
        raise click.UsageError("VERB and --queue exclude each other: a job has one target")
    if verb is None and not queue:
        raise click.UsageError("what does it run? Give VERB, like billing.close_month, or --queue NAME")
    if verb is None:
        namespace, _, plain = queue.rpartition("/")
        return QueueTarget(plain, workspace, name, namespace or "default")
    if not name:
        raise click.UsageError("Missing option '--name': it tells the job from the verb's other ones, like nightly")
    return VerbTarget(verb.module, verb.verb, name, verb.namespace)


def _check_instants(values: dict[str, Any]) -> None:
    """Raises UsageError: what one job takes on its own clocks is another instant for the next one."""
    for option in ("at", "anchor"):
        given = values[option]
        alone = (
            not given or given == "now" or given[0] in "+-" or resolved(given, "UTC") == resolved(given, "Asia/Tokyo")
        )
        if values["timezone"] is None and not alone:
            raise click.UsageError(f"--{option}: the jobs may have several time zones; write its offset, like {given}Z")


def _changed(controllers: tuple[str, ...], key: str, change: "Callable[[AsyncClient], Awaitable[Job]]") -> "Job":
    async def question(client: "AsyncClient") -> "Job":
        return await or_nearest(change(client), "job", key, lambda: job_keys(client))

    return ask(controllers, question)


def _show(job: "Job", done: str, output: str) -> None:
    if output == "json":
        print_json(job)
        return
    made = "changed: it was there already" if job.updated else done
    lines = [f"{job.key} was so already; nothing changed" if job.unchanged else f"{job.key} is {made}"]
    if job.next_tick is not None:
        lines.append(f"  next tick  {job.next_tick_local}  ({short_instant(job.next_tick)})")
        lines.append(f"  runs at    {short_instant(job.next_execution)}")
    elif job.orphaned_at is not None:
        lines.append(f"  no tick until a version of {job.module} has its verb {job.verb} again: it is orphaned")
    elif followed(job):
        lines.append(f"  runs after {followed(job)}")
    elif job.paused is None:
        lines.append("  no next tick" if job.schedule != "manual" else f"  run it: cronring jobs trigger {job.key}")
    say_lines(lines)
