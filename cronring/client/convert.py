"""Protobuf messages to the client's values."""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.client import model, versions
from cronring.client.errors import Invalid
from cronring.client.payloads import JsonText, json_text
from cronring.protos.cronring.v1 import (
    cluster_pb2,
    deployments_pb2,
    executions_pb2,
    jobs_pb2,
    schema_pb2,
    templates_pb2,
)
from cronring.protos.modules import raw_policy
from cronring.schema.policy_model import FIELDS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value", bound="DataclassInstance")

_OF_KIND: Final[dict[str, Callable[[Any], object]]] = {"text": str, "count": int, "names": list}
_POLICY_KINDS: Final = {each.name: _OF_KIND[each.kind] for each in FIELDS}

_KINDS = {
    jobs_pb2.JobEvent.KIND_PRESENT: model.JobEventKind.PRESENT,
    jobs_pb2.JobEvent.KIND_LISTED: model.JobEventKind.LISTED,
    jobs_pb2.JobEvent.KIND_CHANGED: model.JobEventKind.CHANGED,
    jobs_pb2.JobEvent.KIND_REMOVED: model.JobEventKind.REMOVED,
}


def instant(stamp: Timestamp) -> datetime | None:
    """None for a Timestamp that was never set (1970 itself is no instant of ours)."""
    if stamp.seconds == 0 and stamp.nanos == 0:
        return None
    return datetime.fromtimestamp(stamp.seconds, UTC).replace(microsecond=stamp.nanos // 1000)


def timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment.astimezone(UTC).replace(tzinfo=None))
    return stamp


def _read(message: Any, names: Iterable[str]) -> dict[str, Any]:
    """Fields of a message that its value has by the same names."""
    values = ((name, getattr(message, name)) for name in names)
    return {name: _plain(name, value) for name, value in values}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Timestamp):
        return instant(value)
    return JsonText(value) if name == "payload" else value


def alike(kind: type[Value], message: Message) -> Value:
    """A value whose fields are all in the message, by the same names."""
    return kind(**_read(message, (each.name for each in fields(kind))))


def _alike(value: type[Any], message: type[Message]) -> tuple[str, ...]:
    """What a value and its message have by one name; the others are named where one is made of the other."""
    return tuple(each.name for each in fields(value) if each.name in message.DESCRIPTOR.fields_by_name)


_SPEC: Final = _alike(model.JobSpec, jobs_pb2.JobSpec)
_JOB: Final = _alike(model.Job, jobs_pb2.Job)
_EXECUTION: Final = _alike(model.Execution, executions_pb2.Execution)


def job(message: jobs_pb2.Job) -> model.Job:
    values = _read(message, _JOB) | _spec_of(message)
    values |= {
        "last_outcome": message.last_outcome or None,
        "last_lateness_ms": message.last_lateness_ms if values["last_started_at"] is not None else None,
        "running_execution_id": message.running_execution_id or None,
        "skipped": {each.reason: each.ticks for each in message.skipped},
        "paused": pause(message.paused) if message.HasField("paused") else None,
        "cancelled": cancellation(message.cancelled) if message.HasField("cancelled") else None,
        "orphaned_at": instant(message.orphaned.at) if message.HasField("orphaned") else None,
        "queue": message.queue.queue,
        "workspace": message.queue.workspace,
    }
    return model.Job(**values)


def _spec_of(message: jobs_pb2.Job | jobs_pb2.JobSpec) -> dict[str, Any]:
    """What somebody wants of a job."""
    return _read(message, _SPEC) | {"policy": raw_policy(message.policy), "labels": dict(message.labels)}


def spec(message: jobs_pb2.JobSpec) -> model.JobSpec:
    values = _spec_of(message)
    return model.JobSpec(**values | {"timeout_ms": message.timeout_ms if message.HasField("timeout_ms") else None})


def job_spec(spec: model.JobSpec) -> jobs_pb2.JobSpec:
    """Raises Invalid for a policy that is none of cronring's, or a payload that JSON hasn't. Controllers judge more."""
    unknown = [name for name in spec.policy if name not in _POLICY_KINDS]
    if unknown:
        raise Invalid(f"there is no policy {unknown[0]!r}; there are {', '.join(_POLICY_KINDS)}")
    given = {name: value for name, value in spec.policy.items() if value != ""}  # empty: unset, if its path is named
    raw: dict[str, Any] = {name: _POLICY_KINDS[name](value) for name, value in given.items()}
    values: dict[str, Any] = {name: getattr(spec, name) for name in _SPEC}
    values |= {
        "policy": schema_pb2.Policy(**raw), "anchor": timestamp(spec.anchor), "payload": json_text(spec.payload),
    }  # fmt: skip
    return jobs_pb2.JobSpec(**values)


def template(message: templates_pb2.Template) -> model.Template:
    return model.Template(
        namespace=message.namespace,
        name=message.name,
        description=message.description,
        spec=spec(message.spec),
        schedule_words=message.schedule_words,
        created_at=instant(message.created_at),
        created_by=message.created_by,
        changed_at=instant(message.changed_at),
        changed_by=message.changed_by,
        revision=message.revision,
        jobs=message.jobs,
        unchanged=message.unchanged,
        etag=message.etag,
    )


def pause(message: jobs_pb2.Pause) -> model.Pause:
    return model.Pause(instant(message.at), message.by, message.note, instant(message.until))


def cancellation(message: jobs_pb2.Cancellation) -> model.Cancellation:
    return model.Cancellation(instant(message.at), message.by, message.note)


def skipped_tick(message: jobs_pb2.SkipNextTickResponse) -> model.SkippedTick:
    return model.SkippedTick(job(message.job), instant(message.tick), message.skipped)


def progress(message: jobs_pb2.ControlJobsProgress) -> model.Progress:
    return model.Progress(
        message.key, message.done, message.problem, message.position, message.total, message.unchanged,
        json.loads(message.details) if message.details else {},
    )  # fmt: skip


def action(message: jobs_pb2.Action) -> model.Action:
    return model.Action(
        message.id, instant(message.at), message.job, message.deployment, message.execution_id or None, message.action,
        message.actor, message.note, json.loads(message.details) if message.details else {}, message.template,
    )  # fmt: skip


def activation(message: jobs_pb2.Activation) -> model.Activation:
    return model.Activation(
        id=message.id,
        job=message.job,
        trigger=message.trigger,
        tick=instant(message.tick),
        until_tick=instant(message.until_tick),
        ticks_left=message.ticks_left,
        attempt=message.attempt,
        run_at=instant(message.run_at),
        payload=JsonText(message.payload),
        payload_of=message.payload_of,
        outputs_hidden=message.outputs_hidden,
        beside=message.beside,
        execution_id=message.execution_id,
    )


def backfill(message: jobs_pb2.BackfillJobResponse) -> model.Backfill:
    return model.Backfill(
        ticks=message.ticks,
        first_ticks=tuple(
            model.BackfillTick(instant(each.tick), each.execution_id or None, each.outcome or None, each.completed)
            for each in message.first_ticks
        ),
        activation=activation(message.activation) if message.HasField("activation") else None,
    )


def job_event(message: jobs_pb2.JobEvent) -> model.JobEvent:
    kind = _KINDS[message.kind]
    return model.JobEvent(kind, None if kind is model.JobEventKind.LISTED else job(message.job))


def execution(message: executions_pb2.Execution) -> model.Execution:
    values = _read(message, _EXECUTION)
    values |= {
        "outcome": message.outcome or None,
        "lateness_ms": None if values["started_at"] is None else message.lateness_ms,
        "duration_ms": message.duration_ms if message.outcome else None,
        "cpu_ms": message.cpu_ms if message.HasField("cpu_ms") else None,
        "memory_peak_bytes": message.memory_peak_bytes or None,
        "metrics": json.loads(message.metrics_json) if message.metrics_json else {},
    }
    return model.Execution(**values)


def deployment(message: deployments_pb2.Deployment) -> versions.Deployment:
    return versions.Deployment(
        key=message.key,
        namespace=message.namespace,
        module=message.module,
        digest=message.digest,
        active=message.active,
        min_replicas=message.min_replicas,
        created_at=instant(message.created_at),
        runners=message.runners,
        jobs=message.jobs,
        schema_text=message.schema_text,
        activated_at=instant(message.activated_at),
        deactivated_at=instant(message.deactivated_at),
        etag=message.etag,
    )


def activated(message: deployments_pb2.ActivateDeploymentResponse) -> versions.Activated:
    return versions.Activated(
        deployment=deployment(message.deployment),
        activated=message.activated,
        previous=deployment(message.previous) if message.HasField("previous") else None,
        previous_running=message.previous_running,
        jobs_added=tuple(message.jobs_added),
        jobs_removed=tuple(message.jobs_removed),
        jobs_carried_over=tuple(message.jobs_carried_over),
        jobs_orphaned=tuple(message.jobs_orphaned),
        jobs_back=tuple(message.jobs_back),
    )


def deployed(message: deployments_pb2.CreateDeploymentResponse) -> versions.Deployed:
    return versions.Deployed(
        deployment=deployment(message.deployment),
        created=message.created,
        jobs_added=tuple(message.jobs_added),
        jobs_removed=tuple(message.jobs_removed),
        jobs_carried_over=tuple(message.jobs_carried_over),
        jobs_orphaned=tuple(message.jobs_orphaned),
        jobs_back=tuple(message.jobs_back),
        jobs_misfit=tuple(versions.Misfit(each.job, tuple(each.faults)) for each in message.jobs_misfit),
    )


def killed(message: deployments_pb2.KillDeploymentResponse) -> versions.Killed:
    return versions.Killed(deployment(message.deployment), tuple(message.jobs_removed), tuple(message.jobs_orphaned))


def member(message: cluster_pb2.Member) -> model.Member:
    return model.Member(
        id=message.id,
        grpc_address=message.grpc_address,
        http_address=message.http_address,
        status=message.status,
        incarnation=message.incarnation,
        share=message.share,
        primary_slots=message.primary_slots,
        backup_slots=message.backup_slots,
        lease_expires_at=instant(message.lease_expires_at),
        pid=message.pid,
        version=message.version,
        started_at=instant(message.started_at),
        drill_until=instant(message.drill_until),
    )


def runner(message: cluster_pb2.Runner) -> model.Runner:
    return model.Runner(
        id=message.id,
        hostname=message.hostname,
        pid=message.pid,
        started_at=instant(message.started_at),
        last_seen_at=instant(message.last_seen_at),
        deployments=tuple(message.deployments),
        alive=message.alive,
        left_at=instant(message.left_at) if message.HasField("left_at") else None,
        sync_places=message.sync_places,
        async_places=message.async_places,
    )


def cluster(message: cluster_pb2.GetClusterResponse) -> model.Cluster:
    return model.Cluster(
        answered_by=message.answered_by,
        members=tuple(member(each) for each in message.members),
        runners=tuple(runner(each) for each in message.runners),
        database_time=instant(message.database_time),
        clock_offset_ms=message.clock_offset_ms,
        ring_digest=message.ring_digest,
        console_url=message.console_url,
        trace_url_template=message.trace_url_template,
        cluster_id=message.cluster_id,
    )


def ring(message: cluster_pb2.GetRingResponse) -> model.Ring:
    return model.Ring(tuple(message.members), tuple(message.primary), tuple(message.backup), message.digest)


def owners(key: str, message: cluster_pb2.GetOwnersResponse) -> model.Owners:
    return model.Owners(key, message.slot, message.primary or None, message.backup or None, message.third or None)
