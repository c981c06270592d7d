"""Between rows of PostgreSQL and the core's tuples. Column orders are those of sql/queries."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import asyncpg

from cronring.controller.core.model import Activation, Execution, Job
from cronring.schema.execution import Skipped, SkipReason, Trigger
from cronring.schema.job import JobSpec
from cronring.sql.records import Statement

T = TypeVar("T")

_EXECUTION_COLUMNS = 14
_ACTIVATION_COLUMNS = 8
_PLURALS: Final = {"policy": "policies", "timeout_ms": "timeouts_ms"}


def job_of(record: asyncpg.Record, first: int = 0) -> Job:
    """The job in the columns from `first` on."""
    return Job._make(record[first : first + len(Job._fields)])


def execution_of(record: asyncpg.Record) -> Execution:
    """The execution, with its job in the columns behind it."""
    return Execution(record[0], job_of(record, _EXECUTION_COLUMNS), *record[1:_EXECUTION_COLUMNS])


def activation_of(record: asyncpg.Record, first: int = 0) -> Activation:
    """The activation in the columns from `first` on, with its job after it."""
    job_first = first + _ACTIVATION_COLUMNS
    activation_id, tick, until_tick, attempt, trigger, run_at, payload, beside = record[first:job_first]
    job = job_of(record, job_first)
    return Activation(activation_id, job, tick, until_tick, attempt, Trigger(trigger), run_at, payload, beside)


def spec_of(columns: Sequence[Any]) -> JobSpec:
    """The spec of these columns, which are in the order of its fields. The payload may be missing."""
    spec = JobSpec(*columns)
    return spec._replace(labels=json.loads(str(spec.labels)))


def spec_columns(spec: JobSpec) -> dict[str, Any]:
    """Parameters of a statement that writes a job, or a template."""
    return spec._asdict() | {"labels": json.dumps(dict(spec.labels))}


def specs_columns(statement: type[Statement], specs: Sequence[JobSpec]) -> dict[str, Any]:
    """The parameters that a statement takes of many specs, as parallel arrays."""
    columns = dict(zip(map(_plural, JobSpec._fields), zip(*specs, strict=True), strict=True))
    return {name: column for name, column in columns.items() if name in statement.__annotations__}


def _plural(field: str) -> str:
    return _PLURALS.get(field, f"{field}s")


class SkipColumns(NamedTuple):
    """Ranges of ticks, as parallel arrays."""

    reasons: list[SkipReason]
    first_ticks: list[int]
    last_ticks: list[int]
    tick_counts: list[int]


def skip_columns(skips: list[Skipped]) -> SkipColumns:
    return SkipColumns(
        [skipped.reason for skipped in skips],
        [skipped.first_tick for skipped in skips],
        [skipped.last_tick for skipped in skips],
        [skipped.ticks for skipped in skips],
    )


def count_ticks(counts: Counter[str], ranges: Iterable[Skipped]) -> None:
    """Add the ticks of these ranges, by reason."""
    for part in ranges:
        counts[part.reason.value] += part.ticks


def storable(text: str) -> str:
    """A text from outside as PostgreSQL's text can hold it: one bad character must not fail the whole batch."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


# docs/decisions/0009: asyncpg asks two classes about each element
def unless_null(column: Sequence[T | None]) -> Sequence[T | None]:
    """A column for `unnest`; empty if all its values are null, as `unnest` fills up shorter columns with nulls."""
    return [] if column.count(None) == len(column) else column


def texts_or_null(column: Sequence[str]) -> list[str | None]:
    """The same for texts, where an empty text becomes null."""
    return [storable(text) or None for text in column] if any(column) else []
