"""Filters of lists as the API takes them, and what comes of them."""

from datetime import datetime
from typing import NamedTuple

from cronring.client.convert import timestamp
from cronring.client.model import Execution
from cronring.protos.cronring.v1 import executions_pb2, jobs_pb2
from cronring.schema.filters import ExecutionQuery, JobQuery
from cronring.schema.instant import from_us


class ExecutionsFound(NamedTuple):
    """`looked_to`: the tick down to which all were looked at, and not further; None: there are no more, or enough."""

    rows: list[Execution]
    looked_to: datetime | None


class ExecutionsCounted(NamedTuple):
    """`at_least`: there may be more, which were not looked at."""

    executions: int
    at_least: bool


def execution_filter(query: ExecutionQuery) -> executions_pb2.ExecutionFilter:
    """Without how it is sorted: a request says that beside it."""
    return executions_pb2.ExecutionFilter(
        job=query.job, namespace=query.namespace, module=query.module, verb=query.verb, runner=query.runner,
        labels=query.labels, outcomes=query.outcomes, since=timestamp(_moment(query.since)),
        until=timestamp(_moment(query.until)),
    )  # fmt: skip


def job_filter(query: JobQuery) -> jobs_pb2.JobFilter:
    """Without how it is sorted: a request says that beside it."""
    return jobs_pb2.JobFilter(
        namespace=query.namespace, module=query.module, verb=query.verb, labels=query.labels,
        statuses=query.statuses, outcomes=query.outcomes, contains=query.contains,
    )  # fmt: skip


def _moment(instant_us: int | None) -> datetime | None:
    return None if instant_us is None else from_us(instant_us)
