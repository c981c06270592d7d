"""What a caller wants of a job, judged field by field, as the store takes it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from cronring.controller.api.lookup import suggestion
from cronring.controller.api.payloads import canonical_payload, payload_violations
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.queue_targets import check_queue_spec, with_workspace
from cronring.controller.api.requests import instant
from cronring.controller.ports.many import JobChange, NewJob, Seen
from cronring.controller.ports.reads import JobRow
from cronring.protos.cronring.v1 import jobs_pb2, schedules_pb2
from cronring.protos.jobs import spec_said
from cronring.protos.modules import raw_policy
from cronring.protos.unknown import unknown_fields
from cronring.schema.job import JobSpec
from cronring.schema.labels import label_faults
from cronring.schema.module import Module, Verb
from cronring.schema.newer import newer_job
from cronring.schema.policy import (
    FIELDS,
    Policy,
    RawValue,
    Reading,
    newer,
    parse_policy,
    policy_faults,
    read_each,
    unread_fields,
)
from cronring.schema.queues import queue_of
from cronring.schema.schedule import ScheduleError, check_schedule, is_interval, reads_schedule
from cronring.schema.spread import has_default_jitter, stored_policy
from cronring.schema.validate import ON_DISCONNECT, timeout_fault

_SCHEDULE: Final = 'a pattern like "0 6 1 * *", "every 30m", "at 2026-03-01T08:00:00Z", or "manual"'
POLICY_PATHS: Final = tuple(f"policy.{field.name}" for field in FIELDS)
SPEC_PATHS: Final = JobSpec._fields
LABEL: Final = "labels."
PROBLEMS_MAX: Final = 20  # of paths that name nothing


class Defaults(NamedTuple):
    """The cluster's values for jobs that state none, and whose verbs state none."""

    timeout_ms: int
    jitter: str


def new_job(request: jobs_pb2.CreateJobRequest, module: Module, verb: Verb, defaults: Defaults) -> NewJob:
    """The job that is asked for. Raises InvalidRequest with everything that is wrong with its spec."""
    spec, problems = request.spec, Violations()
    reading = read_policy(raw_policy(spec.policy), problems)
    policy = reading.policy
    schedule = read_schedule(spec.schedule, policy.timezone, problems)
    problems += contradictions(reading, schedule, of_queue=bool(queue_of(module.name)))
    anchor = read_anchor(spec, schedule, problems)
    needed = request.run_now or _runs(schedule, policy)
    problems += payload_violations("spec.payload", module, verb, spec.payload, needed)
    labels = with_workspace(module, verb, read_labels(spec.labels, problems), problems)
    check_running(spec, problems)
    check_queue_spec(module, spec, policy, SPEC_PATHS, problems)
    check_known(spec, problems)
    if problems:
        raise InvalidRequest(problems)
    return NewJob(
        namespace=module.namespace,
        module=module.name,
        verb=verb.name,
        name=request.name,
        spec=spec_said(
            spec,
            **_running(spec, verb, defaults),
            schedule=schedule,
            anchor=anchor,
            policy=stored_policy(schedule, policy.text, defaults.jitter),
            labels=labels,
            payload=canonical_payload(spec.payload),
        ),
        template=request.template,
        run_now=request.run_now,
    )


def _running(spec: jobs_pb2.JobSpec, verb: Verb, defaults: Defaults) -> dict[str, Any]:
    """The spec's values, else the verb's. A timeout that neither states is negative, so that this is known: JobSpec."""
    return {
        "timeout_ms": spec.timeout_ms or verb.timeout_ms or -defaults.timeout_ms,
        "on_disconnect": spec.on_disconnect or verb.on_disconnect,
    }


def job_change(
    request: jobs_pb2.UpdateJobRequest, row: JobRow, module: Module, verb: Verb, defaults: Defaults
) -> JobChange:
    """The fields that the mask names, judged together with those that stay. Raises InvalidRequest."""
    spec, problems = request.spec, Violations()
    paths = read_mask("update_mask", request.update_mask.paths, problems)
    if not paths:
        problems.append(("update_mask", f"names nothing to set; it may name {', '.join(SPEC_PATHS)}, policy.retries"))
    fields = {path.partition(".")[0] for path in paths}
    reading = _changed_policy(spec, row, paths, defaults, problems)
    policy, schedule = reading.policy, row.spec.schedule
    if "schedule" in fields:
        schedule = read_schedule(spec.schedule, policy.timezone, problems)
    if "schedule" not in fields and not reads_schedule(schedule):
        if fields & {"policy", "anchor"}:
            problems.append(("update_mask", f"names less than the schedule: {newer_job(schedule, '')}"))
    elif fields & {"schedule", "policy"}:
        problems += contradictions(reading, schedule, of_queue=bool(queue_of(module.name)))
    anchor = read_anchor(spec, schedule, problems) if "anchor" in fields else None
    if fields & {"schedule", "payload"} or "policy" in paths or "policy.after" in paths:
        payload = spec.payload if "payload" in fields else row.spec.payload
        problems += payload_violations("spec.payload", module, verb, payload, _runs(schedule, policy))
    labels = with_workspace(module, verb, changed_labels(spec, row.spec.labels, paths, problems), problems)
    check_running(spec, problems)
    check_queue_spec(module, spec, policy, fields, problems)
    check_known(spec, problems)
    if problems:
        raise InvalidRequest(problems)
    wanted = spec_said(
        spec,
        **_running(spec, verb, defaults),
        schedule=schedule,
        anchor=anchor,
        policy=stored_policy(schedule, policy.text, defaults.jitter),
        labels=labels,
        payload=canonical_payload(spec.payload) if "payload" in fields else "",
    )
    # With another schedule, the cluster's default jitter may be another one. So the policy is written too.
    names = fields | {"policy"} if "schedule" in fields else fields
    return JobChange(wanted, tuple(sorted(names)), Seen(row.job_id, row.deployment, row.spec))


def read_mask(field: str, paths: Iterable[str], problems: Violations, more: tuple[str, ...] = ()) -> list[str]:
    """The paths, where every one names something that can be set: of a spec, or one of `more`."""
    known = (*more, *SPEC_PATHS, *POLICY_PATHS)
    found = list(dict.fromkeys(paths))
    for path in found:
        if len(problems) >= PROBLEMS_MAX:
            break
        if path not in known and not (path.startswith(LABEL) and path != LABEL):
            problems.append((field, f"there is nothing named {path!r:.120} to set{suggestion(path, known)}"))
    return found


def read_schedule(text: str, timezone: str, problems: Violations) -> str:
    """The canonical text; "" when it is none. `timezone`: of an instant that names no offset."""
    if not text:
        problems.append(("spec.schedule", f"is empty; it must be {_SCHEDULE}"))
        return ""
    try:
        return check_schedule(text, timezone)
    except ScheduleError as error:
        problems.append(("spec.schedule", str(error)))
        return ""


def read_policy(raw: dict[str, RawValue], problems: Violations) -> Reading:
    """The policy; every field that is wrong is named, and left out."""
    reading = read_each(raw)
    problems += [(f"spec.policy.{error.field}", error.told(raw[error.field])) for error in reading.errors]
    return reading


def _changed_policy(
    spec: jobs_pb2.JobSpec, row: JobRow, paths: list[str], defaults: Defaults, problems: Violations
) -> Reading:
    asked = raw_policy(spec.policy)
    if "policy" in paths:
        return read_policy(asked, problems)
    policy = parse_policy(row.spec.policy)
    if has_default_jitter(row.spec.schedule, row.spec.policy, defaults.jitter):
        policy = replace(policy, jitter="")
    names = [path.partition(".")[2] for path in paths if path in POLICY_PATHS]
    if unread_fields(row.spec.policy) and (names or "schedule" in paths):
        problems.append(("update_mask", f"names less than the job's policy: {newer(row.spec.policy)}"))
    if not names:
        return Reading(policy, ())
    raw = {name: value for name, value in policy.raw().items() if name not in names}
    return read_policy(raw | {name: asked[name] for name in names if name in asked}, problems)


def contradictions(reading: Reading, schedule: str, *, of_queue: bool = False) -> Violations:
    """Contradictions between policy and schedule. `schedule` "": it is wrong by itself, so nothing is compared."""
    faults = policy_faults(reading.policy, schedule, reading.unread, of_queue=of_queue) if schedule else []
    return [(f"spec.policy.{field}", message) for field, message in faults]


def read_anchor(
    spec: jobs_pb2.JobSpec | schedules_pb2.ExplainScheduleRequest, schedule: str, problems: Violations
) -> int | None:
    if not spec.HasField("anchor"):
        return None
    if schedule and not is_interval(schedule):
        problems.append(("spec.anchor", "only an interval, like `every 6h`, counts from an anchor; leave it out"))
    anchor = instant("spec.anchor", spec.anchor)
    if anchor % 1_000_000:
        problems.append(("spec.anchor", "ticks are on whole seconds, so the anchor is on one too"))
    return anchor


def read_labels(labels: Mapping[str, str], problems: Violations) -> dict[str, str]:
    found = dict(labels)
    problems += [(f"spec.labels.{key}" if key else "spec.labels", fault) for key, fault in label_faults(found)]
    return found


def changed_labels(
    spec: jobs_pb2.JobSpec, there: Mapping[str, str], paths: Sequence[str], problems: Violations
) -> dict[str, str]:
    """`there`, but for the labels that `paths` name."""
    if "labels" in paths:
        return read_labels(spec.labels, problems)
    keys = [path.removeprefix(LABEL) for path in paths if path.startswith(LABEL)]
    if not keys:
        return dict(there)
    kept = {key: value for key, value in there.items() if key not in keys}
    return read_labels(kept | {key: spec.labels[key] for key in keys if key in spec.labels}, problems)


def check_known(spec: jobs_pb2.JobSpec, problems: Violations) -> None:
    """Refuses fields of a newer client that this release doesn't know: else the answer would claim they were set."""
    problems += [(f"spec.{path}" if path else "spec", message) for path, message in unknown_fields(spec)]


def check_running(spec: jobs_pb2.JobSpec, problems: Violations) -> None:
    fault = timeout_fault(spec.timeout_ms, "the verb's") if spec.HasField("timeout_ms") else None
    if fault is not None:
        problems.append(("spec.timeout_ms", fault))
    if spec.on_disconnect and spec.on_disconnect not in ON_DISCONNECT:
        problems.append(("spec.on_disconnect", f"is {spec.on_disconnect!r:.120}; it must be 'stop' or 'finish'"))


def _runs(schedule: str, policy: Policy) -> bool:
    """Whether runs begin without anybody giving a payload."""
    return schedule not in {"", "manual"} or bool(policy.after)
