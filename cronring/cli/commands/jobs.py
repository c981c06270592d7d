"""`cronring jobs`: what runs when."""

from typing import TYPE_CHECKING, Any

import click

from cronring.cli.commands.job_books import job_books, list_policies
from cronring.cli.commands.job_explain import explain_job
from cronring.cli.commands.job_export import export_jobs
from cronring.cli.commands.job_import import import_jobs
from cronring.cli.commands.job_orders import (
    cancel_job,
    list_actions,
    pause_job,
    restore_job,
    resume_job,
    skip_next,
)
from cronring.cli.commands.job_runs import backfill_job, list_activations, trigger_job
from cronring.cli.commands.job_show import print_job
from cronring.cli.commands.job_writes import create_job, delete_job, update_job
from cronring.cli.commands.stats import job_days, job_stats
from cronring.cli.completion import job_key
from cronring.cli.conversation import COUNTED_MAX, ask, job_keys, nothing_found, or_nearest, page_url
from cronring.cli.dependencies import schedule_shown
from cronring.cli.filtering import (
    JOB_SORTS,
    JOB_WORDS,
    LAST_OUTCOMES,
    STATUSES,
    count_option,
    filter_argument,
    given,
    job_options,
    job_query,
    outcome_options,
    sort_option,
)
from cronring.cli.options import controllers_option, limit_option, output_option
from cronring.cli.output import (
    Column,
    jsonable,
    milliseconds,
    print_count,
    print_json,
    print_json_line,
    print_rows,
    short_instant,
)
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.limits import Limit
    from cronring.client.model import Activation, Job, JobEvent


@click.group()
def jobs() -> None:
    """Jobs: what runs when, and how its last run ended; made, changed, paused, cancelled and run by hand."""


@jobs.command("list")
@filter_argument(JOB_WORDS)
@job_options
@click.option(
    "--status",
    type=click.Choice(list(STATUSES)),
    multiple=True,
    metavar="STATUS",
    help=f"Only in this one; may be repeated: {', '.join(STATUSES)}.",
)
@outcome_options(LAST_OUTCOMES, "whose last run had")
@sort_option(
    JOB_SORTS, "key (the default); next: to run; last: to have run; lateness; success: longest ago; failures: in a row."
)
@count_option
@limit_option(1000)
@output_option
@controllers_option
def list_jobs(
    filters: tuple[str, ...], count: bool, limit: int, output: str, controllers: tuple[str, ...], **values: Any
) -> None:
    """List jobs, in the order of their keys.

    KEY:VALUE says the same as the option, and both may be mixed: status:paused label:team=billing. All conditions have
    to hold.

    \b
    Examples:
      cronring jobs list
      cronring jobs list --status running --status scheduled
      cronring jobs list --failed --sort failures
      cronring jobs list module:billing outcome:lost --count
    """
    query = job_query(filters, values)
    if count:
        print_count("jobs", ask(controllers, lambda client: client.jobs.count(query)), output)
        return
    rows = ask(controllers, lambda client: client.jobs.find(query, limit + 1))
    if len(rows) > limit:
        say(f"the first {limit} of more jobs; --limit shows others", err=True)
    rows = rows[:limit]
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[Job]] = [
        Column("job", lambda job: job.key),
        Column("schedule", schedule_shown),
        Column("status", lambda job: job.status),
        Column("next tick", lambda job: short_instant(job.next_tick)),
        Column("runs at", lambda job: short_instant(job.next_execution)),
        Column("last outcome", lambda job: job.last_outcome or "-"),
        Column("last start", lambda job: short_instant(job.last_started_at)),
        Column("lateness", lambda job: milliseconds(job.last_lateness_ms), right=True),
    ]
    nothing = "no jobs. A module's verbs with a schedule become jobs: cronring deploy FILE"
    print_rows(columns, rows, "" if rows else nothing_found(
        controllers, "jobs", given(filters, values), lambda client: client.jobs.list(limit=COUNTED_MAX), nothing
    ))  # fmt: skip


@jobs.command("get")
@click.argument("key", shell_complete=job_key)
@output_option
@controllers_option
def get_job(key: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show one job with everything about it: KEY is module.verb, module.verb:name, or namespace/module.verb.

    \b
    Examples:
      cronring jobs show billing.close_month
      cronring jobs show crawl.site:docs -o json
    """

    from cronring.schema.pages import job_page

    async def question(client: "AsyncClient") -> "tuple[Job, tuple[Activation, ...], list[Limit], str]":
        job = await or_nearest(client.jobs.get(key), "job", key, lambda: job_keys(client))
        waiting, limits = await client.jobs.activations(key), await client.limits.list(job.namespace)
        of_job = [each for each in limits if each.module in {"", job.module}]
        return job, waiting, of_job, await page_url(client, job_page(job.key))

    job, waiting, limits, url = ask(controllers, question)
    if output == "json":
        print_json(jsonable(job) | {"activations": jsonable(waiting), "limits": jsonable(limits), "url": url})
        return
    print_job(job, waiting, limits, url)


jobs.add_command(get_job, "show")
jobs.add_command(job_stats)
jobs.add_command(job_days)
jobs.add_command(explain_job)
for command in (
    backfill_job, cancel_job, create_job, delete_job, export_jobs, import_jobs, job_books, list_actions,
    list_activations, list_policies, pause_job, restore_job, resume_job, skip_next, trigger_job, update_job,
):  # fmt: skip
    jobs.add_command(command)


@jobs.command("watch")
@click.option("--module", default="", help="Only of this module.")
@click.option("--verb", default="", help="Only of verbs with this name.")
@click.option("--namespace", default="", help="Only in this namespace.")
@output_option
@controllers_option
def watch_jobs(module: str, verb: str, namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """Follow jobs as they change, until Ctrl-C.

    With -o json, each line is an event: {"kind": "present" | "listed" | "changed" | "removed", "job": {...}}. All jobs
    come first as "present", then "listed". When a controller dies, another goes on where it stopped.

    \b
    Example:
      cronring jobs watch --module billing -o json | \\
        jq -c 'select(.kind == "changed") | .job.status'
    """

    async def question(client: "AsyncClient") -> None:
        async for event in client.jobs.watch(namespace, module, verb):
            if output == "json":
                print_json_line(event)
            else:
                _print_event(event)

    ask(controllers, question)


def _print_event(event: "JobEvent") -> None:
    if event.job is None:
        say("(that is all of them; changes follow)", err=True)
        return
    job = event.job
    last = f"last {job.last_outcome}, {milliseconds(job.last_lateness_ms)} late" if job.last_outcome else "never ran"
    next_run = short_instant(job.next_execution)
    say(f"{event.kind.value:8} {job.key}  {job.status}  next {next_run}  {last}")
