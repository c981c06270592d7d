"""What an operator's order does to a job that is there: pure, one answer for memory and PostgreSQL alike.

An order reads the job under its row's lock, and says what to write into the row and into the books. An order that finds
the job as wanted changes nothing.
"""

from typing import NamedTuple

from cronring.controller.core.orders.ahead import AHEAD
from cronring.controller.core.orders.control import Start, distant, plan_pause, plan_resume
from cronring.controller.core.orders.orphaning import upcoming
from cronring.controller.core.orders.redeploy import (
    Existing,
    closed,
    closes_at,
    decided_ahead,
    first_planned,
    hold,
    not_before,
    went_on,
)
from cronring.controller.core.orders.states import Order, State, allowed, refusal, state_of
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import format_instant
from cronring.schema.newer import newer_job, unread_of
from cronring.schema.schedule import MANUAL
from cronring.schema.timetable import PlannedTick, Timetable, timetable


class Pause(NamedTuple):
    """No tick runs. Ticks before `until` (None: until somebody resumes the job) are skipped as paused.

    `note` "": as it was.
    """

    note: str = ""
    until: int | None = None


class Resume(NamedTuple):
    note: str = ""


class SkipNext(NamedTuple):
    """Skip the next tick that would run. `tick`: the tick that the caller expects it to be; None: any."""

    tick: int | None = None
    note: str = ""


class Cancel(NamedTuple):
    """Nothing runs until somebody restores the job. Its executions are cancelled, its activations forgotten."""

    note: str = ""


class Restore(NamedTuple):
    note: str = ""


JobOrder = Pause | Resume | SkipNext | Cancel | Restore


class OrderColumns(NamedTuple):
    """The columns of a job that orders set."""

    next_tick: int | None
    next_run_at: int | None
    paused_at: int | None = None
    paused_tick: int | None = None
    paused_until: int | None = None
    paused_by: str | None = None
    paused_note: str | None = None
    cancelled_at: int | None = None
    cancelled_by: str | None = None
    cancelled_note: str | None = None
    ahead_from: int | None = None
    ahead_until: int | None = None
    orphaned_tick: int | None = None


class OrderTarget(NamedTuple):
    """A job as an order finds it. `running`: an execution holds it, or is counted by it. `latest`: start, if known."""

    job: Existing
    row: OrderColumns
    running: bool
    last_outcome: str | None
    latest: Start | None = None

    @property
    def state(self) -> State:
        return state_of(
            cancelled=self.job.cancelled,
            paused=self.job.paused,
            running=self.running,
            has_next_tick=self.job.next_tick is not None,
            last_outcome=self.last_outcome,
            orphaned=self.job.orphaned,
            by_hand=self.job.schedule == MANUAL,
        )


class Ordered(NamedTuple):
    """What an order writes. `row` None: nothing, as the job is so already.

    `taken_back`: a tick and reasons. Skipped ranges from that tick on, with one of these reasons, are cut at now.
    `closes_at`, `opens_at`: where the job's books end, and where new ones begin. `details`: kept with the action.
    """

    row: OrderColumns | None
    details: dict[str, object]
    skipped: tuple[Skipped, ...] = ()
    taken_back: tuple[int, tuple[SkipReason, ...]] | None = None
    closes_at: int | None = None
    opens_at: int | None = None


class OrderRefusal(NamedTuple):
    """An order that isn't carried out. `state`: what the job is, if that is why."""

    key: str
    order: Order
    state: State | None
    message: str


class NotNext(NamedTuple):
    """The tick that was to be skipped isn't the one that is next. The books tell what became of it."""

    key: str
    tick: int
    upcoming: int

    @property
    def message(self) -> str:
        return f"the next tick of {self.key!r} is {format_instant(self.upcoming)}, and not {format_instant(self.tick)}"


def order_of(order: JobOrder) -> Order:
    match order:
        case Pause():
            return Order.PAUSE
        case Resume():
            return Order.RESUME
        case SkipNext():
            return Order.SKIP_NEXT
        case Cancel():
            return Order.CANCEL
        case Restore():
            return Order.RESTORE


def refused(standing: OrderTarget, order: Order) -> OrderRefusal | None:
    """None: the job's state allows it."""
    key, state = standing.job.key, standing.state
    return None if allowed(state, order) else OrderRefusal(key, order, state, refusal(key, state, order))


def carry_out(standing: OrderTarget, order: JobOrder, by: str, now: int) -> Ordered | OrderRefusal | NotNext:
    """What to write, or why nothing is written."""
    refusing = refused(standing, order_of(order))
    if refusing is not None:
        return refusing
    if unread_of(standing.job.schedule, standing.job.policy):  # docs/decisions/0086
        message = f"{standing.job.key!r}: {newer_job(standing.job.schedule, standing.job.policy)}"
        return OrderRefusal(standing.job.key, order_of(order), None, message)
    return _of_orphan(standing, order, by, now) if standing.job.orphaned else _of_any(standing, order, by, now)


# docs/decisions/0048: planned as if its verb were back
def _of_orphan(standing: OrderTarget, order: JobOrder, by: str, now: int) -> Ordered | OrderRefusal | NotNext:
    """Plan as if the job's verb were back. But its next tick stays in `orphaned_tick`."""
    planned, skipped = upcoming(standing.job, now)
    tick, run_at = planned or (None, None)
    hosted = standing._replace(
        job=standing.job._replace(orphaned=False, orphaned_tick=None, next_tick=tick),
        row=standing.row._replace(orphaned_tick=None, next_tick=tick, next_run_at=run_at),
    )  # fmt: skip
    plan = _of_any(hosted, order, by, now)
    if not isinstance(plan, Ordered) or plan.row is None:
        return plan
    row = plan.row._replace(next_tick=None, next_run_at=None, orphaned_tick=plan.row.next_tick)
    return plan._replace(row=row, skipped=(*skipped, *plan.skipped))


def _of_any(standing: OrderTarget, order: JobOrder, by: str, now: int) -> Ordered | OrderRefusal | NotNext:
    match order:
        case Pause():
            return _pause(standing, order, by, now)
        case Resume():
            return _resume(standing, now)
        case SkipNext():
            return _skip_next(standing, order, now)
        case Cancel():
            return _cancel(standing, order, by, now)
        case Restore():
            return _restore(standing, now)


def _pause(standing: OrderTarget, order: Pause, by: str, now: int) -> Ordered:
    job, row = standing.job, standing.row
    note = order.note or (row.paused_note or "" if job.paused else "")
    if job.paused and (note, order.until) == (row.paused_note or "", job.paused_until):
        return Ordered(None, {})
    table = _table(job)
    first, freed = _without_pause(standing, table, now) if job.paused else (_first(standing, table), None)
    first, owed = _behind_run(standing, table, first, now)
    ahead_from, ahead_until = _ahead_without_pause(job, table) if job.paused else (job.ahead_from, job.ahead_until)
    paused = OrderColumns(
        None, None, row.paused_at if job.paused else now, None if first is None else first.tick, order.until, by, note,
        ahead_from=ahead_from, ahead_until=ahead_until,
    )  # fmt: skip
    held = None if first is None or order.until is None else hold(table, job.key, first, order.until)
    if held is None:
        return Ordered(paused, _told(until=order.until), owed, taken_back=freed)
    (tick, run_at), superseded = _distant(standing, held.next_tick, held.next_run_at)
    paused = paused._replace(next_tick=tick, next_run_at=run_at, paused_tick=held.paused_tick)
    if held.paused_tick is not None:
        chained = ahead_until is not None and ahead_until > max(now, job.last_tick or 0)
        paused = paused._replace(
            ahead_from=ahead_from if chained else held.paused_tick, ahead_until=held.ahead_until
        )  # fmt: skip
    ticks = sum(part.ticks for part in held.skipped)
    return Ordered(paused, _told(until=order.until, ticks=ticks), owed + held.skipped + superseded, freed)


def _resume(standing: OrderTarget, now: int) -> Ordered:
    job, row = standing.job, standing.row
    if not job.paused and (row.paused_until is None or row.paused_until <= now):
        return Ordered(None, {})
    if not job.paused:  # it was over, and by a clock that was set back it seems not to be
        return Ordered(
            OrderColumns(row.next_tick, row.next_run_at, ahead_from=row.ahead_from, ahead_until=row.ahead_until), {}
        )  # fmt: skip
    table = _table(job)
    ahead_from, ahead_until = _ahead_without_pause(job, table)
    if job.paused_until is None:
        # Ticks that were decided ahead before the pause stay decided: they come before the pause's first tick.
        planned = plan_resume(job._replace(ahead_from=None, ahead_until=None), standing.latest, now)
        return Ordered(
            OrderColumns(planned.next_tick, planned.next_run_at, ahead_from=ahead_from, ahead_until=ahead_until),
            _told(ticks=sum(part.ticks for part in planned.skipped)), planned.skipped,
        )  # fmt: skip
    first, freed = _without_pause(standing, table, now)
    (tick, run_at), superseded = _distant(standing, *(not_before(first, now) or (None, None)))
    return Ordered(OrderColumns(tick, run_at, ahead_from=ahead_from, ahead_until=ahead_until), {}, superseded, freed)


def _skip_next(standing: OrderTarget, order: SkipNext, now: int) -> Ordered | OrderRefusal | NotNext:
    job, table = standing.job, _table(standing.job)
    upcoming, owed = _behind_run(standing, table, _first(standing, table), now)
    first = None if upcoming is None else upcoming.tick
    planned = None if first is None else table.following_open(job.key, first - 1)
    if first is None or planned is None:
        message = f"{job.key!r} has no tick to come that could be skipped; `cronring jobs show` tells its schedule"
        return OrderRefusal(job.key, Order.SKIP_NEXT, None, message)
    # A caller that repeats its call names the tick, so that no second tick is skipped.
    if order.tick is not None and order.tick != planned.tick:
        return NotNext(job.key, order.tick, planned.tick)
    outside = table.owed(first, planned.tick - 1, SkipReason.OUTSIDE_WINDOW) if first < planned.tick else ()
    (following, run_at), superseded = _distant(standing, *(table.following(job.key, planned.tick) or (None, None)))
    chained = decided_ahead(job, now)
    # The skip is booked ahead of its time. If the books close before the tick comes, the skip is taken back.
    ahead = planned.tick > now
    return Ordered(
        OrderColumns(
            following, run_at,
            ahead_from=job.ahead_from if chained else first if ahead else None,
            ahead_until=planned.tick if ahead else job.ahead_until if chained else None,
        ),
        _told(tick=planned.tick),
        (*owed, *outside, Skipped(SkipReason.CANCELLED, planned.tick, planned.tick, 1), *superseded),
    )  # fmt: skip


def _cancel(standing: OrderTarget, order: Cancel, by: str, now: int) -> Ordered:
    job, row = standing.job, standing.row
    if job.cancelled:
        if order.note in {"", row.cancelled_note or ""}:
            return Ordered(None, {})
        return Ordered(row._replace(cancelled_by=by, cancelled_note=order.note), {})
    skipped = closed(job, now, SkipReason.CANCELLED)
    # The books end now. So skips of ticks that have not come yet are taken back.
    freed = (job.ahead_from, AHEAD) if decided_ahead(job, now) and job.ahead_from is not None else None
    return Ordered(
        OrderColumns(None, None, cancelled_at=now, cancelled_by=by, cancelled_note=order.note),
        _told(ticks=sum(part.ticks for part in skipped)), skipped, freed, closes_at=closes_at(job, now),
    )  # fmt: skip


def _restore(standing: OrderTarget, now: int) -> Ordered:
    """Its schedule begins anew: ticks that passed while it was cancelled were not due."""
    job = standing.job
    if not job.cancelled:
        return Ordered(None, {})
    # docs/decisions/0017: behind all decided ticks, even if the clock was set back since.
    opens_at = max(now, job.opened_at, job.last_tick or 0)
    (tick, run_at), superseded = _distant(standing, *(first_planned(_table(job), job.key, opens_at) or (None, None)))
    return Ordered(OrderColumns(tick, run_at), _told(next_tick=tick), superseded, opens_at=opens_at)


def _table(job: Existing) -> Timetable:
    return timetable(job.schedule, job.anchor, job.policy)


def _distant(
    standing: OrderTarget, tick: int | None, run_at: int | None
) -> tuple[tuple[int | None, int | None], tuple[Skipped, ...]]:
    """The tick for the row: this one, or a later one if this came too soon behind the latest start. And the ticks
    skipped for it.
    """
    planned = None if tick is None or run_at is None else PlannedTick(tick, run_at)
    kept, superseded = distant(standing.job, planned, standing.latest)
    return kept or (None, None), superseded


def _first(standing: OrderTarget, table: Timetable) -> PlannedTick | None:
    """The first tick that nobody has decided. If it is the row's next tick, it has the row's run_at."""
    job = standing.job
    tick = plan_pause(job)
    if tick is None:
        return None
    if tick == standing.row.next_tick and standing.row.next_run_at is not None:
        return PlannedTick(tick, standing.row.next_run_at)
    return table.following(job.key, tick - 1)


def _behind_run(
    standing: OrderTarget, table: Timetable, first: PlannedTick | None, now: int
) -> tuple[PlannedTick | None, tuple[Skipped, ...]]:
    """`first`. But if a run is going on that overlaps due ticks, the tick behind them, and the skips of them.

    Those ticks overlapped before the order, so the order must not change their reason.
    """
    job = standing.job
    if not job.executing or job.paused or first is None or first.tick > now or not table.loses_overlapped:
        return first, ()
    return table.following(job.key, now), closed(job, now)


def _without_pause(
    standing: OrderTarget, table: Timetable, now: int
) -> tuple[PlannedTick | None, tuple[int, tuple[SkipReason, ...]] | None]:
    """Of a paused job: the first tick that would be undecided without its pause, and what the books take back."""
    job, row = standing.job, standing.row
    if job.paused_until is None:
        return None if job.paused_tick is None else table.following(job.key, job.paused_tick - 1), None
    if job.paused_tick is None:  # the pause ends before its first tick
        if row.next_tick is None:
            return None, None
        return table.following(job.key, row.next_tick - 1), None
    if went_on(job):  # it was over, and by a clock that was set back it seems not to be
        return _first(standing, table), None
    return table.following(job.key, max(job.paused_tick - 1, now)), (job.paused_tick, (SkipReason.PAUSED,))


def _ahead_without_pause(job: Existing, table: Timetable) -> tuple[int | None, int | None]:
    """What stays decided ahead when the pause's ticks are taken back: ticks before the pause."""
    if job.paused_until is None or job.paused_tick is None or job.ahead_from is None:
        return job.ahead_from, job.ahead_until
    if job.ahead_from >= job.paused_tick:
        return None, None
    return job.ahead_from, table.schedule.last_at_or_before(job.paused_tick - 1)


def _told(**details: int | None) -> dict[str, object]:
    """Details for the action: instants as texts, without what is None."""
    return {
        name: value if name == "ticks" else format_instant(value)
        for name, value in details.items()
        if value is not None
    }
