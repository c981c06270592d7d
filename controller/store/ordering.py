"""Orders to jobs, single ones or many at a time: a transaction each, planned by cronring.controller.core.orders.orders.

The same few statements write the results of every order, for all its jobs. Rows are locked in order of their ids, and
jobs before executions, as everywhere.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.ahead import AHEAD
from cronring.controller.core.orders.control import Start, manual_tick
from cronring.controller.core.orders.orders import (
    Cancel,
    JobOrder,
    NotNext,
    Ordered,
    OrderRefusal,
    Restore,
    Resume,
    carry_out,
    refused,
)
from cronring.controller.core.orders.orders import order_of as order_name
from cronring.controller.core.orders.redeploy import Existing, decided_ahead, taken_back
from cronring.controller.core.orders.states import Order
from cronring.controller.core.orders.taking_over import Left, plan_taking_over
from cronring.controller.errors import Conflict
from cronring.controller.ports.store import Controlled, RunByHand
from cronring.controller.services.audit_changes import activation_fields, of_job, order_fields
from cronring.controller.services.refusals import error_of
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.locked import Locked, lock_job, lock_jobs
from cronring.controller.store.plans import add_skips
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.controller.store.rows import activation_of, job_of
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import format_instant
from cronring.sql.parameters import (
    CancelExecutionsOfJobs,
    CloseBooks,
    ForgetActivations,
    GetActivationsById,
    GetCronJobsById,
    GetFateOfTick,
    GetLatestStarts,
    GetLeft,
    NotifyJobs,
    OpenBooks,
    OrderJobs,
    RunJobsByHand,
    TakeBackSkips,
)


class Ordering:
    """The part of PostgresControl that carries out orders."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def order_job(self, key: str, order: JobOrder, by: str, *, dry_run: bool = False) -> Controlled:
        """Raises NotFound, IllegalTransition, Conflict."""
        async with self._database.transaction(f"{order_name(order)}: a job") as transaction:
            row = await lock_job(transaction, key)
            (done,) = await order_locked(transaction, [row], order, by, dry_run=dry_run)
            if isinstance(done, Conflict):
                raise done
            return done

    async def order_jobs(
        self, job_ids: Sequence[int], order: JobOrder | RunByHand, by: str, *, dry_run: bool = False
    ) -> list[Controlled | Conflict | None]:
        """What became of each, in this order; None: it is gone. One transaction."""
        ids = sorted(job_ids)
        async with self._database.transaction("ordering jobs") as transaction:
            # docs/decisions/0047: rows are locked in one order everywhere
            rows = await lock_jobs(transaction, ids)
            if isinstance(order, RunByHand):
                done = await _run_by_hand(transaction, rows, order, by, dry_run=dry_run)
            else:
                done = await order_locked(transaction, rows, order, by, dry_run=dry_run)
            by_id = {row.job.job_id: each for row, each in zip(rows, done, strict=True)}
            return [by_id.get(job_id) for job_id in job_ids]


async def take_back(transaction: Transaction, jobs: Iterable[Existing], now: int) -> None:
    """To be called before these jobs' books close: takes back skips of ticks that have not come yet."""
    await _take_back(
        transaction,
        [(job, job.ahead_from, AHEAD) for job in jobs if job.ahead_from is not None and decided_ahead(job, now)],
        now,
    )


async def order_locked(
    transaction: Transaction, rows: list[Locked], order: JobOrder, by: str, *, dry_run: bool
) -> list[Controlled | Conflict]:
    planned: list[tuple[Locked, Ordered | Conflict]] = []
    starts = {} if isinstance(order, Cancel) else await latest_starts(transaction, [row.job for row in rows])
    for row in rows:
        plan = carry_out(row.standing._replace(latest=starts.get(row.job.job_id)), order, by, row.now)
        if isinstance(plan, OrderRefusal):
            planned.append((row, error_of(plan)))
        elif isinstance(plan, NotNext):
            planned.append((row, await _fate(transaction, row, plan)))
        else:
            planned.append((row, plan))
    changes = [(row, plan, plan.row) for row, plan in planned if isinstance(plan, Ordered) and plan.row is not None]
    cancelled: Counter[int] = Counter()
    if changes and not dry_run:
        cancelled = await _write(transaction, [(row, plan) for row, plan, _ in changes], order, by)
    jobs = await _jobs(transaction, [row.job.job_id for row, _ in planned])
    return [
        plan if isinstance(plan, Conflict)
        else Controlled(
            jobs[row.job.job_id], plan.row is not None, plan.details, row.execution_id, cancelled[row.job.job_id]
        )
        for row, plan in planned
    ]  # fmt: skip


async def latest_starts(transaction: Transaction, jobs: list[Existing]) -> dict[int, Start]:
    """By job. A statement of its own, to see what was committed while this transaction waited for the jobs' locks."""
    started = [(job.job_id, job.last_tick) for job in jobs if job.last_tick is not None]
    if not started:
        return {}
    job_ids, last_ticks = zip(*started, strict=True)
    records = await transaction.fetch(GetLatestStarts(job_ids=job_ids, last_ticks=last_ticks))
    return {record[0]: Start(*record[1:]) for record in records}


async def _write(
    transaction: Transaction, changes: list[tuple[Locked, Ordered]], order: JobOrder, by: str
) -> "Counter[int]":
    """Write the changes. Returns how many executions of each job are being cancelled."""
    now = max(row.now for row, _ in changes)
    ids = [row.job.job_id for row, _ in changes]
    await _write_rows(transaction, changes, by, now, forgets=isinstance(order, Resume | Restore))
    cancelled: Counter[int] = Counter()
    forgotten: Counter[int] = Counter()
    if isinstance(order, Cancel):
        # The jobs' rows are locked, so nothing is claimed, and nothing ends, from here on.
        cancelled = await _cancel_executions(transaction, ids, by, order)
        forgotten = Counter(record[0] for record in await transaction.fetch(ForgetActivations(job_ids=ids)))
    await _keep(transaction, changes, cancelled, forgotten, order_name(order), by, order.note, now)
    await tell(transaction, [row for row, _ in changes])
    return cancelled


async def _keep(
    transaction: Transaction, changes: list[tuple[Locked, Ordered]], cancelled: "Counter[int]",
    forgotten: "Counter[int]", order: Order, by: str, note: str, now: int,
) -> None:  # fmt: skip
    """Who did it, and what it did to each job: `cancelled` executions, and `forgotten` activations, by job."""
    details = {
        row.job.job_id: plan.details | _counts(running=cancelled[row.job.job_id], waiting=forgotten[row.job.job_id])
        for row, plan in changes
    }
    await add_actions(
        transaction,
        [Action(order, by, note, job_id=job_id, details=each) for job_id, each in details.items()],
        now,
    )
    await record(
        transaction,
        *[
            of_job(row.job.key, order_fields(row.standing.row), order_fields(plan.row) | details[row.job.job_id])
            for row, plan in changes
            if plan.row is not None
        ],
    )


async def _write_rows(
    transaction: Transaction, changes: list[tuple[Locked, Ordered]], by: str, now: int, *, forgets: bool
) -> None:
    """Write what orders make of jobs' rows and books. `forgets`: also forget the jobs' failures."""
    ids = [row.job.job_id for row, _ in changes]
    made = [plan.row for _, plan in changes if plan.row is not None]
    await _take_back(
        transaction, [(row.job, *plan.taken_back) for row, plan in changes if plan.taken_back is not None], now
    )
    await transaction.fetch(
        OrderJobs(
            now=now,
            actor=by,
            job_ids=ids,
            forgets=[forgets] * len(ids),
            next_ticks=[each.next_tick for each in made],
            next_run_ats=[each.next_run_at for each in made],
            paused_ats=[each.paused_at for each in made],
            paused_ticks=[each.paused_tick for each in made],
            paused_untils=[each.paused_until for each in made],
            paused_bys=[each.paused_by for each in made],
            paused_notes=[each.paused_note for each in made],
            cancelled_ats=[each.cancelled_at for each in made],
            cancelled_bys=[each.cancelled_by for each in made],
            cancelled_notes=[each.cancelled_note for each in made],
            ahead_froms=[each.ahead_from for each in made],
            ahead_untils=[each.ahead_until for each in made],
            orphaned_ticks=[each.orphaned_tick for each in made],
        )
    )
    await add_skips(transaction, [(row.job.job_id, plan.skipped) for row, plan in changes])
    closing = {row.job.job_id: plan.closes_at for row, plan in changes if plan.closes_at is not None}
    if closing:
        await transaction.fetch(CloseBooks(job_ids=list(closing), closes_ats=list(closing.values())))
    opening = {row.job.job_id: plan.opens_at for row, plan in changes if plan.opens_at is not None}
    if opening:
        await transaction.fetch(OpenBooks(job_ids=list(opening), opens_ats=list(opening.values())))


async def take_over(
    transaction: Transaction, keys: list[str], by: str, note: str, details: dict[str, object], now: int
) -> None:
    """New jobs of these keys are paused or cancelled as those removed before were. `details`: of the actions."""
    if not keys:
        return
    left = {record[0]: Left._make(record) for record in await transaction.fetch(GetLeft(keys=keys, now=now))}
    if not left:
        return
    rows = await lock_jobs(transaction, sorted(left))
    planned = [(row, plan_taking_over(row.standing, left[row.job.job_id], now)) for row in rows]
    await _write_rows(transaction, [(row, plan.ordered) for row, plan in planned], by, now, forgets=False)
    await add_actions(
        transaction,
        [
            Action(plan.action, by, note, job_id=row.job.job_id, details=plan.ordered.details | details)
            for row, plan in planned
        ],
        now,
    )


async def _run_by_hand(
    transaction: Transaction, rows: list[Locked], order: RunByHand, by: str, *, dry_run: bool
) -> list[Controlled | Conflict]:
    refusals = {row.job.job_id: refused(row.standing, Order.TRIGGER) for row in rows}
    fit = [row for row in rows if refusals[row.job.job_id] is None]
    made: dict[int, Activation] = {}
    if fit and not dry_run:
        made = await make_activations(transaction, fit, order, by)
        await tell(transaction, fit)
    jobs = await _jobs(transaction, [row.job.job_id for row in fit])
    done: list[Controlled | Conflict] = []
    for row in rows:
        job_id, refusal = row.job.job_id, refusals[row.job.job_id]
        if refusal is not None:
            done.append(error_of(refusal))
        else:
            done.append(Controlled(jobs[job_id], True, {}, row.execution_id, activation=made.get(job_id)))
    return done


async def make_activations(
    transaction: Transaction, rows: list[Locked], order: RunByHand, by: str, *, of_schedule: bool = False
) -> "dict[int, Activation]":
    """By job id. `of_schedule`: the runs count like those of ticks, also if they fail."""
    now = max(row.now for row in rows)
    ids = [row.job.job_id for row in rows]
    records = await transaction.fetch(
        RunJobsByHand(
            run_at=now,
            actor=by,
            payload=order.payload,
            of_schedule=of_schedule,
            job_ids=ids,
            ticks=[manual_tick(now)] * len(ids),
        )
    )
    found = await transaction.fetch(GetActivationsById(activation_ids=[record[0] for record in records]))
    made = {each.job.job_id: each for each in map(activation_of, found)}
    await add_actions(
        transaction,
        [
            Action(Order.TRIGGER, by, order.note, job_id=job_id, details={"activation": each.activation_id})
            for job_id, each in sorted(made.items())
        ],
        now,
    )
    await record(
        transaction, *[of_job(each.job.key, None, activation_fields(each)) for _, each in sorted(made.items())]
    )
    return made


async def _fate(transaction: Transaction, row: Locked, other: NotNext) -> Ordered | Conflict:
    """The answer for a tick that isn't next. If it was skipped by such an order before, nothing is to do; else a
    Conflict tells its fate.
    """
    key, tick = row.job.key, format_instant(other.tick)
    ((execution_id, reason),) = await transaction.fetch(GetFateOfTick(job_id=row.job.job_id, tick=other.tick))
    if execution_id is not None:
        return Conflict(
            f"tick {tick} of {key!r} has begun as execution {execution_id}; "
            f"`cronring executions cancel {execution_id}` stops that"
        )
    if reason == SkipReason.CANCELLED:
        return Ordered(None, {"tick": tick})
    if reason is not None:
        return Conflict(f"tick {tick} of {key!r} was skipped already: {reason}")
    return Conflict(f"{other.message}; give that one, or none")


async def _cancel_executions(transaction: Transaction, job_ids: list[int], by: str, order: Cancel) -> "Counter[int]":
    """Mark all running executions of these jobs. Returns how many of each job."""
    if not job_ids:
        return Counter()
    marking = CancelExecutionsOfJobs(job_ids=job_ids, actor=by, note=order.note)
    return Counter(record[0] for record in await transaction.fetch(marking))


async def _take_back(
    transaction: Transaction, jobs: list[tuple[Existing, int, tuple[SkipReason, ...]]], now: int
) -> None:
    if not jobs:
        return
    by_id = {job.job_id: job for job, _, _ in jobs}
    reasons = [reason.value for reason in jobs[0][2]]
    records = await transaction.fetch(
        TakeBackSkips(job_ids=list(by_id), from_ticks=[tick for _, tick, _ in jobs], now=now, reasons=reasons)
    )
    left: list[tuple[int, tuple[Skipped, ...]]] = [
        (job_id, taken_back(by_id[job_id], first_tick, SkipReason(reason), now))
        for job_id, reason, first_tick in records
    ]
    await add_skips(transaction, left, again=True)


async def _jobs(transaction: Transaction, job_ids: list[int]) -> dict[int, Job]:
    records = await transaction.fetch(GetCronJobsById(job_ids=job_ids))
    return {record[0]: job_of(record) for record in records}


async def tell(transaction: Transaction, rows: Sequence[Locked]) -> None:
    """Every controller hears of these jobs, once the transaction commits."""
    for name in dict.fromkeys(f"{row.namespace}/{row.module}" for row in rows):
        await transaction.fetch(NotifyJobs(payload=name))


def _counts(**counts: int) -> dict[str, object]:
    return {name: count for name, count in counts.items() if count}
