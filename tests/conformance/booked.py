"""Rows of the books, as the conformance suite looks at them, whichever store has them."""

import json
from typing import NamedTuple


class BookedExecution(NamedTuple):
    execution_id: int
    job_id: int
    tick: int
    claimed_at: int
    controller_id: str
    outcome: str | None
    attempt: int
    trigger: str
    missed: int
    holds_job: bool
    retry_at: int | None
    number: int


class BookedJob(NamedTuple):
    """What a job's row says beside what GetCronJobs returns."""

    executing: bool
    running: int
    next_tick: int | None
    next_run_at: int | None
    last_tick: int | None
    last_success: int | None
    failures: int
    revision: int
    anchor: int
    paused: bool
    paused_tick: int | None
    paused_by: str
    paused_note: str


class BookedActivation(NamedTuple):
    activation_id: int
    job_id: int
    trigger: str
    tick: int
    until_tick: int | None
    attempt: int
    run_at: int
    payload: str | None
    beside: bool


class BookedSkip(NamedTuple):
    job_id: int
    reason: str
    first_tick: int
    last_tick: int
    ticks: int
    controller_id: str


class BookedAction(NamedTuple):
    action: str
    actor: str
    note: str
    details: dict[str, object]


class BookedChange(NamedTuple):
    """A row of the audit log."""

    principal: str
    method: str
    origin: str
    namespace: str
    subject: str
    before: dict[str, object] | None
    after: dict[str, object] | None
    remark: str


def changed(
    principal: str, method: str, origin: str, namespace: str, subject: str, before: str | None, after: str | None,
    remark: str,
) -> BookedChange:  # fmt: skip
    was, now = (None if each is None else json.loads(each) for each in (before, after))
    return BookedChange(principal, method, origin, namespace, subject, was, now, remark)
