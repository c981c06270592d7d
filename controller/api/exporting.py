"""Jobs as a file declares them, without values that their verbs and the cluster give them anyway."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from cronring.controller.api.filters import job_filter
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.lookup import find_module_of, find_verb
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import name
from cronring.controller.api.scope import namespaces
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.reads import JobFilter, JobRow, Reads
from cronring.controller.ports.sets import Sets
from cronring.protos.cronring.v1 import jobs_pb2, sets_pb2
from cronring.protos.jobs import encode_spec
from cronring.schema.identity import Permission
from cronring.schema.job import JobSpec
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import Module, Verb
from cronring.schema.policy import newer, parse_policy, unread_fields
from cronring.schema.queues import queue_of, workspace_of
from cronring.schema.schedule import is_interval
from cronring.schema.spread import has_default_jitter

_AT_ONCE: Final = 200  # with their payloads, of 64 KiB at most
_SECOND_US: Final = 1_000_000


async def exported(
    request: sets_pb2.ExportJobsRequest, reads: Reads, sets: Sets, defaults: Defaults
) -> AsyncIterator[jobs_pb2.CreateJobRequest]:
    """The jobs that no module declares. Raises InvalidRequest, Forbidden, Conflict."""
    where = job_filter(request.filter)
    set_name = name("set_name", request.set_name)
    if set_name and any(where._replace(namespace="")):
        raise InvalidRequest([("set_name", "excludes the filter's other fields than namespace; leave them out")])
    if set_name:
        where = where._replace(namespace=where.namespace or DEFAULT_NAMESPACE)
    where = where._replace(namespaces=namespaces(Permission.OUTPUTS, where.namespace))
    modules: dict[tuple[str, str], Module | None] = {}
    pages = _of_set(sets, where.namespace, set_name) if set_name else _matching(reads, where)
    async for keys in pages:
        for row in sorted(await reads.get_jobs(keys), key=lambda row: row.key):
            if row.source == "api":
                yield _item(row, await _verb(reads, row, modules), defaults)


async def _of_set(sets: Sets, namespace: str, set_name: str) -> AsyncIterator[list[str]]:
    after = ""
    while keys := await sets.set_keys(namespace, set_name, after, _AT_ONCE):
        yield keys
        after = keys[-1]


async def _matching(reads: Reads, where: JobFilter) -> AsyncIterator[list[str]]:
    after = 0
    while found := await reads.find_jobs(where, after, _AT_ONCE):
        yield [key for _, key in found]
        after = found[-1][0]


async def _verb(reads: Reads, row: JobRow, modules: dict[tuple[str, str], Module | None]) -> Verb | None:
    """The verb by which the job would be made now; None: its module isn't active, so it can't be made."""
    of = row.module, row.deployment if row.orphaned_at else row.namespace
    try:
        if of not in modules:
            modules[of] = await find_module_of(reads, row)
        module = modules[of]
        return None if module is None else find_verb(module, row.verb)
    except NotFound:
        modules.setdefault(of, None)
        return None


def _item(row: JobRow, verb: Verb | None, defaults: Defaults) -> jobs_pb2.CreateJobRequest:
    """Raises Conflict for what a newer release has set."""
    if unread_fields(row.spec.policy):
        raise Conflict(f"{row.key}: {newer(row.spec.policy)}")
    item = jobs_pb2.CreateJobRequest(
        namespace=row.namespace, name=row.key.rpartition(":")[2], spec=encode_spec(_said(row.spec, verb, defaults))
    )
    if queue := queue_of(row.module):
        item.queue.CopyFrom(jobs_pb2.QueueTarget(queue=queue, workspace=workspace_of(row.verb)))
    else:
        item.module, item.verb = row.module, row.verb
    return item


def _said(spec: JobSpec, verb: Verb | None, defaults: Defaults) -> JobSpec:
    """The spec without values that the job would have anyway."""
    policy = parse_policy(spec.policy)
    if has_default_jitter(spec.schedule, spec.policy, defaults.jitter):
        policy = replace(policy, jitter="")
    anchor = (spec.anchor or 0) // _SECOND_US * _SECOND_US if is_interval(spec.schedule) else None
    said = spec._replace(policy=policy.text, anchor=anchor)
    if verb is not None and spec.timeout_ms == verb.timeout_ms:
        said = said._replace(timeout_ms=0)
    if verb is not None and spec.on_disconnect == verb.on_disconnect:
        said = said._replace(on_disconnect="")
    return said
