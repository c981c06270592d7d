"""What happened to the store in a year that its rows no longer tell: pauses, and what was asked for by hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

from controller.core.model import Job, Trigger
from cronring.virtual.memory_rows import ActivationRow, ExecutionRow, JobRow
from tests.simulation.history import RecordingStore


class Pause(NamedTuple):
    """Of a job. `until`: when it was resumed; None: it still is paused. `by_hand`: not by its failures."""

    job_id: int
    since: int
    until: int | None
    by_hand: bool


class Wish(NamedTuple):
    """A manual run or a backfill: a copy of its row as it was made."""

    activation_id: int
    job: JobRow
    trigger: Trigger
    tick: int
    until_tick: int | None
    again: bool
    at: int
    span: int  # which of its job's spans it was made in
    of_schedule: bool  # a retry of a tick


class YearStore(RecordingStore):
    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None]) -> None:
        super().__init__(now_us, on_notify)
        self.pauses: list[Pause] = []
        self.wishes: list[Wish] = []
        self.started_by: dict[int, list[ExecutionRow]] = {}  # by activation

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        row = self._job(key)
        if not row.paused:
            self.pauses.append(Pause(row.job_id, self.now_us(), None, by_hand=True))
        return await super().pause_job(key, by, note)

    async def resume_job(self, key: str, by: str) -> Job:
        row = self._job(key)
        if row.paused:
            at = next(at for at, pause in enumerate(self.pauses) if pause.job_id == row.job_id and pause.until is None)
            self.pauses[at] = self.pauses[at]._replace(until=self.now_us())
        return await super().resume_job(key, by)

    def _pause_failing(self, row: JobRow) -> bool:
        paused = super()._pause_failing(row)
        if paused:
            self.pauses.append(Pause(row.job_id, self.now_us(), None, by_hand=False))
        return paused

    def _add_activation(self, job: JobRow, trigger: Trigger, *values: Any, **named: Any) -> ActivationRow:
        row = super()._add_activation(job, trigger, *values, **named)
        made = Wish(
            row.activation_id, job, trigger, row.tick, row.until_tick, row.again, self.now_us(),
            len(self.spans[job.job_id]) - 1, row.of_schedule,
        )  # fmt: skip
        self.wishes.append(made)
        return row

    def _start(self, row: ActivationRow, *values: Any) -> ExecutionRow:
        execution = super()._start(row, *values)
        self.started_by.setdefault(row.activation_id, []).append(execution)
        return execution
