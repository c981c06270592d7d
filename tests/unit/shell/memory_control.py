"""A Control, and the Reads that go with it, in memory: what the API is tested on without a database."""

from collections.abc import Callable, Sequence
from typing import Any

from controller.core.model import Activation, Job, Trigger
from controller.errors import Conflict, NotFound, Outdated
from controller.ports import Backfill, JobChange, NewJob
from controller.reads import DeploymentFilter, DeploymentRow, JobFilter, JobRow, TickRun
from schema.keys import JobKey, slot_of
from schema.module import Module
from schema.text import print_module
from schema.timetable import timetable

NOW = 1_795_219_200_000_000  # 2026-11-21T00:00:00Z


class MemoryControl:
    """Jobs of the modules that are active, at an instant that stands still."""

    def __init__(self, *modules: Module) -> None:
        self.modules = {(module.namespace, module.name): module for module in modules}
        self.rows: dict[str, JobRow] = {}
        self.waiting: dict[int, Activation] = {}
        self.runs: list[TickRun] = []
        self.asked: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.meanwhile: list[Callable[[JobRow], JobRow]] = []  # what others change just before the next updates

    async def create_job(self, job: NewJob, by: str) -> Job:
        self._asked("create", by)
        key = f"{JobKey(job.namespace, job.module, job.verb)}:{job.name}"
        if key in self.rows and self.rows[key].schedule != job.schedule:
            raise Conflict(f"{key} is there already, with the schedule {self.rows[key].schedule!r}; update it")
        row = JobRow(
            len(self.rows) + 1, key, job.namespace, job.module, job.verb, job.schedule, job.anchor or NOW, "scheduled",
            slot_of(key), f"{job.module}@1", job.timeout_ms, job.on_disconnect, NOW, None, None, None, None, None, None,
            None, None, (), job.policy, "api", job.payload, job.labels,
        )  # fmt: skip
        self.rows[key] = self._following(row)
        return self._job(self.rows[key])

    async def update_job(self, key: str, change: JobChange, by: str) -> Job:
        self._asked("update", by)
        row = self._row(key)
        if row.source != "api":
            raise Conflict(f"{key} is declared by its module; change it there, and deploy that")
        if self.meanwhile:
            self.rows[key] = self.meanwhile.pop(0)(row)
            raise Outdated("changed meanwhile")
        fields = {name: value for name, value in change._replace(seen=None)._asdict().items() if value is not None}
        self.rows[key] = self._following(row._replace(**fields))
        return self._job(self.rows[key])

    async def delete_job(self, key: str, by: str) -> None:
        self._asked("delete", by)
        del self.rows[self._row(key).key]

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        self._asked("pause", by)
        paused = self._row(key)._replace(
            status="paused", paused_at=NOW, paused_by=by, paused_note=note, next_tick=None, next_run_at=None
        )
        self.rows[key] = paused
        return self._job(paused)

    async def resume_job(self, key: str, by: str) -> Job:
        self._asked("resume", by)
        row = self._row(key)._replace(status="scheduled", paused_at=None, paused_by=None, paused_note=None)
        self.rows[key] = self._following(row)
        return self._job(self.rows[key])

    async def trigger_job(self, key: str, by: str, payload: str | None) -> Activation:
        self._asked("trigger", by)
        return self._wait(key, Trigger.MANUAL, NOW, None, payload or "", False)

    async def backfill_job(self, key: str, by: str, backfill: Backfill) -> Activation | None:
        self._asked("backfill", by, backfill)
        row = self._row(key)
        tick = timetable(row.schedule, row.anchor, row.policy).next_within(backfill.from_at - 1, backfill.until_at)
        if tick is None:
            return None
        return self._wait(key, Trigger.BACKFILL, tick, backfill.until_at, "", backfill.beside)

    async def list_activations(self, key: str) -> list[Activation]:
        return [each for each in self.waiting.values() if each.job.key == self._row(key).key]

    async def cancel_activation(self, key: str, activation_id: int) -> bool:
        self._row(key)
        return self.waiting.pop(activation_id, None) is not None

    async def database_now(self) -> int:
        return NOW

    async def get_job(self, key: str) -> JobRow:
        return self._row(key)

    async def list_jobs(self, where: JobFilter, after_key: str, limit: int) -> list[JobRow]:
        rows = [self.rows[key] for key in sorted(self.rows) if key > after_key]
        return [
            row for row in rows
            if where.module in {"", row.module} and where.namespace in {"", row.namespace}
        ][:limit]  # fmt: skip

    async def list_tick_runs(self, _: int, first_tick: int, last_tick: int) -> list[TickRun]:
        return [run for run in self.runs if first_tick <= run.tick <= last_tick]

    async def list_deployments(self, where: DeploymentFilter, _: int, limit: int) -> Sequence[DeploymentRow]:
        return [
            DeploymentRow(1, f"{module.name}@1", module.namespace, module.name, "1", 1, NOW, NOW, None,
                          print_module(module), 1, 0)
            for module in self.modules.values()
            if where.module in {"", module.name} and where.namespace in {"", module.namespace}
        ][:limit]  # fmt: skip

    def _asked(self, *what: object) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure

    def _row(self, key: str) -> JobRow:
        if key not in self.rows:
            raise NotFound(f"there is no job {key!r}")
        return self.rows[key]

    def _following(self, row: JobRow) -> JobRow:
        slot = timetable(row.schedule, row.anchor, row.policy).following(row.key, NOW)
        return row._replace(next_tick=slot.tick if slot else None, next_run_at=slot.run_at if slot else None)

    def _job(self, row: JobRow) -> Job:
        return Job(
            row.job_id, row.key, row.slot, row.deployment, row.verb, row.schedule, row.anchor, 1, row.timeout_ms,
            row.on_disconnect, False, row.next_tick, row.next_run_at, row.policy, row.payload,
        )  # fmt: skip

    def _wait(self, key: str, trigger: Trigger, tick: int, until: int | None, payload: str, beside: bool) -> Activation:
        number = len(self.waiting) + 1
        job = self._job(self._row(key))
        self.waiting[number] = Activation(number, job, tick, until, 1, trigger, NOW, payload, beside)
        return self.waiting[number]
