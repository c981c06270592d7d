"""What happened to the store in a year that its rows no longer tell: pauses, and what was asked for by hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

from cronring.controller.core.model import Activation
from cronring.controller.core.orders import orders
from cronring.controller.store.memory.rows import ActivationRow, StoredExecution, StoredJob
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.instant import parse_instant
from tests.simulation.history import RecordingStore


class Pause(NamedTuple):
    """Of a job. `until`: when it ended, or is to by itself; None: it still is paused. `by_hand`: not by failures."""

    job_id: int
    since: int
    until: int | None
    by_hand: bool


class Requested(NamedTuple):
    """A manual run or a backfill: a copy of its row as it was made."""

    activation_id: int
    job: StoredJob
    trigger: Trigger
    tick: int
    until_tick: int | None
    again: bool
    at: int
    span: int  # which of its job's spans it was made in
    of_schedule: bool  # a retry of a tick


class Written(NamedTuple):
    """An order that changed a job: committed `at`, in the books of its job's span of that number.

    `executions`, `ends`: how many there had been. `tick`: which was skipped. `paused_tick`: the first that is kept.
    """

    job_id: int
    given: orders.JobOrder
    at: int
    span: int
    executions: int
    ends: int
    tick: int | None
    paused_tick: int | None


class YearStore(RecordingStore):
    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None]) -> None:
        super().__init__(now_us, on_notify)
        self.pauses: list[Pause] = []
        self.orders: list[Written] = []
        self.requested: list[Requested] = []
        self.by_hand: dict[int, int] = {}  # retries that somebody asked for, by activation: of which execution
        self.activation_of: dict[int, int] = {}  # by execution
        self.started_by: dict[int, list[StoredExecution]] = {}  # by activation

    def _write(
        self, row: StoredJob, plan: orders.Ordered, after: orders.OrderColumns, order: orders.JobOrder, *values: Any
    ) -> int:
        now = self.now_us()
        if not isinstance(order, orders.SkipNext):
            self._end_pause(row, now)
        if isinstance(order, orders.Pause):
            self.pauses.append(Pause(row.job_id, now, order.until, by_hand=True))
        if isinstance(order, orders.Cancel):
            waiting = [each.activation_id for each in self.activations.values() if each.job is row]
            self.cancelled.update(dict.fromkeys(waiting, now))
        done = super()._write(row, plan, after, order, *values)
        tick = plan.details.get("tick")
        self.orders.append(
            Written(
                row.job_id, order, now, len(self.spans[row.job_id]) - 1, len(self.executions), len(self.ended),
                None if tick is None else parse_instant(str(tick)), after.paused_tick,
            )
        )  # fmt: skip
        return done

    def _take_over(self, row: StoredJob, *values: Any, **details: Any) -> None:
        super()._take_over(row, *values, **details)
        if row.paused_at is not None:
            self.pauses.append(Pause(row.job_id, self.now_us(), row.paused_until, by_hand=True))
        if row.paused_at is not None or row.cancelled_at is not None:
            order = orders.Cancel() if row.cancelled_at is not None else orders.Pause(until=row.paused_until)
            self.orders.append(
                Written(
                    row.job_id, order, self.now_us(), 0, len(self.executions), len(self.ended), None, row.paused_tick
                )
            )

    def _end_pause(self, row: StoredJob, now: int) -> None:
        for at, pause in enumerate(self.pauses):
            if pause.job_id == row.job_id and (pause.until is None or pause.until > now):
                self.pauses[at] = pause._replace(until=now)

    async def retry_execution(self, execution_id: int, *values: Any, **named: Any) -> Activation:
        made = await super().retry_execution(execution_id, *values, **named)
        attempts = self.attempts[made.job.job_id, made.tick]
        needed = attempts and all(row.outcome not in (None, Outcome.COMPLETED) for row in attempts)
        assert needed, f"retried by hand without need: {attempts}"
        self.by_hand.setdefault(made.activation_id, execution_id)
        return made

    def _pause_failing(self, row: StoredJob) -> bool:
        paused = super()._pause_failing(row)
        if paused:
            self.pauses.append(Pause(row.job_id, self.now_us(), None, by_hand=False))
        return paused

    def _add_activation(self, job: StoredJob, trigger: Trigger, *values: Any, **named: Any) -> ActivationRow:
        row = super()._add_activation(job, trigger, *values, **named)
        made = Requested(
            row.activation_id, job, trigger, row.tick, row.until_tick, row.again, self.now_us(),
            len(self.spans[job.job_id]) - 1, row.of_schedule,
        )  # fmt: skip
        self.requested.append(made)
        return row

    def _start(self, row: ActivationRow, *values: Any) -> StoredExecution:
        execution = super()._start(row, *values)
        self.started_by.setdefault(row.activation_id, []).append(execution)
        self.activation_of[execution.execution_id] = row.activation_id
        return execution
