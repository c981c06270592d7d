"""A Control, and the Reads that go with it, in memory: what the API is tested on without a database."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.orders import Cancel, JobOrder, Pause, Resume, SkipNext, order_of
from cronring.controller.errors import Conflict, NotFound, Outdated
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Seen
from cronring.controller.ports.reads import (
    ActionFilter,
    ActionRow,
    DeploymentFilter,
    DeploymentRow,
    ExecutionPage,
    JobFilter,
    JobRow,
    TickRun,
)
from cronring.controller.ports.store import Backfill, Controlled, MadeJob, RunByHand
from cronring.schema.execution import Trigger
from cronring.schema.instant import format_instant
from cronring.schema.keys import JobKey, slot_of
from cronring.schema.module import Module
from cronring.schema.text import print_module
from cronring.schema.timetable import timetable

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
        self.failures: list[Exception] = []  # of the next calls, one each
        self.refusing: dict[str, Conflict] = {}  # orders to many jobs
        self.actions: list[ActionRow] = []
        self.meanwhile: list[Callable[[JobRow], JobRow]] = []  # what others change just before the next updates

    async def make_job(self, job: NewJob, by: str, note: str = "") -> MadeJob:
        self._asked("create", by, *([note] if note else []))
        key = f"{JobKey(job.namespace, job.module, job.verb)}:{job.name}"
        if key in self.rows and self.rows[key].spec.schedule != job.spec.schedule:
            raise Conflict(f"{key} is there already, with the schedule {self.rows[key].spec.schedule!r}; update it")
        row = JobRow(
            len(self.rows) + 1, key, job.namespace, job.module, job.verb, "scheduled", slot_of(key), f"{job.module}@1",
            NOW, None, None, None, None, None, None, None, None, "api",
            spec=job.spec._replace(anchor=job.spec.anchor or NOW),
        )  # fmt: skip
        unchanged = key in self.rows
        self.rows[key] = self._following(row._replace(template=job.template))
        return MadeJob(self._job(self.rows[key]), unchanged)

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        self._asked("update", by, *([note] if note else []))
        row = self._row(key)
        if row.source != "api":
            raise Conflict(f"{key} is declared by its module; change it there, and deploy that")
        if self.meanwhile:
            self.rows[key] = self.meanwhile.pop(0)(row)
            raise Outdated("changed meanwhile")
        spec = row.spec.taking(change.spec, change.names)
        spec = spec._replace(anchor=row.spec.anchor if spec.anchor is None else spec.anchor)
        self.rows[key] = self._following(row._replace(spec=spec))
        return self._job(self.rows[key])

    async def delete_job(self, key: str, by: str, note: str = "", seen: Seen | None = None) -> None:
        self._asked("delete", by, *([note] if note else []))
        row = self._row(key)
        if seen not in (None, Seen(row.job_id, row.deployment, row.spec)):
            raise Outdated("changed meanwhile")
        del self.rows[row.key]

    async def create_jobs(
        self, jobs: Sequence[NewJob], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        assert not whole, "this one is of the conformance suite"
        assert not dry_run, "and so is this"
        outcomes: list[Outcome] = []
        for job in jobs:
            try:
                made = (await self.make_job(job, by, note)).job
            except Conflict as error:
                outcomes.append(error)
            else:
                outcomes.append(JobDone(made.key, made.job_id))
        return outcomes

    async def update_jobs(
        self, changes: Mapping[str, JobChange], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        assert not whole, "this one is of the conformance suite"
        assert not dry_run, "and so is this"
        outcomes: list[Outcome] = []
        for key, change in changes.items():
            try:
                outcomes.append(JobDone(key, (await self.update_job(key, change, by, note)).job_id))
            except Conflict as error:
                outcomes.append(error)
        return outcomes

    async def delete_jobs(
        self,
        keys: Sequence[str],
        by: str,
        note: str = "",
        *,
        labels: Mapping[str, str] = MappingProxyType({}),
        seen: Mapping[str, Seen] = MappingProxyType({}),
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        assert not whole, "this one is of the conformance suite"
        assert not seen, "and so is this"
        found = [self._row(key) for key in keys]
        assert all(labels.items() <= row.spec.labels.items() for row in found), "find_jobs went by them"
        if not dry_run:
            for row in found:
                await self.delete_job(row.key, by, note)
        return [JobDone(row.key, row.job_id) for row in found]

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        return (await self.order_job(key, Pause(note), by)).job

    async def resume_job(self, key: str, by: str) -> Job:
        return (await self.order_job(key, Resume(), by)).job

    async def order_job(self, key: str, order: JobOrder, by: str, *, dry_run: bool = False) -> Controlled:
        self._asked(order_of(order).value, by, order)
        row = self._row(key)
        match order:
            case Pause():
                row = row._replace(
                    status="paused", paused_at=NOW, paused_by=by, paused_note=order.note, paused_until=order.until,
                    next_tick=None, next_run_at=None,
                )  # fmt: skip
            case Cancel():
                row = row._replace(status="cancelled", cancelled_at=NOW, cancelled_by=by, cancelled_note=order.note)
            case _:
                row = self._following(row._replace(status="scheduled", paused_at=None, cancelled_at=None))
        changed = row != self.rows[key]
        if not dry_run:
            self.rows[key] = row
        details = {"tick": format_instant(order.tick or NOW)} if isinstance(order, SkipNext) else {}
        return Controlled(self._job(row), changed or isinstance(order, SkipNext), details)

    async def order_jobs(
        self, job_ids: Sequence[int], order: JobOrder | RunByHand, by: str, *, dry_run: bool = False
    ) -> list[Controlled | Conflict | None]:
        keys = {row.job_id: key for key, row in self.rows.items()}
        done: list[Controlled | Conflict | None] = []
        for job_id in job_ids:
            key = keys[job_id]
            if key in self.refusing:
                done.append(self.refusing[key])
            elif isinstance(order, RunByHand):
                made = None if dry_run else await self.trigger_job(key, by, order.payload, order.note)
                done.append(Controlled(self._job(self.rows[key]), True, {}, activation=made))
            else:
                done.append(await self.order_job(key, order, by, dry_run=dry_run))
        return done

    async def trigger_job(self, key: str, by: str, payload: str | None, note: str = "") -> Activation:
        self._asked("trigger", by, note)
        return self._wait(key, Trigger.MANUAL, NOW, None, payload or "", False)

    async def backfill_job(self, key: str, by: str, backfill: Backfill, note: str = "") -> Activation | None:
        self._asked("backfill", by, backfill, *([note] if note else []))
        row = self._row(key)
        tick = timetable(*row.spec.timing).next_within(backfill.from_at - 1, backfill.until_at)
        if tick is None:
            return None
        return self._wait(key, Trigger.BACKFILL, tick, backfill.until_at, "", backfill.beside)

    async def list_activations(
        self, key: str, *, after: tuple[int, int] | None = None, limit: int | None = None
    ) -> list[Activation]:
        found = [each for each in self.waiting.values() if each.job.key == self._row(key).key]
        found.sort(key=lambda each: (each.run_at, each.activation_id))
        return [each for each in found if after is None or (each.run_at, each.activation_id) > after][:limit]

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool:
        self._asked("cancel_activation", by, note)
        self._row(key)
        return self.waiting.pop(activation_id, None) is not None

    async def database_now(self) -> int:
        return NOW

    async def get_job(self, key: str) -> JobRow:
        return self._row(key)

    async def get_jobs(self, keys: Sequence[str]) -> list[JobRow]:
        return [self.rows[key] for key in keys if key in self.rows]

    async def list_jobs(self, where: JobFilter, after_key: str, limit: int) -> list[JobRow]:
        rows = [self.rows[key] for key in sorted(self.rows) if key > after_key]
        return [
            row for row in rows
            if where.module in {"", row.module} and where.namespace in {"", row.namespace}
            and where.labels.items() <= row.spec.labels.items()
        ][:limit]  # fmt: skip

    async def find_jobs(self, where: JobFilter, after_id: int, limit: int) -> list[tuple[int, str]]:
        rows = await self.list_jobs(where, "", 10_000)
        return sorted((row.job_id, row.key) for row in rows if row.job_id > after_id)[:limit]

    async def count_jobs(self, where: JobFilter) -> int:
        return len(await self.find_jobs(where, 0, 10_000))

    async def list_actions(self, where: ActionFilter, before_id: int, limit: int) -> list[ActionRow]:
        found = [each for each in self.actions if where.job in {"", each.job}]
        return [each for each in reversed(found) if not before_id or each.action_id < before_id][:limit]

    async def list_tick_runs(self, _: int, first_tick: int, last_tick: int) -> list[TickRun]:
        return [run for run in self.runs if first_tick <= run.tick <= last_tick]

    async def list_executions(self, *_: object) -> ExecutionPage:
        return ExecutionPage([])  # nothing ever begins here

    async def list_deployments(self, where: DeploymentFilter, _: int, limit: int) -> Sequence[DeploymentRow]:
        return [
            DeploymentRow(1, f"{module.name}@1", module.namespace, module.name, "1", 1, NOW, NOW, None,
                          print_module(module), 1, 0)
            for module in self.modules.values()
            if where.module in {"", module.name} and where.namespace in {"", module.namespace}
        ][:limit]  # fmt: skip

    def _asked(self, *what: object) -> None:
        self.asked.append(what)
        if self.failures:
            raise self.failures.pop(0)
        if self.failure is not None:
            raise self.failure

    def _row(self, key: str) -> JobRow:
        if key not in self.rows:
            raise NotFound(f"there is no job {key!r}")
        return self.rows[key]

    def _following(self, row: JobRow) -> JobRow:
        slot = timetable(*row.spec.timing).following(row.key, NOW)
        return row._replace(next_tick=slot.tick if slot else None, next_run_at=slot.run_at if slot else None)

    def _job(self, row: JobRow) -> Job:
        schedule, anchor, policy = row.spec.timing
        return Job(
            row.job_id, row.key, row.slot, row.deployment, row.verb, schedule, anchor, 1, row.spec.timeout_ms,
            row.spec.on_disconnect, False, row.next_tick, row.next_run_at, policy, row.spec.payload,
        )  # fmt: skip

    def _wait(self, key: str, trigger: Trigger, tick: int, until: int | None, payload: str, beside: bool) -> Activation:
        number = len(self.waiting) + 1
        job = self._job(self._row(key))
        self.waiting[number] = Activation(number, job, tick, until, 1, trigger, NOW, payload, beside)
        return self.waiting[number]
