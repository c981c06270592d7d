"""What operators do to single jobs, in memory; see controller/store/control.py."""

from controller.core.control import (
    Spec,
    Start,
    Wanted,
    manual_tick,
    plan_backfill,
    plan_change,
    plan_creation,
    plan_pause,
    plan_resume,
)
from controller.core.model import OF_A_TICK, Activation, Job, Trigger
from controller.core.redeploy import Added, plan_removal
from controller.errors import Conflict, NotFound, Outdated
from controller.ports import Backfill, JobChange, NewJob, Seen
from cronring.virtual.memory_activations import MemoryActivations
from cronring.virtual.memory_rows import DeploymentRow, JobRow
from schema.keys import JobKey


def job_row(job_id: int, added: Added, deployment: DeploymentRow) -> JobRow:
    return JobRow(
        job_id, added.key, added.slot, deployment, added.verb, added.schedule, added.anchor, added.timeout_ms,
        added.on_disconnect, added.next_tick, added.next_run_at, added.policy, added.payload,
    )  # fmt: skip


class MemoryControl(MemoryActivations):
    """Implements controller.ports.Control."""

    async def create_job(self, job: NewJob, by: str) -> Job:
        name = (job.namespace, job.module)
        deployment = next((row for row in self.deployments if row.module == name and row.min_replicas), None)
        if deployment is None:
            raise Conflict(f"the module {job.module!r} isn't active")
        if all(verb.name != job.verb for verb in deployment.schema.verbs):
            raise Conflict(f"{deployment.key} has no verb {job.verb!r}")
        key = str(JobKey(job.namespace, job.module, f"{job.verb}:{job.name}"))
        spec = Spec(job.schedule, job.policy, job.anchor, job.payload, job.timeout_ms, job.on_disconnect)
        row = next((row for row in self.jobs.values() if row.key == key and not row.removed), None)
        if row is not None:
            there = Spec(
                row.schedule, row.policy, job.anchor and row.anchor, row.payload, row.timeout_ms, row.on_disconnect
            )
            if (there, row.labels) != (spec, job.labels):
                raise Conflict(f"there is another job {key!r}")
            return row.job()
        row = job_row(len(self.jobs) + 1, plan_creation(key, job.verb, spec, self.now_us()), deployment)
        row.source, row.labels, row.changed_by = "api", dict(job.labels), by
        self._add_job(row)
        self.on_notify()
        return row.job()

    async def update_job(self, key: str, change: JobChange, by: str) -> Job:
        row = self._of_api(key, "updated")
        there = Seen(row.deployment.key, row.schedule, row.policy, row.payload, row.labels)
        if change.seen not in (None, there):
            raise Outdated(f"{key!r} has been changed meanwhile; try again")
        wanted = Wanted(
            change.schedule, change.policy, change.anchor, change.payload, change.timeout_ms, change.on_disconnect
        )
        self._carry(plan_change(row.existing(), wanted, self.now_us()), row.deployment)
        row.labels = row.labels if change.labels is None else dict(change.labels)
        row.changed_by = by
        self.on_notify()
        return row.job()

    async def delete_job(self, key: str, by: str) -> None:
        row = self._of_api(key, "deleted")
        self._remove(plan_removal([row.existing()], self.now_us()))
        row.changed_by = by
        self.on_notify()

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        row = self._job(key)
        if not row.paused:
            row.paused_tick = plan_pause(row.existing())
            row.paused, row.paused_by, row.paused_note = True, by, note
            row.next_tick = row.next_run_at = None
            row.revision += 1
        self.on_notify()
        return row.job()

    async def resume_job(self, key: str, by: str) -> Job:
        row = self._job(key)
        if row.paused:
            planned = plan_resume(row.existing(), self._latest_start(row), self.now_us())
            row.paused, row.paused_tick, row.paused_by, row.paused_note = False, None, "", ""
            row.next_tick, row.next_run_at = planned.next_tick, planned.next_run_at
            row.revision, row.failures, row.changed_by = row.revision + 1, 0, by
            self._skip(row, planned.skipped, "")
        self.on_notify()
        return row.job()

    def _latest_start(self, row: JobRow) -> Start | None:
        """By its schedule."""
        of_tick = self.attempts.get((row.job_id, row.last_tick), ()) if row.last_tick is not None else ()
        found = (each for each in of_tick if each.trigger in OF_A_TICK)
        return next((Start(each.tick, each.run_at, each.claimed_at) for each in found), None)

    async def trigger_job(self, key: str, by: str, payload: str | None) -> Activation:
        now = self.now_us()
        row = self._add_activation(
            self._job(key), Trigger.MANUAL, manual_tick(now), run_at=now, payload=payload, by=by
        )  # fmt: skip
        self.on_notify()
        return row.activation()

    async def backfill_job(self, key: str, by: str, backfill: Backfill) -> Activation | None:
        row, now = self._job(key), self.now_us()
        planned = plan_backfill(row.existing(), backfill.from_at, backfill.until_at, now)
        if planned is None:
            return None
        added = self._add_activation(
            row, Trigger.BACKFILL, *planned, run_at=now, beside=backfill.beside, again=backfill.again, by=by
        )  # fmt: skip
        self.on_notify()
        return added.activation()

    async def list_activations(self, key: str) -> list[Activation]:
        row = self._job(key)
        waiting = [each for each in self.activations.values() if each.job is row]
        return [each.activation() for each in sorted(waiting, key=lambda each: (each.run_at, each.activation_id))]

    async def cancel_activation(self, key: str, activation_id: int) -> bool:
        row = self._job(key)
        found = self.activations.get(activation_id)
        if found is None or found.job is not row:
            return False
        del self.activations[activation_id]
        self.on_notify()
        return True

    def _job(self, key: str) -> JobRow:
        row = next((row for row in self.jobs.values() if row.key == key and not row.removed), None)
        if row is None:
            raise NotFound(f"there is no job {key!r}")
        return row

    def _of_api(self, key: str, done: str) -> JobRow:
        row = self._job(key)
        if row.source != "api":
            raise Conflict(f"{key!r} is declared in its module: it can't be {done}")
        return row
