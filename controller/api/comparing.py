"""Two versions of a module side by side: what a change from one to the other does to ticks."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from cronring.controller.api.paging import PAGE_SIZE_MAX
from cronring.controller.api.set_answers import COMPARED_OF_ALL, ticks_message
from cronring.controller.errors import Conflict
from cronring.controller.ports.reads import DeploymentFilter, DeploymentRow, JobFilter, Reads
from cronring.protos.cronring.v1 import deployments_pb2
from cronring.protos.instants import timestamp
from cronring.schema.diff import diff_modules
from cronring.schema.forecast import forecast
from cronring.schema.module import Module
from cronring.schema.text import SchemaError, parse_module

DAYS_DEFAULT: Final = 7
DAYS_MAX: Final = 366
_DAY_US: Final = 86_400_000_000


async def compared(
    reads: Reads, row: DeploymentRow, other: DeploymentRow | None, days: int
) -> deployments_pb2.CompareDeploymentsResponse:
    """From `other` (None: from nothing) to `row`. Raises Conflict for a schema that this release can't read."""
    now = await reads.database_now()
    active = other is not None and other.min_replicas > 0
    anchors = await _anchors(reads, row) if active else {}
    return await asyncio.to_thread(_answer, row, other, now, now + days * _DAY_US, anchors)


async def active_of(reads: Reads, row: DeploymentRow) -> DeploymentRow | None:
    """The active version of the same module."""
    rows = await reads.list_deployments(DeploymentFilter(row.namespace, row.module, active_only=True), 0, 1)
    return rows[0] if rows else None


async def _anchors(reads: Reads, row: DeploymentRow) -> dict[str, int]:
    """Where the intervals of declared jobs count from, by verb."""
    anchors: dict[str, int] = {}
    where, after = JobFilter(namespace=row.namespace, module=row.module), ""
    while True:
        jobs = await reads.list_jobs(where, after, PAGE_SIZE_MAX)
        for job in jobs:
            if job.source != "api" and job.spec.anchor is not None:
                anchors[job.verb] = job.spec.anchor
        if len(jobs) < PAGE_SIZE_MAX:
            return anchors
        after = jobs[-1].key


def _answer(
    row: DeploymentRow, other: DeploymentRow | None, now: int, until: int, anchors: Mapping[str, int]
) -> deployments_pb2.CompareDeploymentsResponse:
    """Takes long for 10,000 verbs, so it runs in a thread."""
    new, old = _read(row), None if other is None else _read(other)
    verbs = list(_differences(old, new, now, until, anchors))
    differing = [each for each in verbs if each.change != "same" or each.changed_fields]
    return deployments_pb2.CompareDeploymentsResponse(
        key=row.key, from_key="" if other is None else other.key, verbs=differing, same=len(verbs) - len(differing),
        from_at=timestamp(now), until_at=timestamp(until),
    )  # fmt: skip


def _differences(
    old: Module | None, new: Module, now: int, until: int, anchors: Mapping[str, int]
) -> Iterator[deployments_pb2.VerbDifference]:
    changed = () if old is None else diff_modules(old, new).changed
    fields = {verb.name: [field.field for field in verb.fields] for verb in changed}
    for job in forecast(old, new, now, until, anchors, COMPARED_OF_ALL):
        yield deployments_pb2.VerbDifference(
            verb=job.verb, change=job.change, ticks=ticks_message(job), changed_fields=fields.get(job.verb, [])
        )


def _read(row: DeploymentRow) -> Module:
    """Raises Conflict."""
    try:
        return parse_module(row.schema_text)
    except SchemaError as error:
        raise Conflict(
            f"the schema of {row.key} can't be read: {error}; ask a controller of a newer release"
        ) from error
