"""Rows of the store as messages of the API."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.scope import shows_outputs
from cronring.controller.core.model import Activation
from cronring.controller.core.ticks import upcoming
from cronring.controller.ports.reads import ActionRow, DeploymentRow, ExecutionRow, JobRow, RunnerRow, TickRun
from cronring.controller.services.audit_changes import without_excerpts
from cronring.protos.cronring.v1 import cluster_pb2, deployments_pb2, executions_pb2, jobs_pb2
from cronring.protos.instants import timestamp
from cronring.protos.jobs import spec_fields
from cronring.schema.duration import format_duration
from cronring.schema.policy import parse_policy
from cronring.schema.queues import queue_of, workspace_of
from cronring.schema.schedule import stored_schedule
from cronring.schema.spread import has_default_jitter
from cronring.schema.timetable import Timetable
from cronring.schema.zone import load_zone
from cronring.trace import trace_id

UTC_NAME: Final = "UTC"
NEVER: Final = (None, None)  # a job's next tick, and its run_at
_PAYLOAD_LINE: Final = "+payload "  # of a module's text
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=20_000)
def schedule_words(schedule: str, policy: str) -> str:
    """The schedule in plain English."""
    return stored_schedule(schedule, 0, parse_policy(policy)).words()


def local_text(instant_us: int, zone: str) -> str:
    """What the clocks of a zone show at an instant, to the second, with their offset from UTC."""
    second = instant_us // 1_000_000
    offset = timezone(timedelta(seconds=load_zone(zone).offset_at(second)))
    return (_EPOCH + timedelta(seconds=second)).astimezone(offset).isoformat()


# Fields that a row and its message have by one name; the others are named in `job_message`.
_JOB_FIELDS: Final = jobs_pb2.Job.DESCRIPTOR.fields_by_name
_JOB_ALIKE: Final = tuple(name for name in _JOB_FIELDS if name in JobRow._fields and name != "skipped")


def job_message(row: JobRow, default_jitter: str) -> jobs_pb2.Job:
    """`default_jitter`: the cluster's, for jobs that state none."""
    started, run_at, spec, shown = row.last_started_at, row.last_run_at, row.spec, shows_outputs(row.key)
    zone = parse_policy(spec.policy).timezone or UTC_NAME
    tick, runs_at = upcoming(row.key, spec.timing, row.next_tick, row.next_run_at) or NEVER
    return jobs_pb2.Job(
        **_alike(row, _JOB_ALIKE, _JOB_FIELDS)
        | spec_fields(spec)
        | {
            "id": row.job_id,
            "schedule_words": schedule_words(spec.schedule, spec.policy),
            "next_tick": timestamp(tick),
            "next_execution": timestamp(runs_at),
            "timeout_ms": spec.timeout_by(row.default_timeout_ms),
            "timeout_from": _timeout_from(row),
            "default_late_after": _default_late_after(row),
            "default_retries": row.default_retries if parse_policy(spec.policy).retries is None else 0,
            "last_outcome": row.last_outcome or "",
            "last_lateness_ms": 0.0 if started is None or run_at is None else (started - run_at) / 1_000,
            "running_execution_id": row.running_execution_id or 0,
            "skipped": [jobs_pb2.SkippedTicks(reason=reason, ticks=ticks) for reason, ticks in row.skipped],
            "timezone": zone,
            "next_tick_local": "" if tick is None else local_text(tick, zone),
            "paused": _pause_message(row),
            "cancelled": _cancellation_message(row),
            "jitter_is_default": has_default_jitter(spec.schedule, spec.policy, default_jitter),
            "orphaned": _orphaning_message(row),
            "payload": spec.payload if shown else "",
            "outputs_hidden": not shown,
            "queue": _target_message(row),
        }
    )


def _timeout_from(row: JobRow) -> str:
    if row.spec.said_timeout_ms:
        return ""
    return "built_in" if row.default_timeout_ms is None else "cluster"


def _default_late_after(row: JobRow) -> str:
    default_ms = row.default_late_after_ms
    if default_ms is None or parse_policy(row.spec.policy).late_after:
        return ""
    return format_duration(default_ms)


def _target_message(row: JobRow) -> jobs_pb2.QueueTarget | None:
    queue = queue_of(row.module)
    return jobs_pb2.QueueTarget(queue=queue, workspace=workspace_of(row.verb)) if queue else None


def _alike(row: JobRow | ExecutionRow, names: Iterable[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a row and its message have by these names."""
    values = row._asdict()
    return {
        name: timestamp(values[name]) if fields[name].message_type is Timestamp.DESCRIPTOR else values[name]
        for name in names
    }


def _pause_message(row: JobRow) -> jobs_pb2.Pause | None:
    if row.paused_at is None:
        return None
    return jobs_pb2.Pause(
        at=timestamp(row.paused_at),
        by=row.paused_by or "",
        note=row.paused_note or "",
        until=timestamp(row.paused_until),
    )


def _cancellation_message(row: JobRow) -> jobs_pb2.Cancellation | None:
    if row.cancelled_at is None:
        return None
    at, by, note = row.cancelled_at, row.cancelled_by, row.cancelled_note
    return jobs_pb2.Cancellation(at=timestamp(at), by=by or "", note=note or "")


def _orphaning_message(row: JobRow) -> jobs_pb2.Orphaning | None:
    return None if row.orphaned_at is None else jobs_pb2.Orphaning(at=timestamp(row.orphaned_at))


def action_message(row: ActionRow) -> jobs_pb2.Action:
    return jobs_pb2.Action(
        id=row.action_id,
        at=timestamp(row.at),
        job=row.job,
        deployment=row.deployment,
        execution_id=row.execution_id or 0,
        action=row.action,
        actor=row.actor,
        note=row.note,
        details=row.details if row.job and shows_outputs(row.job) else without_excerpts(row.details),
        template=row.template,
    )


def activation_message(activation: Activation, table: Timetable) -> jobs_pb2.Activation:
    """`table`: its job's, which says how many ticks a backfill has left."""
    tick, until, shown = activation.tick, activation.until_tick, shows_outputs(activation.job.key)
    return jobs_pb2.Activation(
        id=activation.activation_id,
        job=activation.job.key,
        trigger=activation.trigger,
        tick=timestamp(tick),
        until_tick=timestamp(until),
        ticks_left=0 if until is None else table.count_within(tick - 1, until),
        attempt=activation.attempt,
        run_at=timestamp(activation.run_at),
        payload=activation.payload if shown else "",
        payload_of="run" if activation.payload else "job",
        outputs_hidden=not shown,
        beside=activation.beside,
    )


def backfill_tick_message(tick: int, run: TickRun | None) -> jobs_pb2.BackfillTick:
    """`run` None: the tick never ran."""
    if run is None:
        return jobs_pb2.BackfillTick(tick=timestamp(tick))
    return jobs_pb2.BackfillTick(
        tick=timestamp(tick), execution_id=run.execution_id, outcome=run.outcome or "", completed=run.completed
    )


# Fields that a row and its message have by one name; the others are named in `execution_message`.
_FIELDS: Final = executions_pb2.Execution.DESCRIPTOR.fields_by_name
_ALIKE: Final = tuple(name for name in _FIELDS if name in ExecutionRow._fields)


def execution_message(row: ExecutionRow) -> executions_pb2.Execution:
    shown = shows_outputs(row.job)
    if not shown:
        row = row._replace(output=None, error_message=None, stack=None, payload=None, metrics=None)
    return executions_pb2.Execution(
        **_alike(row, _ALIKE, _FIELDS),
        id=row.execution_id,
        controller=row.controller_id,
        runner=row.runner_id,
        lateness_ms=row.lateness_us / 1_000,
        beside=not row.holds_job,
        duration_ms=0 if row.started_at is None or row.ended_at is None else (row.ended_at - row.started_at) / 1e3,
        cpu_ms=None if row.cpu_us is None else row.cpu_us / 1e3,
        metrics_json=row.metrics or "",
        trace_id=trace_id(row.execution_id, row.job, row.tick),
        outputs_hidden=not shown,
    )


def deployment_message(row: DeploymentRow) -> deployments_pb2.Deployment:
    shown = shows_outputs(row.key)
    return deployments_pb2.Deployment(
        key=row.key,
        namespace=row.namespace,
        module=row.module,
        digest=row.digest,
        active=row.min_replicas > 0,
        min_replicas=row.min_replicas,
        created_at=timestamp(row.created_at),
        schema_text=row.schema_text if shown else _without_payloads(row.schema_text),
        outputs_hidden=not shown,
        runners=row.runners,
        jobs=row.jobs,
        activated_at=timestamp(row.activated_at),
        deactivated_at=timestamp(row.deactivated_at),
    )


def _without_payloads(schema_text: str) -> str:
    return "\n".join(line for line in schema_text.split("\n") if not line.lstrip().startswith(_PAYLOAD_LINE))


def runner_message(row: RunnerRow) -> cluster_pb2.Runner:
    return cluster_pb2.Runner(
        id=row.runner_id,
        hostname=row.hostname,
        pid=row.pid,
        started_at=timestamp(row.started_at),
        last_seen_at=timestamp(row.last_seen_at),
        deployments=row.deployments,
        alive=row.alive,
        left_at=timestamp(row.left_at),
        sync_places=row.sync_places,
        async_places=row.async_places,
    )
