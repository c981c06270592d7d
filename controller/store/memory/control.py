"""What operators do to single jobs, in memory; see controller/store/control.py."""

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.control import plan_backfill, plan_change, plan_creation
from cronring.controller.core.orders.followers import followed
from cronring.controller.core.orders.orders import Pause, Resume
from cronring.controller.core.orders.redeploy import Added, plan_removal
from cronring.controller.core.orders.states import Order
from cronring.controller.errors import Conflict, Outdated
from cronring.controller.ports.store import Backfill, JobChange, NewJob, RunByHand, Seen
from cronring.controller.services.audit_changes import activation_fields, of_job, spec_fields
from cronring.controller.store.memory.orders import MemoryOrders
from cronring.controller.store.memory.rows import DeploymentRow, JobRow
from cronring.schema.execution import SkipReason, Trigger
from cronring.schema.instant import format_instant
from cronring.schema.keys import JobKey


def job_row(job_id: int, added: Added, deployment: DeploymentRow) -> JobRow:
    return JobRow(job_id, added.key, added.slot, deployment, added.verb, added.spec, added.next_tick, added.next_run_at)


class MemoryControl(MemoryOrders):
    """Implements cronring.controller.ports.store.Control."""

    async def create_job(self, job: NewJob, by: str, note: str = "") -> Job:
        name = (job.namespace, job.module)
        deployment = next((row for row in self.deployments if row.module == name and row.min_replicas), None)
        if deployment is None:
            raise Conflict(f"the module {job.module!r} isn't active")
        if all(verb.name != job.verb for verb in deployment.schema.verbs):
            raise Conflict(f"{deployment.key} has no verb {job.verb!r}")
        key = str(JobKey(job.namespace, job.module, f"{job.verb}:{job.name}"))
        row = next((row for row in self.jobs.values() if row.key == key and not row.removed), None)
        if row is not None:
            there = row.spec if job.spec.anchor is not None else row.spec._replace(anchor=None)
            if (there, row.template) != (job.spec, job.template):
                raise Conflict(f"there is another job {key!r}")
            return row.job()
        added = plan_creation(key, job.verb, job.spec, self.now_us())
        self.followers.refuse_cycles(list(self.jobs.values()), followed([added]))
        row = job_row(len(self.jobs) + 1, added, deployment)
        row.source, row.changed_by, row.template = "api", by, job.template
        self._add_job(row)
        template = {"template": job.template} if job.template else {}
        changes = of_job(key, None, spec_fields(added.spec, job.template))
        self._act("create", by, note, row, changes, schedule=row.spec.schedule, **template)
        if job.run_now:
            self._run_by_hand(row, RunByHand(None, note), by, dry_run=False)
        self.on_notify()
        return row.job()

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        row = self._of_api(key, "updated")
        self._check(row, Order.UPDATE)
        there = Seen(row.deployment.key, row.spec.schedule, row.spec.policy, row.spec.payload, row.spec.labels)
        if change.seen not in (None, there):
            raise Outdated(f"{key!r} has been changed meanwhile; try again")
        planned = plan_change(row.existing(), row.spec, change.spec, change.names, self.now_us())
        if planned.spec == row.spec:
            return row.job()
        others = [each for each in self.jobs.values() if each is not row]
        self.followers.refuse_cycles(others, followed([planned]))
        if planned.takes_back:
            self._take_back_all([row])
        changes = of_job(row.key, spec_fields(row.spec), spec_fields(planned.spec))
        self._carry(planned, row.deployment)
        self._act(Order.UPDATE, by, note, row, changes)
        row.spec = row.spec._replace(labels=planned.spec.labels)
        row.changed_by = by
        self.on_notify()
        return row.job()

    async def delete_job(self, key: str, by: str, note: str = "") -> None:
        row = self._of_api(key, "deleted")
        removed = plan_removal([row.existing()], self.now_us(), SkipReason.CANCELLED)
        self._take_back_all([row])
        self._remove(removed)
        row.changed_by = by
        self._act(Order.DELETE, by, note, row, of_job(row.key, spec_fields(row.spec, row.template), None))
        self.on_notify()

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

    def _of_api(self, key: str, done: str) -> JobRow:
        row = self._job(key)
        if row.source != "api":
            raise Conflict(f"{key!r} is declared in its module: it can't be {done}")
        return row
