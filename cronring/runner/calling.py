"""Calls of verbs between what a child says (cronring/jobs.py), what controllers take, and what the child is told.

A verb's arguments come from the author's process as they are. What they may be is judged by controllers, as the API
judges requests; here only what has no place in a message is refused.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.protos.caps import faults
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.instants import instant_us, timestamp
from cronring.protos.modules import policy_message
from cronring.protos.problems import Reason
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.core.events import VerbAnswered
from cronring.runner.core.model import CallAnswer, CallId
from cronring.runner.lines import Asked
from cronring.schema.duration import DurationError, parse_duration
from cronring.schema.instant import InstantError, parse_instant
from cronring.schema.policy import read_each
from cronring.schema.policy_model import FIELDS
from cronring.schema.zone import ZoneError

_SHOWN: Final = 400
_POLICIES: Final = frozenset(field.name for field in FIELDS)


class UnfitCallError(ValueError):
    """What is asked for fits in no message. The text says what is wrong with it."""


def verb_call(asked: Asked) -> runner_pb2.VerbCall:
    """Raises UnfitCallError."""
    make = _REQUESTS.get(asked.method)
    if make is None:
        raise UnfitCallError(f"ctx.jobs has no method {asked.method!r:.60}")
    call = runner_pb2.VerbCall(execution_id=asked.execution_id, number=asked.number)
    try:
        getattr(call, asked.method).CopyFrom(make(asked.request))
    except UnfitCallError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise UnfitCallError(f"this call is none of this SDK's: {type(error).__name__}: {error}"[:_SHOWN]) from None
    # A controller would end the stream of a runner that sent more.
    for path, description in faults(call):
        raise UnfitCallError(f"{path.partition('.')[2]} {description}")
    return call


def unfit_answer(error: UnfitCallError) -> CallAnswer:
    return CallAnswer(reason=Reason.INVALID, problem=str(error))


def answer_of(message: runner_pb2.VerbAnswer) -> CallAnswer:
    """As a child is told."""
    if message.HasField("refusal"):
        refusal = message.refusal
        return CallAnswer("", refusal.reason or Reason.UNEXPECTED, refusal.problem, refusal.again)
    return CallAnswer(json.dumps(_job_fields(message.job) if message.HasField("job") else message.key))


def answered_from(address: str, message: runner_pb2.VerbAnswer) -> VerbAnswered:
    return VerbAnswered(address, CallId(message.execution_id, message.number), answer_of(message))


# The order of cronring.jobs.JobInfo doesn't matter: it is made by names.
def _job_fields(job: jobs_pb2.Job) -> dict[str, Any]:
    return {
        "key": job.key,
        "schedule": job.schedule,
        "status": job.status,
        "source": job.source,
        "paused": job.HasField("paused"),
        "next_tick_us": instant_us(job.next_tick) if job.HasField("next_tick") else None,
        "payload_json": job.payload,
        "labels": dict(job.labels),
        "template": job.template,
        "last_outcome": job.last_outcome,
    }


# Requests


def _create(said: Mapping[str, Any]) -> jobs_pb2.CreateJobRequest:
    namespace, _, short = said["verb"].rpartition("/")
    module, _, verb = short.partition(".")
    return jobs_pb2.CreateJobRequest(
        namespace=namespace, module=module, verb=verb, name=said["name"], spec=_spec(said),
        template=said.get("template", ""), run_now=said.get("run_now", False), note=said.get("note", ""),
    )  # fmt: skip


def _update(said: Mapping[str, Any]) -> jobs_pb2.UpdateJobRequest:
    return jobs_pb2.UpdateJobRequest(
        key=said["key"], spec=_spec(said), update_mask=FieldMask(paths=_paths(said)), note=said.get("note", "")
    )


def _paths(said: Mapping[str, Any]) -> list[str]:
    """What is to be set, or unset: what has no value."""
    options: Mapping[str, Any] = said.get("options", {})
    paths = [field for field in ("schedule", "anchor") if field in said]
    paths += [f"labels.{key}" for key in said.get("labels", {})]
    paths += [_PATHS.get(name, name) for name in options if name not in _POLICIES]
    return paths + [f"policy.{name}" for name in options if name in _POLICIES]


_PATHS: Final = {"timeout": "timeout_ms"}


def _spec(said: Mapping[str, Any]) -> jobs_pb2.JobSpec:
    options: dict[str, Any] = {name: value for name, value in said.get("options", {}).items() if value is not None}
    timezone = options.get("timezone", "")
    spec = jobs_pb2.JobSpec(
        schedule=said.get("schedule", ""),
        on_disconnect=options.pop("on_disconnect", ""),
        payload=json.dumps(options.pop("payload"), separators=(",", ":")) if "payload" in options else "",
        labels={key: value for key, value in said.get("labels", {}).items() if value is not None},
    )
    if "timeout" in options:
        spec.timeout_ms = _timeout_ms(options.pop("timeout"))
    if said.get("anchor") is not None:
        spec.anchor.CopyFrom(_instant("anchor", said["anchor"], timezone))
    reading = read_each(options)
    if reading.errors:
        faults = [f"{error.field}: {error.told(options.get(error.field))}" for error in reading.errors]
        raise UnfitCallError("; ".join(faults))
    policy = policy_message(reading.policy)
    if policy is not None:
        spec.policy.CopyFrom(policy)
    return spec


def _timeout_ms(text: str) -> int:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise UnfitCallError(f"timeout: {error}") from None


def _instant(field: str, text: str, timezone: str) -> Any:
    try:
        return timestamp(parse_instant(text, timezone))
    except (InstantError, ZoneError) as error:
        raise UnfitCallError(f"{field}: {error}") from None


def _trigger(said: Mapping[str, Any]) -> jobs_pb2.TriggerJobRequest:
    request = jobs_pb2.TriggerJobRequest(key=said["key"], note=said.get("note", ""))
    if "payload" in said:
        request.payload = json.dumps(said["payload"], separators=(",", ":"))
    return request


_REQUESTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "create": _create,
    "update": _update,
    "delete": lambda said: jobs_pb2.DeleteJobRequest(key=said["key"], note=said.get("note", "")),
    "pause": lambda said: jobs_pb2.PauseJobRequest(key=said["key"], note=said.get("note", "")),
    "resume": lambda said: jobs_pb2.ResumeJobRequest(key=said["key"], note=said.get("note", "")),
    "trigger": _trigger,
    "get": lambda said: jobs_pb2.GetJobRequest(key=said["key"]),
}
