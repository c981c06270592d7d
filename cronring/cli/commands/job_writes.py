"""`cronring jobs create|update|delete`."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import job_key, template_name
from cronring.cli.dependencies import followed, warn_of_unknown
from cronring.cli.instants import resolved
from cronring.cli.job_options import (
    VerbName,
    VerbParam,
    job_options,
    labels_of,
    schedule_text,
    timeout_ms,
)
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.policies import given_policy, policy_options
from cronring.cli.printing import say, say_lines
from cronring.cli.session import ask, job_keys, or_nearest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cronring.client import Client
    from cronring.client.model import Job, JobSpec


@click.command("create")
@click.argument("verb", type=VerbParam())
@click.option("--name", required=True, help="Tells it from the verb's other jobs; its key is MODULE.VERB:NAME.")
@click.option("--template", default="", metavar="NAME", shell_complete=template_name,
              help="Start from this template of VERB's namespace (cronring template list).")  # fmt: skip
@click.option("--now", is_flag=True, help="Run it once at once, too. Without a schedule, it is --manual.")
@job_options
@policy_options
@note_option
@as_option
@output_option
@controllers_option
def create_job(
    verb: VerbName,
    name: str,
    template: str,
    now: bool,
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
    **values: Any,
) -> None:
    """Make a job for VERB (module.verb) of an active module. Repeating it changes nothing.

    It stays when the module is deployed anew, as long as VERB is there.

    With --template its values are copied into the job. What is given here wins, and an empty value (--window "",
    --retries 0) leaves the template's out. The template may change later: this job doesn't.

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
    """
    if now and not template and not spec_of(values).schedule:
        values["manual"] = True
    if not template and not spec_of(values).schedule:
        raise click.UsageError(
            "when does it tick? Give --cron, --every, --at, --after, --manual or --now, or a --template that says so"
        )

    async def question(client: "Client") -> "Job":
        zone = values["timezone"]
        if template and zone is None and (values["at"] or values["anchor"]):
            zone = str((await client.templates.get(template, verb.namespace)).spec.policy.get("timezone", ""))
        job = await client.jobs.create(
            verb.module, verb.verb, name, spec_of(values, zone), verb.namespace, actor(as_name),
            template=template, explicit=given_fields(values) if template else (), note=note,
            run_now=now,
        )  # fmt: skip
        await warn_of_unknown(client, [followed(job)] if followed(job) else [])
        return job

    created = ask(controllers, question)
    _show(created, "created", output)
    if now and output != "json":
        say(f"  if it is new, it runs once now: cronring logs -f {created.key}")


@click.command("update")
@click.argument("key", shell_complete=job_key)
@job_options
@click.option("--remove-label", metavar="KEY", multiple=True, help="May be repeated.")
@policy_options
@note_option
@as_option
@output_option
@controllers_option
def update_job(
    key: str,
    remove_label: tuple[str, ...],
    note: str,
    as_name: str | None,
    output: str,
    controllers: tuple[str, ...],
    **values: Any,
) -> None:
    """Change what is given of a job that `jobs create` made; the rest stays. An empty value unsets.

    A new schedule takes effect at its next tick, and the old one never runs again.

    \b
    Examples:
      cronring jobs update billing.close_month:berlin --cron "0 7 1 * *"
      cronring jobs update crawl.site:docs --retries 5 --overlap ""
      cronring jobs update crawl.site:docs --payload @docs.json \\
        --remove-label team
    """
    fields = [*given_fields(values), *(f"labels.{label}" for label in remove_label)]
    if not fields:
        raise click.UsageError("nothing to change is given; --help shows what there is")

    async def change(client: "Client") -> "Job":
        zone = values["timezone"]
        if zone is None and (values["at"] or values["anchor"]):
            zone = (await client.jobs.get(key)).timezone
        job = await client.jobs.update(key, spec_of(values, zone), fields, actor(as_name), note)
        await warn_of_unknown(client, [followed(job)] if values["after"] else [])
        return job

    _show(_changed(controllers, key, change), "changed", output)


@click.command("delete")
@click.argument("key", shell_complete=job_key)
@note_option
@as_option
@output_option
@controllers_option
def delete_job(key: str, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Remove a job that `jobs create` made. What runs finishes, and history stays.

    \b
    Example:
      cronring jobs delete billing.close_month:berlin
    """

    async def question(client: "Client") -> None:
        await or_nearest(client.jobs.delete(key, actor(as_name), note), "job", key, lambda: job_keys(client))

    ask(controllers, question)
    if output == "json":
        print_json({"key": key, "deleted": True})
        return
    say(f"{key} is deleted")


def _changed(controllers: tuple[str, ...], key: str, change: "Callable[[Client], Awaitable[Job]]") -> "Job":
    async def question(client: "Client") -> "Job":
        return await or_nearest(change(client), "job", key, lambda: job_keys(client))

    return ask(controllers, question)


def _show(job: "Job", done: str, output: str) -> None:
    if output == "json":
        print_json(job)
        return
    lines = [f"{job.key} was so already; nothing changed" if job.unchanged else f"{job.key} is {done}"]
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


def spec_of(values: dict[str, Any], zone: str | None = None) -> "JobSpec":
    """`zone`: of instants without one; None: --timezone."""
    from cronring.client.model import JobSpec

    clocks = zone or values["timezone"] or ""
    schedule = schedule_text(values["cron"], values["every"], values["at"], values["manual"], clocks)
    if schedule is None and values["after"]:
        schedule = "manual"  # it has no ticks of its own
    return JobSpec(
        schedule=schedule or "",
        policy=given_policy(values, clocks),
        anchor=resolved(values["anchor"], clocks).replace(microsecond=0) if values["anchor"] else None,
        payload=values["payload"] or "",
        labels=labels_of(values["label"]),
        timeout_ms=timeout_ms(values["timeout"]),
        on_disconnect=values["on_disconnect"] or "",
    )


def given_fields(values: dict[str, Any]) -> list[str]:
    """Paths of what was given, as UpdateJob names them; of what is given empty, too."""
    fields = ["schedule"] if any(values[name] for name in ("cron", "every", "at", "manual", "after")) else []
    for option, field in (
        ("anchor", "anchor"),
        ("payload", "payload"),
        ("timeout", "timeout_ms"),
        ("on_disconnect", "on_disconnect"),
    ):
        if values[option] is not None:
            fields.append(field)
    fields += [f"labels.{key}" for key, _ in values["label"]]
    return fields + [f"policy.{name}" for name in given_policy(values)]
