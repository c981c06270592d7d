"""`cronring stats` and `cronring jobs stats`: figures of all time."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.job_options import Label, labels_of
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import jsonable, milliseconds, print_fields, print_json, short_instant
from cronring.cli.session import ask, job_keys, or_nearest

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.statistics import JobStats, SchedulerStats, Spread


@click.command("stats")
@click.option("--label", type=Label(), multiple=True, help="Only of jobs with this label; may be repeated.")
@output_option
@controllers_option
def stats(label: tuple[tuple[str, str], ...], output: str, controllers: tuple[str, ...]) -> None:
    """Show how all jobs do: how many there are by status, how their executions ended, and how long they took.

    With --label: those that have it by now. What they ran before they had it counts as well.

    \b
    Examples:
      cronring stats -o json
      cronring stats --label team=billing
    """
    labels = labels_of(label)
    found = ask(controllers, lambda client: client.statistics.scheduler(labels))
    if output == "json":
        print_json(jsonable(found))
        return
    print_fields(
        [
            ("jobs", _counts(found.jobs)),
            *_executions(found),
            ("average duration", milliseconds(found.average_duration_ms)),
            ("average lateness", milliseconds(found.average_lateness_ms)),
            ("leases cleared", f"{found.leases_cleared} (controllers that were gone without leaving)"),
            ("last check", short_instant(found.last_check)),
            ("last maintenance", short_instant(found.last_maintenance)),
            ("counted at", short_instant(found.counted_at)),
        ]
    )


@click.command("stats")
@click.argument("key", metavar="JOB", shell_complete=job_key)
@output_option
@controllers_option
def job_stats(key: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show how a job does: executions, successes, duration and lateness of all time (quantiles within 9.1 %).

    \b
    Example:
      cronring jobs stats billing.close_month
    """

    async def question(client: "AsyncClient") -> "JobStats":
        return await or_nearest(client.statistics.job(key), "job", key, lambda: job_keys(client))

    found = ask(controllers, question)
    if output == "json":
        print_json(jsonable(found))
        return
    print_fields(
        [
            ("job", found.job),
            ("status", found.status),
            *_executions(found),
            ("duration", _spread(found.duration)),
            ("lateness", _spread(found.lateness)),
            ("last start", short_instant(found.last_started_at)),
            ("last end", f"{short_instant(found.last_ended_at)}   {found.last_outcome}".rstrip()),
            ("next tick", short_instant(found.next_tick)),
            ("next run at", short_instant(found.next_run_at)),
        ]
    )


def _executions(found: "JobStats | SchedulerStats") -> list[tuple[str, str]]:
    return [
        ("executions", f"{found.executions}, of which {found.running} run now"),
        ("ended", _counts(found.outcomes)),
        ("success rate", "-" if found.success_rate is None else f"{found.success_rate:.2%}"),
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _spread(spread: "Spread | None") -> str:
    if spread is None:
        return "-"
    named = (("average", spread.average_ms), ("p50", spread.p50_ms), ("p95", spread.p95_ms), ("p99", spread.p99_ms))
    return ", ".join(f"{name} {milliseconds(ms)}" for name, ms in named)
