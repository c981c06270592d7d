"""What every part of the store in memory stands on: its tables, leases, and the books of schedules."""

from collections.abc import Callable
from typing import Final

from cronring.controller.core.ledger.books import Span
from cronring.controller.core.ledger.lives import Life
from cronring.controller.core.orders.orphaning import Orphan, Return
from cronring.controller.core.orders.redeploy import Carried, Removed
from cronring.controller.ports.caller import call_in_hand
from cronring.controller.ports.defaults import DefaultsRow
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.sets import SetRow
from cronring.controller.ports.templates import TemplateRow
from cronring.controller.services.audit_changes import Changes, canonical
from cronring.controller.store.memory.followers import Followers
from cronring.controller.store.memory.rows import (
    ActivationRow,
    EnqueuedRow,
    IntervalRow,
    LimitKey,
    PlaceKey,
    SkipRow,
    StoredAction,
    StoredController,
    StoredDeployment,
    StoredExecution,
    StoredJob,
    StoredRunner,
)
from cronring.schema.audit_chain import AuditRow
from cronring.schema.execution import Skipped
from cronring.schema.job import JobSpec

_TIMING: Final = {"schedule", "anchor", "policy"}
_CARRIED: Final = {*JobSpec._fields} - _TIMING - {"labels"}


class MemoryTables:
    """`now_us` is PostgreSQL's clock; `on_notify` is called for each NOTIFY."""

    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None] = lambda: None) -> None:
        self.now_us = now_us
        self.on_notify = on_notify
        self.on_cancels: Callable[[], None] = lambda: None  # for each NOTIFY about executions to be cancelled
        # For each NOTIFY that a limit that was full has a place; None: any may.
        self.on_places: Callable[[int | None], None] = lambda _: None
        self.on_consumed: Callable[[], None] = lambda: None  # for each NOTIFY that a consumer has ended a message
        # What PostgreSQL says where it takes no message of a job: a trigger or a CHECK of the user's.
        self.refuses_message: Callable[[StoredJob], str | None] = lambda _: None
        self.messages: dict[int, EnqueuedRow] = {}
        self.messages_made = 0
        self.defaults = DefaultsRow()
        self.limits: dict[LimitKey, LimitRow] = {}
        self.limits_removed: list[tuple[LimitRow, str, str]] = []  # and by whom, and why
        self.place_ids: dict[PlaceKey, int] = {}
        self.deployments: list[StoredDeployment] = []
        self.jobs: dict[int, StoredJob] = {}
        self.executions: dict[int, StoredExecution] = {}
        self.unfinished: dict[int, StoredExecution] = {}
        self.attempts: dict[tuple[int, int], list[StoredExecution]] = {}  # by job and tick: unique by attempt
        self.activations: dict[int, ActivationRow] = {}
        self.activations_made = 0
        self.followers = Followers()
        self.skips: list[SkipRow] = []
        self.actions: list[StoredAction] = []
        self.audit_log: list[AuditRow] = []
        self.templates: dict[tuple[str, str], TemplateRow] = {}  # by namespace and name
        self.templates_made = 0
        self.verb_calls: set[tuple[int, int]] = set()  # by execution and number
        self.sets: dict[tuple[str, str], SetRow] = {}  # by namespace and name
        self.interval_jobs: dict[str, IntervalRow] = {}  # by the ids that their callers know
        self.latest_skip: dict[int, SkipRow] = {}  # by job
        self.spans: dict[int, list[Span]] = {}  # by job, in order; the last is open unless the job was removed
        self.controllers: dict[str, StoredController] = {}
        self.runners: dict[str, StoredRunner] = {}
        self.lives: list[Life] = []  # that have ended
        self.zone_data: dict[str, int] = {}  # by version: since when

    def _lease_is_valid(self, controller_id: str) -> bool:
        row = self.controllers.get(controller_id)
        return row is not None and row.lease_expires_at > self.now_us()

    def _log(self, action: StoredAction, *changes: Changes) -> None:
        """What was done, and what that changed."""
        action.details = {**action.details, **call_in_hand().details}
        self.actions.append(action)
        self._record(*changes)

    def _record(self, *changes: Changes) -> None:
        """See controller/store/recording.py."""
        call, at = call_in_hand(), self.now_us()
        for each in [change for some in changes for change in some]:
            row_id, before, after = len(self.audit_log) + 1, canonical(each.before), canonical(each.after)
            self.audit_log.append(
                AuditRow(
                    row_id, at, None, 1, str(call.principal), call.method, call.origin, each.namespace, each.subject,
                    before, after, call.remark, controller_id="",
                )
            )  # fmt: skip

    def _jobs_of(self, name: tuple[str, str]) -> list[StoredJob]:
        rows = [row for row in self.jobs.values() if row.deployment.module == name and not row.removed]
        return sorted(rows, key=lambda row: row.key)

    def _add_job(self, row: StoredJob) -> None:
        self.jobs[row.job_id] = row
        row.now_us, row.defaults = self.now_us, lambda: self.defaults
        self.followers.note(row)
        self.spans[row.job_id] = []
        self._open_span(row, self.now_us())

    def _add_execution(self, row: StoredExecution) -> None:
        of_tick = self.attempts.setdefault((row.job.job_id, row.tick), [])
        assert all(other.attempt != row.attempt for other in of_tick), f"cron_executions_once: {row}"
        of_tick.append(row)
        row.job.executions += 1
        row.number = row.job.executions
        self.executions[row.execution_id] = self.unfinished[row.execution_id] = row

    def _skip(self, row: StoredJob, ranges: tuple[Skipped, ...], controller_id: str) -> None:
        for skipped in ranges:
            self.latest_skip[row.job_id] = SkipRow(row.job_id, skipped, controller_id, self.now_us())
            self.skips.append(self.latest_skip[row.job_id])

    def _close_span(self, row: StoredJob, at: int) -> int:
        """End the present books; where they end."""
        spans = self.spans[row.job_id]
        until = max(spans[-1].from_at, at)
        spans[-1] = spans[-1]._replace(until_at=until)
        return until

    def _open_span(self, row: StoredJob, from_at: int) -> None:
        row.opened_at = from_at
        schedule, anchor, policy = row.spec.timing
        self.spans[row.job_id].append(Span(schedule, anchor, from_at, None, policy))

    def _carry(self, carried: Carried, deployment: StoredDeployment) -> None:
        row = self.jobs[carried.job_id]
        row.deployment = deployment
        if not carried.keeps:
            row.spec = row.spec.taking(carried.spec, _CARRIED)
        if carried.rescheduled:
            row.spec = row.spec.taking(carried.spec, _TIMING)
            self.followers.note(row)
            row.next_tick, row.next_run_at = carried.next_tick, carried.next_run_at
            row.paused_tick, row.revision = carried.paused_tick, row.revision + 1
            row.ahead_from, row.ahead_until = carried.ahead_from, carried.ahead_until
            row.orphaned_tick = carried.orphaned_tick
            assert carried.closes_at is not None, "rescheduled, and no end of the old books"
            if row.cancelled_at is None:
                self._open_span(row, self._close_span(row, carried.closes_at))
        self._skip(row, carried.skipped, "")

    def _remove(self, removed: list[Removed]) -> None:
        for each in removed:
            row = self.jobs[each.job_id]
            row.removed, row.next_tick, row.next_run_at, row.revision = True, None, None, row.revision + 1
            row.orphaned_tick = None
            self.followers.note(row)
            if row.cancelled_at is None:
                self._close_span(row, each.closes_at)
            self._skip(row, each.skipped, "")
            for waiting in [w for w in self.activations.values() if w.job is row]:
                del self.activations[waiting.activation_id]

    def _orphan(self, orphaned: list[Orphan]) -> None:
        for each in orphaned:
            row = self.jobs[each.job_id]
            row.orphaned_at, row.orphaned_tick = self.now_us(), each.tick
            row.next_tick, row.next_run_at, row.revision = None, None, row.revision + 1

    def _bring_back(self, back: list[Return], deployment: StoredDeployment) -> None:
        for each in back:
            row = self.jobs[each.job_id]
            row.orphaned_at, row.orphaned_tick, row.deployment = None, None, deployment
            row.next_tick, row.next_run_at, row.revision = each.next_tick, each.next_run_at, row.revision + 1
            self._skip(row, each.skipped, "")
