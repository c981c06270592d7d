"""Orders to jobs, in memory; see controller/store/ordering.py."""

from collections.abc import Iterable, Sequence

from cronring.controller.core.model import Activation, CancelRequest
from cronring.controller.core.orders.ahead import AHEAD
from cronring.controller.core.orders.control import Start, manual_tick
from cronring.controller.core.orders.orders import (
    Cancel,
    JobOrder,
    NotNext,
    OrderColumns,
    Ordered,
    OrderRefusal,
    OrderTarget,
    Restore,
    Resume,
    carry_out,
    order_of,
    refused,
)
from cronring.controller.core.orders.redeploy import Existing, decided_ahead, taken_back
from cronring.controller.core.orders.states import Order
from cronring.controller.core.orders.taking_over import Left, plan_taking_over
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.store import Controlled, RunByHand
from cronring.controller.services.audit_changes import Changes, activation_fields, of_job, order_fields
from cronring.controller.services.refusals import error_of
from cronring.controller.store.memory.activations import MemoryActivations
from cronring.controller.store.memory.rows import StoredAction, StoredJob
from cronring.schema.execution import OF_A_TICK, Skipped, SkipReason, Trigger
from cronring.schema.instant import format_instant


class MemoryOrders(MemoryActivations):
    """The part of MemoryStore that carries out orders."""

    async def order_job(self, key: str, order: JobOrder, by: str, *, dry_run: bool = False) -> Controlled:
        row = self._job(key)
        if isinstance(order, Cancel) and not dry_run:
            self._cancel_executions(row, order, by)
        return self._order(row, order, by, dry_run=dry_run)

    async def order_jobs(
        self, job_ids: Sequence[int], order: JobOrder | RunByHand, by: str, *, dry_run: bool = False
    ) -> list[Controlled | Conflict | None]:
        done: list[Controlled | Conflict | None] = []
        for job_id in job_ids:
            row = self.jobs.get(job_id)
            try:
                if row is None or row.removed:
                    done.append(None)
                elif isinstance(order, RunByHand):
                    done.append(self._run_by_hand(row, order, by, dry_run=dry_run))
                else:
                    done.append(await self.order_job(row.key, order, by, dry_run=dry_run))
            except Conflict as error:
                done.append(error)
        return done

    def _order(self, row: StoredJob, order: JobOrder, by: str, *, dry_run: bool) -> Controlled:
        now, held = self.now_us(), row.execution_id
        plan = carry_out(standing(row)._replace(latest=self._latest_start(row)), order, by, now)
        if isinstance(plan, OrderRefusal):
            raise error_of(plan)
        if isinstance(plan, NotNext):
            plan = self._fate(row, plan)
        cancelling = 0
        if plan.row is not None and not dry_run:
            cancelling = self._write(row, plan, plan.row, order, by, now)
        return Controlled(row.job(), plan.row is not None, plan.details, held, cancelling)

    def _write(self, row: StoredJob, plan: Ordered, after: OrderColumns, order: JobOrder, by: str, now: int) -> int:
        before = standing(row).row
        self._write_row(row, plan, after, by, now)
        if isinstance(order, Resume | Restore):
            row.failures = 0
        cancelling = waiting = 0
        if isinstance(order, Cancel):
            cancelling = self._cancel_executions(row, order, by)
            gone = [each for each in self.activations.values() if each.job is row]
            waiting = len(gone)
            for each in gone:
                del self.activations[each.activation_id]
        counts = {name: count for name, count in (("running", cancelling), ("waiting", waiting)) if count}
        told = {**plan.details, **counts}
        changes = of_job(row.key, order_fields(before), order_fields(after) | told)
        self._act(order_of(order), by, order.note, row, changes, **told)
        self.on_notify()
        return cancelling

    def _write_row(self, row: StoredJob, plan: Ordered, after: OrderColumns, by: str, now: int) -> None:
        if plan.taken_back is not None:
            self._take_back(row, *plan.taken_back, now)
        for name, value in after._asdict().items():
            setattr(row, name, value)
        row.revision, row.changed_by = row.revision + 1, by
        self._skip(row, plan.skipped, "")
        if plan.closes_at is not None:
            row.opened_at = self._close_span(row, plan.closes_at)
        if plan.opens_at is not None:
            self._open_span(row, plan.opens_at)

    def _take_over(self, row: StoredJob, by: str, note: str, **details: object) -> None:
        """A new job is paused or cancelled as that of its key was which was removed before."""
        removed = [each for each in self.jobs.values() if each.key == row.key and each.removed]
        left = _left(row.job_id, max(removed, key=lambda each: each.job_id)) if removed else None
        if left is None:
            return
        now = self.now_us()
        action, plan = plan_taking_over(standing(row), left, now)
        assert plan.row is not None, "it is planned"
        self._write_row(row, plan, plan.row, by, now)
        self._act(action, by, note, row, (), **plan.details, **details)

    def _latest_start(self, row: StoredJob) -> Start | None:
        """By its schedule."""
        of_tick = self.attempts.get((row.job_id, row.last_tick), ()) if row.last_tick is not None else ()
        found = (each for each in of_tick if each.trigger in OF_A_TICK)
        return next((Start(each.tick, each.run_at, each.claimed_at) for each in found), None)

    def _run_by_hand(self, row: StoredJob, order: RunByHand, by: str, *, dry_run: bool) -> Controlled:
        self._check(row, Order.TRIGGER)
        activation: Activation | None = None
        if not dry_run:
            now = self.now_us()
            added = self._add_activation(
                row, Trigger.MANUAL, manual_tick(now), run_at=now, payload=order.payload, by=by
            )  # fmt: skip
            activation = added.activation()
            changes = of_job(row.key, None, activation_fields(activation))
            self._act(Order.TRIGGER, by, order.note, row, changes, activation=activation.activation_id)
            self.on_notify()
        return Controlled(row.job(), True, {}, row.execution_id, activation=activation)

    def _check(self, row: StoredJob, order: Order) -> None:
        refusing = refused(standing(row), order)
        if refusing is not None:
            raise error_of(refusing)

    def _act(self, action: str, by: str, note: str, row: StoredJob, changes: Changes, /, **details: object) -> None:
        self._log(StoredAction(str(action), by, note, row.job_id, details, at=self.now_us()), changes)

    def _fate(self, row: StoredJob, other: NotNext) -> Ordered:
        """Raises Conflict, unless the tick was skipped before."""
        if self.attempts.get((row.job_id, other.tick)):
            begun = self.attempts[row.job_id, other.tick][-1].execution_id
            raise Conflict(f"tick {format_instant(other.tick)} of {row.key!r} has begun as execution {begun}")
        reasons = [
            skip.skipped.reason
            for skip in self.skips
            if skip.job_id == row.job_id and skip.skipped.first_tick <= other.tick <= skip.skipped.last_tick
        ]
        if SkipReason.CANCELLED in reasons:
            return Ordered(None, {"tick": format_instant(other.tick)})
        if reasons:
            raise Conflict(f"tick {format_instant(other.tick)} of {row.key!r} was skipped already: {reasons[-1]}")
        raise Conflict(other.message)

    def _cancel_executions(self, row: StoredJob, order: Cancel, by: str) -> int:
        running = [each for each in self.unfinished.values() if each.job is row]
        for each in running:
            each.cancel = each.cancel or CancelRequest(each.execution_id, each.runner_id, by, order.note)
        if running:
            self.on_cancels()
        return len(running)

    def _take_back(self, row: StoredJob, from_tick: int, reasons: Iterable[SkipReason], now: int) -> None:
        """What was decided ahead, and has not come, leaves the books."""
        wanted, job = tuple(reasons), row.existing()
        ahead = [
            skip for skip in self.skips
            if skip.job_id == row.job_id and skip.skipped.reason in wanted
            and skip.skipped.first_tick >= from_tick and skip.skipped.last_tick > now
        ]  # fmt: skip
        for skip in ahead:
            self.skips.remove(skip)
            left: tuple[Skipped, ...] = taken_back(job, skip.skipped.first_tick, skip.skipped.reason, now)
            self._skip(row, left, "")
        if ahead:
            of_job = [skip for skip in self.skips if skip.job_id == row.job_id]
            self.latest_skip.pop(row.job_id, None)
            if of_job:
                self.latest_skip[row.job_id] = max(of_job, key=lambda skip: skip.skipped.first_tick)

    def _take_back_all(self, rows: Iterable[StoredJob]) -> None:
        """Before the books of these jobs are closed."""
        now = self.now_us()
        for row in rows:
            job: Existing = row.existing()
            if decided_ahead(job, now) and job.ahead_from is not None:
                self._take_back(row, job.ahead_from, AHEAD, now)

    def _job(self, key: str) -> StoredJob:
        row = next((row for row in self.jobs.values() if row.key == key and not row.removed), None)
        if row is None:
            raise NotFound(f"there is no job {key!r}")
        return row


def _left(job_id: int, removed: StoredJob) -> Left | None:
    if removed.cancelled_at is not None:
        by, note = removed.cancelled_by or "", removed.cancelled_note or ""
        return Left(job_id, True, removed.cancelled_at, by, note, None)
    if removed.paused_at is None or not removed.existing().paused:
        return None
    by, note = removed.paused_by or "", removed.paused_note or ""
    return Left(job_id, False, removed.paused_at, by, note, removed.paused_until)


def standing(row: StoredJob) -> OrderTarget:
    columns = OrderColumns._make(getattr(row, name) for name in OrderColumns._fields)
    outcome = None if row.last_outcome is None else row.last_outcome.value
    return OrderTarget(row.existing(), columns, row.executing or row.running > 0, outcome)
