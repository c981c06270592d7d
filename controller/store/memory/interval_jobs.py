"""Jobs of the interval scheduler's contract, in memory; see controller/store/interval_jobs.py."""

from cronring.controller.core.model import Activation
from cronring.controller.core.orders.control import manual_tick
from cronring.controller.core.orders.interval_states import (
    ORDERED,
    IntervalOrder,
    IntervalStanding,
    IntervalStatus,
    refusal,
    status_of,
)
from cronring.controller.core.orders.orders import Resume
from cronring.controller.core.orders.states import Order
from cronring.controller.errors import IllegalTransition, NotFound, Outdated
from cronring.controller.ports.interval_jobs import Changed, IntervalJobRow, LatestRun, Terms
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.services.audit_changes import activation_fields, digest, of_job
from cronring.controller.store.memory.control import MemoryControl
from cronring.controller.store.memory.rows import ActivationRow, IntervalRow, StoredJob
from cronring.schema.execution import Trigger
from cronring.schema.keys import namespace_of


class MemoryIntervalJobs(MemoryControl):
    """Implements cronring.controller.ports.interval_jobs.IntervalJobs."""

    async def make_interval_job(self, job: NewJob, terms: Terms, by: str, *, runs: bool) -> Changed:
        made = (await self.make_job(job, by)).job
        row, now = self.jobs[made.job_id], self.now_us()
        self.interval_jobs[job.name] = IntervalRow(row, terms, now, now)
        self._record(of_job(row.key, None, {"terms": digest(terms.text)}))
        return Changed(made, self._run_anew(row, by) if runs else None)

    async def change_interval_job(
        self, namespace: str, interval_id: str, change: JobChange, seen: Terms, terms: Terms, by: str, *, runs: bool
    ) -> Changed:
        found = self._allowing(namespace, interval_id, IntervalOrder.UPDATE)
        if found.terms != seen:
            raise Outdated(f"job {interval_id!r} has been changed meanwhile; try again")
        failed = self._status(found.job) is IntervalStatus.FAILED
        await self.update_job(found.job.key, change, by)
        if terms != seen:
            self._record(of_job(found.job.key, *[{"terms": digest(each.text)} for each in (seen, terms)]))
        found.terms, found.changed_at = terms, self.now_us()
        activation = self._run(found.job, by, failed=failed) if runs else None
        return Changed(found.job.job(), activation)

    async def order_interval_job(self, namespace: str, interval_id: str, order: IntervalOrder, by: str) -> Changed:
        found = self._allowing(namespace, interval_id, order)
        status, waiting, activation = self._status(found.job), self._waiting(found.job), None
        if order in ORDERED:
            await self.order_job(found.job.key, ORDERED[order], by)
        elif waiting is None or waiting.attempt != 1:
            activation = self._run(found.job, by, failed=status is IntervalStatus.FAILED)
        found.changed_at = self.now_us()
        return Changed(found.job.job(), activation)

    async def get_interval_job(self, namespace: str, interval_id: str) -> IntervalJobRow:
        found = self._interval(namespace, interval_id)
        job, status, waiting = found.job, self._status(found.job), self._waiting(found.job)
        next_run_at = job.next_run_at if waiting is None else waiting.run_at
        return IntervalJobRow(
            interval_id, job.job_id, job.key, namespace, found.terms, status, found.created_at, found.changed_at,
            next_run_at if status in {IntervalStatus.PENDING, IntervalStatus.SCHEDULED} else None,
            job.paused_at if status is IntervalStatus.PAUSED else None, job.cancelled_at, job.orphaned,
            None if waiting is None else waiting.attempt, self._latest(job),
        )  # fmt: skip

    def _interval(self, namespace: str, interval_id: str) -> IntervalRow:
        found = self.interval_jobs.get(interval_id)
        if found is None or found.job.removed or namespace_of(found.job.key) != namespace:
            raise NotFound(f"there is no job {interval_id!r}")
        return found

    def _allowing(self, namespace: str, interval_id: str, order: IntervalOrder) -> IntervalRow:
        found = self._interval(namespace, interval_id)
        status = self._status(found.job)
        refusing = refusal(order, interval_id, status)
        if refusing is not None:
            raise IllegalTransition(refusing, job=found.job.key, state=status, target="", action=order.value)
        return found

    def _status(self, job: StoredJob) -> IntervalStatus:
        waiting = self._waiting(job)
        return status_of(
            IntervalStanding(
                cancelled=job.cancelled_at is not None,
                running=job.executing or job.running > 0,
                orphaned=job.orphaned,
                stopped=job.paused and job.paused_by == "cronring" and job.failures > 0,
                paused=job.paused,
                waiting="" if waiting is None else waiting.trigger.value,
                has_next_tick=job.next_tick is not None,
                last_outcome=None if job.last_outcome is None else job.last_outcome.value,
            )
        )

    def _waiting(self, job: StoredJob) -> ActivationRow | None:
        found = [
            each
            for each in self.activations.values()
            if each.job is job and each.trigger in {Trigger.MANUAL, Trigger.RETRY}
        ]
        return min(found, key=lambda each: (each.trigger.value, each.run_at), default=None)

    def _latest(self, job: StoredJob) -> LatestRun:
        ticks = [tick for job_id, tick in self.attempts if job_id == job.job_id]
        if not ticks:
            return LatestRun()
        run = max(self.attempts[job.job_id, max(ticks)], key=lambda each: each.attempt)
        if run.report is None:
            return LatestRun(run.claimed_at, None, None, run.attempt)
        report = run.report
        return LatestRun(
            run.claimed_at, report.started_at, report.ended_at, run.attempt, report.outcome.value,
            report.error_type or None, report.error_message or None,
        )  # fmt: skip

    def _run(self, job: StoredJob, by: str, *, failed: bool) -> Activation:
        self._check(job, Order.TRIGGER)
        if failed and job.paused:
            self._order(job, Resume(), by, dry_run=False)
        for each in [each for each in self.activations.values() if each.job is job and each.trigger is Trigger.RETRY]:
            del self.activations[each.activation_id]
        return self._run_anew(job, by)

    def _run_anew(self, job: StoredJob, by: str) -> Activation:
        now = self.now_us()
        added = self._add_activation(job, Trigger.MANUAL, manual_tick(now), run_at=now, by=by, of_schedule=True)
        activation = added.activation()
        changes = of_job(job.key, None, activation_fields(activation))
        self._act(Order.TRIGGER, by, "", job, changes, activation=added.activation_id)
        self.on_notify()
        return activation
