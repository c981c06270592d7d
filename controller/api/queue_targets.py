"""A job whose target is a queue, as a caller asks for it: its module and verb, and what it can't have."""

from collections.abc import Iterable

from cronring.controller.api.problems import Violations
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.module import Module, Verb
from cronring.schema.policy_model import CONSUMED, Policy
from cronring.schema.queues import (
    DEFAULT_NAME,
    WORKSPACE,
    module_of_queue,
    queue_fault,
    queue_of,
    verb_of_workspace,
    workspace_fault,
    workspace_of,
)


def targeted(request: jobs_pb2.CreateJobRequest) -> jobs_pb2.CreateJobRequest:
    """The request with the module and verb of its queue's jobs. If it names a module or verb, it stays as it is."""
    if not request.HasField("queue") or request.module or request.verb:
        return request
    found = jobs_pb2.CreateJobRequest()
    found.CopyFrom(request)
    found.module = module_of_queue(request.queue.queue)
    found.verb = verb_of_workspace(request.queue.workspace)
    found.name = request.name or DEFAULT_NAME
    return found


def all_targeted(requests: Iterable[jobs_pb2.CreateJobRequest]) -> list[jobs_pb2.CreateJobRequest]:
    return list(map(targeted, requests))


def target_faults(request: jobs_pb2.CreateJobRequest) -> list[tuple[str, str | None]]:
    """Of a request for a queue's job: what is wrong with its names, field by field."""
    target = request.queue
    given = [(name, getattr(request, name)) for name in ("module", "verb")]
    own = {module_of_queue(target.queue), verb_of_workspace(target.workspace)}
    beside: list[tuple[str, str | None]] = [
        (name, "the job's target is a queue; leave it out, or leave out the queue") for name, text in given
        if text not in own
    ]  # fmt: skip
    return [
        *beside,
        ("queue.queue", queue_fault(target.queue)),
        ("queue.workspace", workspace_fault(target.workspace)),
    ]


def check_queue_spec(
    module: Module, spec: jobs_pb2.JobSpec, policy: Policy, fields: Iterable[str], problems: Violations
) -> None:
    """Report fields that only make sense for runs. `fields`: the fields of the spec that are set."""
    if not queue_of(module.name):
        return
    if "on_disconnect" in fields and spec.on_disconnect:
        problems.append(("spec.on_disconnect", "is about runners, and a message needs none; leave it out"))
    if "timeout_ms" in fields and spec.HasField("timeout_ms") and policy.completes != CONSUMED:
        message = "is how long its consumer may take, and nobody awaits that; leave it out, or write completes=consumed"
        problems.append(("spec.timeout_ms", message))


def with_workspace(module: Module, verb: Verb, labels: dict[str, str], problems: Violations) -> dict[str, str]:
    """The labels, with the label of the workspace, by which its jobs are found. A verb's job keeps its labels."""
    if not queue_of(module.name):
        return labels
    workspace = workspace_of(verb.name)
    given = labels.get(WORKSPACE, workspace)
    if given != workspace:
        said = f"{workspace!r}" if workspace else "none"
        message = f"is {given!r}, and the job's workspace is {said}, as its key says; make another job"
        problems.append((f"spec.labels.{WORKSPACE}", message))
    return labels | {WORKSPACE: workspace} if workspace else labels
