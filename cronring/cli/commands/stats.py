"""`cronring stats` and `cronring jobs stats`: figures of all time, of days, and of the latest hour."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.job_options import Label, labels_of
from cronring.cli.options import DAY_S, Duration, controllers_option, output_option
from cronring.cli.output import Column, jsonable, milliseconds, print_fields, print_json, print_rows, short_instant

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.statistics import DaySpread, JobDay, JobStats, SchedulerStats, Spread


@click.command("stats")
@click.option("--label", type=Label(), multiple=True, help="Only of jobs with this label; may be repeated.")
@click.option("--within", type=Duration(60, DAY_S), help="Of the latest time alone, a minute to a day: 1h.")
@output_option
@controllers_option
def stats(label: tuple[tuple[str, str], ...], within: float | None, output: str, controllers: tuple[str, ...]) -> None:
    """Show how all jobs do: how many there are by status, how their executions ended, and how long they took.

    With --label: those that have it by now. What they ran before they had it counts as well.

    With --within: how the ticks of the last hour went, and how late runs have begun in the last five minutes.

    \b
    Examples:
      cronring stats -o json
      cronring stats --label team=billing
      cronring stats --within 1h
    """
    labels = labels_of(label)
    if within is not None:
        if labels:
            raise click.UsageError("--within is of all jobs; give it without --label")
        _recent(within, output, controllers)
        return
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


def _recent(within: float, output: str, controllers: tuple[str, ...]) -> None:
    found = ask(controllers, lambda client: client.forecast.recent(timedelta(seconds=within)))
    if output == "json":
        print_json(found)
        return
    print_fields(
        [
            ("runs", _counts(found.outcomes)),
            ("skipped ticks", _counts(found.skipped)),
            ("lateness", f"p50 {milliseconds(found.lateness_p50_ms)}, p99 {milliseconds(found.lateness_p99_ms)}"),
        ]
    )


@click.command("days")
@click.argument("key", metavar="JOB", shell_complete=job_key)
@click.option(
    "--days", type=click.IntRange(1, 62), default=14, show_default=True, help="How many days, today among them."
)
@click.option("--timezone", metavar="ZONE", default="", help="Whose days.  [default: the job's]")
@output_option
@controllers_option
def job_days(key: str, days: int, timezone: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show how the runs of a job went on each of the latest days: how many, how long they took, how late they began.

    \b
    Examples:
      cronring jobs days billing.close_month
      cronring jobs days crawl.site:docs --days 30 --timezone UTC
    """

    async def question(client: "AsyncClient") -> "tuple[JobDay, ...]":
        asked = client.statistics.days(key, days, timezone)
        return await or_nearest(asked, "job", key, lambda: job_keys(client))

    found = ask(controllers, question)
    if output == "json":
        print_json(found)
        return
    columns: list[Column[JobDay]] = [
        Column("day", lambda day: day.day),
        Column("runs", lambda day: f"{day.runs:,}", right=True),
        Column("completed", lambda day: f"{day.completed:,}", right=True),
        Column("took p50, p99", lambda day: _of_day(day.duration), right=True),
        Column("late p50, p99", lambda day: _of_day(day.lateness), right=True),
    ]
    print_rows(columns, found, "")


def _of_day(spread: "DaySpread | None") -> str:
    return "-" if spread is None else f"{milliseconds(spread.p50_ms)}, {milliseconds(spread.p99_ms)}"


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
