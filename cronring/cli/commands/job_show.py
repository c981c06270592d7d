"""`cronring jobs show`: one job, for people."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cronring.cli.commands.job_runs import activation_columns
from cronring.cli.dependencies import followed
from cronring.cli.output import group_name, milliseconds, print_fields, print_rows, short_instant
from cronring.cli.policies import in_words
from cronring.cli.printing import say_lines
from cronring.schema.duration import format_duration, measured
from cronring.schema.policy_model import CONSUMED

if TYPE_CHECKING:
    from cronring.client.limits import Limit
    from cronring.client.model import Activation, Job


_WHOSE_TIMEOUT: Final = {"cluster": " (cluster default)", "built_in": " (built in)"}


def print_job(job: "Job", waiting: "Sequence[Activation]", limits: "Sequence[Limit]", url: str) -> None:
    """Everything about it, what waits beside its schedule, the limits that it is under, and its page in the console."""
    print_fields(
        [
            ("job", job.key),
            ("made by", "the API (cronring jobs create)" if job.source == "api" else "its module's annotation"),
            *([("template", f"{job.template}   (what it said then was copied)")] if job.template else []),
            *([("set", f"{job.set_name}   (cronring apply sets it back to its file)")] if job.set_name else []),
            ("schedule", f"{job.schedule}   ({job.schedule_words})" if job.schedule_words else job.schedule),
            ("status", job.status),
            *_next(job),
            *[
                (name, f"{_value(value)}{_whose(job, name)}   ({in_words(name, value)})")
                for name, value in job.policy.items()
            ],
            *_by_default(job),
            *_given(job),
            ("last outcome", job.last_outcome or "-"),
            ("last start", short_instant(job.last_started_at)),
            ("last end", short_instant(job.last_ended_at)),
            ("last lateness", milliseconds(job.last_lateness_ms)),
            ("last success", f"tick {short_instant(job.last_success)}" if job.last_success else "-"),
            ("failures", f"{job.failures} ticks in a row without success" if job.failures else "none in a row"),
            ("running", _running(job)),
            *[("limit", _places(limit)) for limit in limits],
            (
                "skipped ticks",
                ", ".join(f"{reason} {ticks}" for reason, ticks in sorted(job.skipped.items())) or "none",
            ),
            *_target(job),
            ("slot", str(job.slot)),
            *([("console", url)] if url else []),
        ]
    )
    if waiting:
        say_lines(["", "waiting beside its schedule:"])
        print_rows(activation_columns(), waiting, "")


def _whose(job: "Job", name: str) -> str:
    return " (cluster default)" if name == "jitter" and job.jitter_is_default else ""


def _by_default(job: "Job") -> list[tuple[str, str]]:
    """What the cluster's defaults add to its policy."""
    added: dict[str, str | int] = {"late_after": job.default_late_after, "retries": job.default_retries}
    return [(name, f"{value} (cluster default)   ({in_words(name, value)})") for name, value in added.items() if value]


def _next(job: "Job") -> list[tuple[str, str]]:
    """The nominal tick in its zone and in UTC, when it is attempted, and who paused it."""
    fields = []
    if job.orphaned_at is not None:
        why = f"no active version of {job.module} has its verb {job.verb}; it goes on with one that has"
        fields.append(("orphaned", f"since {short_instant(job.orphaned_at)}: {why}"))
    if job.paused is not None:
        note = f": {job.paused.note}" if job.paused.note else ""
        until = f"until {short_instant(job.paused.until)}, " if job.paused.until else ""
        fields.append(("paused", f"{until}since {short_instant(job.paused.at)} by {job.paused.by or '?'}{note}"))
    if job.cancelled is not None:
        note = f": {job.cancelled.note}" if job.cancelled.note else ""
        fields.append(("cancelled", f"since {short_instant(job.cancelled.at)} by {job.cancelled.by or '?'}{note}"))
    if job.next_tick is None:
        return [*fields, ("next tick", f"when {followed(job)} has completed one" if followed(job) else "-")]
    fields.append(("next tick", f"{job.next_tick_local} in {job.timezone}   ({short_instant(job.next_tick)})"))
    return [*fields, ("runs at", f"{_exactly(job.next_execution)}{_jitter(job.next_tick, job.next_execution)}")]


def _exactly(moment: datetime | None) -> str:
    if moment is None or not moment.microsecond:
        return short_instant(moment)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _jitter(tick: datetime, run_at: datetime | None) -> str:
    apart = (run_at or tick) - tick
    if not apart:
        return ""
    return f"   ({measured(apart / timedelta(milliseconds=1), signed=True)}: jitter, or waiting its turn)"


def _given(job: "Job") -> list[tuple[str, str]]:
    fields = [("payload", job.payload)] if job.payload else []
    if job.labels:
        fields.append(("labels", ", ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))))
    return fields


def _running(job: "Job") -> str:
    if job.running:
        return f"{job.running} executions"
    return f"execution {job.running_execution_id}" if job.running_execution_id else "-"


def _places(limit: "Limit") -> str:
    what = f"module {group_name(limit.namespace, limit.module)}" if limit.module else f"namespace {limit.namespace}"
    full = "   (what is due waits for a place)" if limit.running >= limit.max_concurrent else ""
    return f"{what} runs {limit.running} of {limit.max_concurrent}{full}"


def _value(value: str | int | list[str]) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _target(job: "Job") -> list[tuple[str, str]]:
    """What it runs, and for how long; of a queue's job, where its messages go."""
    whose = _WHOSE_TIMEOUT.get(job.timeout_from, "")
    timeout = ("timeout", f"{format_duration(job.timeout_ms or 0)}{whose}")
    if not job.queue:
        return [timeout, ("on disconnect", job.on_disconnect), ("deployment", job.deployment)]
    awaited = [timeout] if job.policy.get("completes") == CONSUMED else []
    return [*awaited, ("queue", job.queue), ("workspace", job.workspace or "-")]
