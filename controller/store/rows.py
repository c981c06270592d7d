"""Between rows of PostgreSQL and the core's tuples. Column orders are those of sql/queries."""

import asyncpg

from controller.core.model import Execution, Job, Skipped, SkipReason

_EXECUTION_COLUMNS = 8


def job_of(record: asyncpg.Record, first: int = 0) -> Job:
    """The job in the columns from `first` on."""
    return Job._make(record[first : first + len(Job._fields)])


def execution_of(record: asyncpg.Record) -> Execution:
    execution_id, tick, run_at, claimed_at, attempt, trigger, deployment, runner_id = record[:_EXECUTION_COLUMNS]
    job = job_of(record, _EXECUTION_COLUMNS)
    return Execution(execution_id, job, tick, run_at, claimed_at, attempt, trigger, deployment, runner_id)


SkipColumns = tuple[list[SkipReason], list[int], list[int], list[int]]


def skip_columns(skips: list[Skipped]) -> SkipColumns:
    """Reasons, first ticks, last ticks and counts."""
    return (
        [skipped.reason for skipped in skips],
        [skipped.first_tick for skipped in skips],
        [skipped.last_tick for skipped in skips],
        [skipped.ticks for skipped in skips],
    )


def storable(text: str) -> str:
    """What PostgreSQL's text can hold of a text from outside: one bad character must not fail the batch it is in."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
