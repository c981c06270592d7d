"""What operators do to single jobs, in memory; see controller/store/control.py."""

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.control import plan_backfill
from cronring.controller.core.orders.orders import Pause, Resume
from cronring.controller.core.orders.states import Order
from cronring.controller.ports.many import JobChange, NewJob, Seen, done
from cronring.controller.ports.store import Backfill, MadeJob, RunByHand
from cronring.controller.services.audit_changes import activation_fields, of_job
from cronring.controller.store.memory.many import MemoryMany
from cronring.schema.execution import Trigger
from cronring.schema.instant import format_instant


class MemoryControl(MemoryMany):
    """Implements cronring.controller.ports.store.Control."""

    async def make_job(self, job: NewJob, by: str, note: str = "") -> MadeJob:
        outcome = done(await self.create_jobs([job], by, note))
        return MadeJob(self.jobs[outcome.job_id].job(), outcome.unchanged)

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        return self.jobs[done(await self.update_jobs({key: change}, by, note)).job_id].job()

    async def delete_job(self, key: str, by: str, note: str = "", seen: Seen | None = None) -> None:
        done(await self.delete_jobs([key], by, note, seen={} if seen is None else {key: seen}))

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        return (await self.order_job(key, Pause(note), by)).job

    async def resume_job(self, key: str, by: str) -> Job:
        return (await self.order_job(key, Resume(), by)).job

    async def trigger_job(self, key: str, by: str, payload: str | None, note: str = "") -> Activation:
        done = self._run_by_hand(self._job(key), RunByHand(payload, note), by, dry_run=False)
        assert done.activation is not None, "no dry run, and no run"
        return done.activation

    async def backfill_job(self, key: str, by: str, backfill: Backfill, note: str = "") -> Activation | None:
        row, now = self._job(key), self.now_us()
        self._check(row, Order.BACKFILL)
        planned = plan_backfill(row.existing(), backfill.from_at, backfill.until_at, now)
        if planned is None:
            return None
        added = self._add_activation(
            row, Trigger.BACKFILL, *planned, run_at=now, beside=backfill.beside, again=backfill.again, by=by
        )  # fmt: skip
        span = {"from": format_instant(planned[0]), "until": format_instant(planned[1])}
        activation = added.activation()
        changes = of_job(row.key, None, activation_fields(activation))
        self._act(Order.BACKFILL, by, note, row, changes, activation=added.activation_id, **span)
        self.on_notify()
        return activation

    async def list_activations(
        self, key: str, *, after: tuple[int, int] | None = None, limit: int | None = None
    ) -> list[Activation]:
        row = self._job(key)
        waiting = [each for each in self.activations.values() if each.job is row]
        waiting.sort(key=lambda each: (each.run_at, each.activation_id))
        found = [each for each in waiting if after is None or (each.run_at, each.activation_id) > after]
        return [each.activation() for each in found[:limit]]

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool:
        row = self._job(key)
        found = self.activations.get(activation_id)
        if found is None or found.job is not row:
            return False
        del self.activations[activation_id]
        changes = of_job(row.key, activation_fields(found.activation()), None)
        self._act("cancel_activation", by, note, row, changes, activation=activation_id)
        self.on_notify()
        return True
