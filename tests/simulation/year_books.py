"""One job's year: what was due by the oracle, and what the rows say became of it."""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final

from cronring.controller.core.ledger.books import Span
from cronring.controller.core.orders.orders import Restore
from cronring.controller.store.memory.rows import SkipRow, StoredExecution, StoredJob
from cronring.schema.execution import OF_A_TICK
from tests.simulation.year_history import Pause, YearStore
from tests.simulation.year_oracle import Oracle, policy_of, slice_of

SPANS_TOLD: Final = 3


class Book:
    """`due`: every tick that has been decided, or ought to be. `skips`: by tick."""

    def __init__(self, store: YearStore, job: StoredJob, oracle: Oracle, now_us: int) -> None:
        self.job = job
        self.now_us = now_us
        self.oracle = oracle
        self.spans = store.spans[job.job_id]
        self.orders = [order for order in store.orders if order.job_id == job.job_id]
        restored = {order.span for order in self.orders if isinstance(order.given, Restore)}
        for number, (before, after) in enumerate(pairwise(self.spans), 1):
            ends = after.from_at + 1 if before.until_at is None else before.until_at
            whole = ends == after.from_at or (number in restored and ends < after.from_at)
            assert whole, f"{job.key}: its books have a hole, {self.spans}"
        self.due_of = [oracle.ticks(span, _decided_until(span, job, now_us)) for span in self.spans]
        self.due = [tick for due in self.due_of for tick in due]
        self.executions = [row for row in store.executions.values() if row.job is job]
        self.of_tick = {row.tick: row for row in self.executions if row.trigger in OF_A_TICK}
        self.of_ticks = sorted(self.of_tick.values(), key=lambda row: row.tick)
        taking = (row for row in self.executions if row.holds_job or row.counted)
        self._taking = sorted(taking, key=lambda row: row.claimed_at)
        self._claims = [row.claimed_at for row in self._taking]
        self._ended_us = store.ended_us
        self._longest_us = max(
            (
                max(ended_at(row, now_us), self._ended_us.get(row.execution_id, now_us)) - row.claimed_at
                for row in self._taking
            ),
            default=0,
        )
        self.ranges = [row for row in store.skips if row.job_id == job.job_id]
        self.pauses: list[Pause] = [pause for pause in store.pauses if pause.job_id == job.job_id]
        self.skips: dict[int, SkipRow] = {}

    def check_accounts(self) -> None:
        """Nothing unaccounted, nothing twice, nothing that was not due; and counts are right."""
        for row in self.ranges:
            ticks = slice_of(self.due, row.skipped.first_tick, row.skipped.last_tick)
            assert len(ticks) == row.skipped.ticks, self.says(f"{row.skipped} counts wrong, its ticks are {ticks[:20]}")
            assert row.skipped.first_tick == ticks[0], self.says(f"{row.skipped} begins at no tick")
            assert row.skipped.last_tick == ticks[-1], self.says(f"{row.skipped} ends at no tick")
            for tick in ticks:
                assert tick not in self.skips, self.says(f"{tick} is skipped twice: {self.skips.get(tick)}, {row}")
                self.skips[tick] = row
        missing = [tick for tick in self.due if tick not in self.of_tick and tick not in self.skips]
        assert not missing, self.says(f"unaccounted: {missing[:10]} of {len(missing)}, next is {self.job.next_tick}")
        twice = [tick for tick in self.skips if tick in self.of_tick]
        assert not twice, self.says(f"executed and skipped: {twice[:10]}, {self.skips[twice[0]] if twice else ''}")
        strange = self.of_tick.keys() - set(self.due)
        assert not strange, self.says(f"not due by the oracle: {sorted(strange)[:10]}")

    def says(self, what: str) -> str:
        told = [tuple(span) for span in self.spans[-SPANS_TOLD:]]
        return f"{self.job.key}: {what}; its last of {len(self.spans)} schedules are {told}"

    def span_of(self, tick: int) -> Span:
        """The one in whose books a decided tick is."""
        return self.spans[self.index_of(tick)]

    def came_due_by(self, tick: int) -> list[Span]:
        """The tick's span, and those before it of the same schedule: what has come due stays due (redeploy.py).

        The books of a span begin with the first tick that nobody had decided, which may have passed long since.
        """
        at = first = self.index_of(tick)
        while first > 0 and self.spans[first - 1].schedule == self.spans[at].schedule:
            first -= 1
        return self.spans[first : at + 1]

    def index_of(self, tick: int) -> int:
        return next(at for at, due in enumerate(self.due_of) if due and due[0] <= tick <= due[-1])

    def policy_at(self, tick: int) -> dict[str, object]:
        return policy_of(self.span_of(tick).policy)

    def running_at(self, from_us: int, until_us: int) -> list[StoredExecution]:
        """Executions that take a place, of which some part lies in [from, until]."""
        return [
            row for row in self._claimed(from_us - self._longest_us, until_us) if ended_at(row, self.now_us) >= from_us
        ]

    def taking_places(self, from_us: int, until_us: int) -> list[StoredExecution]:
        """By PostgreSQL's books: one that has ended keeps its place until its end is committed."""
        found = self._claimed(from_us - self._longest_us, until_us)
        return [row for row in found if self._ended_us.get(row.execution_id, self.now_us) >= from_us]

    def _claimed(self, from_us: int, until_us: int) -> list[StoredExecution]:
        return self._taking[bisect_left(self._claims, from_us) : bisect_right(self._claims, until_us)]

    def next_due(self, tick: int) -> int | None:
        at = bisect_right(self.due, tick)
        return self.due[at] if at < len(self.due) else None

    def due_before(self, tick: int) -> int | None:
        at = bisect_left(self.due, tick)
        return self.due[at - 1] if at else None


def brief(row: StoredExecution) -> str:
    return (
        f"execution {row.execution_id} of {row.tick}.{row.attempt} ({row.trigger}, run_at {row.run_at}, "
        f"claimed {row.claimed_at}, {row.outcome}, ended {row.report and row.report.ended_at}, retry {row.retry_at})"
    )


def ended_at(row: StoredExecution, now_us: int) -> int:
    """By its report; that a run was lost is known from when it was declared on."""
    return now_us if row.report is None else row.report.ended_at


def _decided_until(span: Span, job: StoredJob, now_us: int) -> int:
    if span.until_at is not None:
        return span.until_at
    ends = job.paused_until is not None
    undecided = job.orphaned_tick if job.orphaned else job.next_tick
    if job.paused and not ends:
        undecided = job.paused_tick
    if job.executing and not job.paused and undecided is not None and (job.last_tick or 0) >= undecided:
        return job.last_tick or 0
    # What was decided ahead may be the last of all its ticks.
    return max(now_us, job.ahead_until or 0) if undecided is None else undecided - 1
