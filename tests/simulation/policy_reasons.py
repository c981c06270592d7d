"""Whether a skipped tick's reason can be true, in a world of faults whose clock is set."""

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, assert_never

from cronring.controller.core.orders.orders import SkipNext
from cronring.controller.core.ticks import RETRY_PATIENCE_US
from cronring.controller.store.memory.rows import SkipRow, StoredExecution
from cronring.schema.duration import parse_duration
from cronring.schema.execution import Outcome, SkipReason
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.timetable import MISSED_AFTER, timetable
from tests.simulation.year_books import Book
from tests.simulation.year_oracle import is_cron, slice_of

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND_US: Final = 1_000_000
AT_ONCE_US: Final = 100_000


class Reasons:
    """Judges the skips of one job's books.

    `_slack`: how far instants may be apart, as PostgreSQL's clock was set, and as controllers estimate it.
    """

    def __init__(self, world: "World", book: Book) -> None:
        self._world = world
        self._book = book
        self._slack = world.database.stepped_all_us + world.database.estimates_off_us + AT_ONCE_US
        self._ticks = [each.tick for each in book.of_ticks]
        self._claimed: dict[int, list[StoredExecution]] = {}
        for each in book.of_ticks:
            self._claimed.setdefault(each.claimed_at, []).append(each)
        self._skip_orders = [order for order in book.orders if isinstance(order.given, SkipNext)]

    def check(self) -> None:
        for row in self._book.ranges:
            ticks = slice_of(self._book.due, row.skipped.first_tick, row.skipped.last_tick)
            plausible = self._is_plausible(row, ticks)
            assert plausible, self._book.says(f"no reason for {row}, ticks {ticks[:5]}")
            if row.skipped.reason is SkipReason.OVERLAP:
                self._check_buffer(row)

    def _is_plausible(self, row: SkipRow, ticks: list[int]) -> bool:
        reason = row.skipped.reason
        match reason:
            case SkipReason.PAUSED:
                plausible = all(self._was_paused(row, tick) for tick in ticks)
            case SkipReason.MISSED_POLICY:
                plausible = all(self._was_missed(row, tick) for tick in ticks)
            case SkipReason.SUPERSEDED:
                plausible = self._was_superseded(row)
            case SkipReason.OVERLAP:
                plausible = all(self._overlapped(row, tick) for tick in ticks)
            case SkipReason.NO_RUNNER:
                plausible = self._had_no_runner(row)
            case SkipReason.OUTSIDE_WINDOW | SkipReason.NO_VERB:
                plausible = True  # see check_windows, check_orphans
            case SkipReason.DEPLOYMENT_REMOVED:
                plausible = self._closes(row)
            case SkipReason.CANCELLED:
                plausible = self._closes(row) or self._was_skipped_by_hand(row)
            case _:
                assert_never(reason)
        return plausible

    def _was_skipped_by_hand(self, row: SkipRow) -> bool:
        return row.skipped.ticks == 1 and any(order.tick == row.skipped.first_tick for order in self._skip_orders)

    def _policy(self, tick: int) -> Policy:
        return parse_policy(self._book.span_of(tick).policy)

    def _early_us(self, tick: int) -> int:
        """How long before its tick a run may start."""
        span = self._book.span_of(tick)
        if is_cron(span.schedule) or "±" not in parse_policy(span.policy).jitter:
            return 0
        return (timetable(span.schedule, span.anchor, span.policy).interval_us or 0) // 2

    def _closes(self, row: SkipRow) -> bool:
        """An operator or a deployment wrote it as they closed these books."""
        until = self._book.span_of(row.skipped.first_tick).until_at
        return row.controller_id == "" and until is not None

    def _by_order(self, row: SkipRow) -> bool:
        """An operator's order wrote it, by the row of the job as it stood."""
        return row.controller_id == "" and any(order.at == row.decided_at for order in self._book.orders)

    def _next(self, tick: int) -> int:
        """By then the tick's jitter is over."""
        following = self._book.next_due(tick)
        return self._book.now_us if following is None else following

    def _was_paused(self, row: SkipRow, tick: int) -> bool:
        """What came due before the pause had not been decided yet: its job ran, or nobody could claim it."""
        for pause in self._book.pauses:
            until = self._book.now_us if pause.until is None else pause.until
            if not pause.since - self._slack <= row.decided_at <= until + self._slack or tick > until + self._slack:
                continue
            begun = max(tick, self._next(tick)) >= pause.since - self._slack
            if begun or tick < self._world.settled_us or self._running(tick, pause.since):
                return True
        return False

    def _running(self, from_us: int, until_us: int) -> list[StoredExecution]:
        """Of a lost run nobody knows when it ended; only that it had when that was committed."""
        found = self._book.running_at(from_us - self._slack, until_us + self._slack)
        return found or [row for row in self._places_taken(from_us) if row.outcome is Outcome.LOST]

    def _was_missed(self, row: SkipRow, tick: int) -> bool:
        policy = self._policy(tick)
        age = row.decided_at - tick + self._early_us(tick) + self._slack
        if policy.catch_up_window and age > parse_duration(policy.catch_up_window) * 1_000:
            return True
        return policy.on_missed == "skip" and age > MISSED_AFTER

    def _was_superseded(self, row: SkipRow) -> bool:
        """In the statement that claimed a later one; or a run before it was late, and it came too soon after."""
        if self._closes(row):
            return True
        last = row.skipped.last_tick
        together = [each for each in self._claimed.get(row.decided_at, ()) if each.tick > last]
        if together or (row.controller_id == "" and not self._by_order(row)):
            return bool(together)
        at = bisect_left(self._ticks, row.skipped.first_tick)
        return (
            at > 0
            and is_cron(self._book.span_of(last).schedule)
            and (last < self._book.of_ticks[at - 1].claimed_at + SECOND_US + self._slack)
        )

    def _overlapped(self, row: SkipRow, tick: int) -> bool:
        if self._closes(row) or self._by_order(row):
            return bool(self._places_taken(row.decided_at))
        policy = self._policy(tick)
        if policy.overlap == "allow":
            taken = self._places_taken(row.decided_at)
            return len(taken) >= policy.concurrency or any(each.holds_job for each in taken)
        # A claim takes the job's place while it is under way: what comes due meanwhile, its end finds.
        claim_us = self._world.database.trouble.slowest_us
        running = self._running(tick - self._early_us(tick), self._next(tick) + claim_us)
        return bool(running) or self._was_kept(tick, row.decided_at) or self._awaited_retry(tick, row.decided_at)

    def _awaited_retry(self, tick: int, decided_at: int) -> bool:
        """Where the first failure pauses the job, a tick waits for the retry before it: that may begin later.

        Or a run that somebody asked for begins in place of it.
        """
        if all(parse_policy(span.policy).pause_after_failures != 1 for span in self._book.came_due_by(tick)):
            return False
        taken = [each for each in self._places_taken(decided_at) if tick <= each.claimed_at <= decided_at]
        waited = any(
            each.of_schedule and each.tick < tick and each.retry_at is not None
            and tick <= each.retry_at + RETRY_PATIENCE_US + self._slack
            for each in self._book.executions
        )  # fmt: skip
        return any(each.attempt > 1 and each.tick < tick for each in taken) or (waited and bool(taken))

    def _was_kept(self, tick: int, decided_at: int) -> bool:
        """For a run of its own; then the policy was changed, and a run of an earlier tick ended."""
        policies = [parse_policy(span.policy) for span in self._book.spans]
        if not any(each.on_missed == "run_all" or each.overlap == "buffer_all" for each in policies):
            return False
        return any(each.tick < tick <= each.claimed_at <= decided_at for each in self._places_taken(decided_at))

    def _places_taken(self, at_us: int) -> list[StoredExecution]:
        return self._book.taking_places(at_us - self._slack, at_us + self._slack)

    def _had_no_runner(self, row: SkipRow) -> bool:
        grace_us = self._world.settings.runner_grace_ms * 1_000
        first = row.skipped.first_tick
        waited = row.decided_at - first + self._early_us(first) + self._slack >= grace_us
        return waited and first < self._world.settled_us

    def _check_buffer(self, row: SkipRow) -> None:
        """What overlapped under a policy that keeps the latest: a later one came due. buffer_all keeps all."""
        span = self._book.span_of(row.skipped.first_tick)
        policy = parse_policy(span.policy)
        if self._closes(row) or policy.overlap not in {"buffer_one", "buffer_all", "cancel_running"}:
            return
        assert policy.overlap != "buffer_all", self._book.says(f"{row} was not kept by buffer_all")
        table = timetable(span.schedule, span.anchor, span.policy)
        kept = table.following_open(self._book.job.key, row.skipped.last_tick)
        soon = kept is not None and kept.run_at <= row.decided_at + self._slack
        assert soon, self._book.says(f"{row}, and nothing is kept for after the run; next is {kept}")


def check_reasons(world: "World", book: Book) -> None:
    Reasons(world, book).check()
