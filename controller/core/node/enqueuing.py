"""Ticks that are completed once their messages are in their queues. They need no runner, and no execution is held. One
statement enqueues the message and moves the job to its next tick. So a job that is due each second costs one row of a
statement each time.
"""

from itertools import islice

from cronring.controller.core import ticks
from cronring.controller.core.model import EnqueueRequest, EnqueueResult, Execution
from cronring.controller.core.node.activating import Activating
from cronring.controller.core.node.collecting import Collecting
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Enqueue, Level
from cronring.controller.core.node.events import Enqueued, StoreFailed
from cronring.controller.core.node.follow_ups import NONE, ClaimInDoubt, FollowUps, RowNewer
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.putting_off import (
    CONTENDED_BASE_MS,
    CONTENDED_CAP_MS,
    REFUSED_RETRY_US,
    put_off,
)
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.window import DueWindow, Duty, Entry, Stage
from cronring.schema.execution import Trigger
from cronring.schema.timetable import Due, PlannedTick

Batch = list[tuple[Entry, EnqueueRequest]]


class Enqueuing:
    """Entries that are due, and statements under way."""

    __slots__ = (
        "_activating",
        "_batch",
        "_collecting",
        "_context",
        "_failures",
        "_holding",
        "_in_flight",
        "_lease",
        "_not_before_ns",
        "_ready",
        "_skipping",
        "_window",
    )

    def __init__(
        self,
        context: NodeContext,
        window: DueWindow,
        lease: Lease,
        skipping: Skipping,
        holding: Holding,
        activating: Activating,
        collecting: Collecting,
    ) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._skipping = skipping
        self._holding = holding
        self._activating = activating
        self._collecting = collecting
        self._ready: dict[int, Entry] = {}
        self._in_flight: dict[int, Batch] = {}
        self._batch = context.settings.claim_batch
        self._failures = 0
        self._not_before_ns = 0

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def idle(self) -> bool:
        return not self._in_flight

    def take_in(self, entry: Entry) -> None:
        """The entry is due."""
        self._window.move_to(entry, Stage.READY)
        self._ready[entry.job.job_id] = entry

    def next_deadline(self) -> int | None:
        return self._not_before_ns if self._ready and self._context.now_ns < self._not_before_ns else None

    def act(self) -> None:
        context = self._context
        if not self._lease.may_claim or context.now_ns < self._not_before_ns:
            return
        while self._ready and len(self._in_flight) < context.settings.claims_in_flight:
            self._send([self._ready.pop(job_id) for job_id in list(islice(self._ready, self._batch))])

    def _send(self, entries: list[Entry]) -> None:
        context, now_us, batch = self._context, self._context.now_us, Batch()
        for entry in entries:
            if not self._window.waits(entry, Stage.READY):
                continue
            planned = entry.planned
            assert planned is not None, "ready without being due"
            decision = ticks.due(entry.job, planned, now_us)
            if decision.run is None:
                self._skipping.skip(entry, decision.skipped, decision.next)
            else:
                entry.stage = Stage.CLAIMING
                batch.append((entry, _request(entry, decision.run, decision, now_us)))
        if not batch:
            return
        batch.sort(key=_job_id)
        request_id = context.request(self)
        self._in_flight[request_id] = batch
        requests = [request for _, request in batch]
        context.stats.claims_attempted += len(requests)
        context.effects.append(Enqueue(request_id, requests))

    def enqueued(self, event: Enqueued) -> FollowUps:
        """Wait for the next ticks of what was won, and again for the rest."""
        batch = self._in_flight.pop(event.request_id)
        self._failures = 0
        self._batch = self._context.settings.claim_batch
        newer = False
        for (entry, request), result in zip(batch, event.results, strict=True):
            if result.updated:
                newer = newer or result.revision != entry.job.revision
                self._won(entry, request, result)
                continue
            self._context.stats.claims_wasted += 1
            if not result.active:
                self._window.forget(request.job_id)
            else:
                newer = put_off(self._context, self._window, entry, request, result) or newer
        return (RowNewer(),) if newer else NONE

    def _won(self, entry: Entry, request: EnqueueRequest, result: EnqueueResult) -> None:
        stats = self._context.stats
        stats.claims_won += 1
        if self._window.duty(entry) is not Duty.PRIMARY:
            stats.backup_claims += 1
            lateness_ms = (result.claimed_at - request.run_at) / 1_000
            self._context.log(Level.WARNING, "backup_claimed", job=entry.job.key, lateness_ms=lateness_ms)
        entry.retries = 0
        if result.refused:
            self._hold(entry, request, result)
            return
        stats.ended += 1
        if result.followers:
            self._activating.follow(result.followers)
        self._window.reset(entry, executing=False, tick=result.next_tick, run_at=result.next_run_at)

    def _hold(self, entry: Entry, request: EnqueueRequest, result: EnqueueResult) -> None:
        """PostgreSQL refused the message, so the execution fails. It is held until that report is fetched."""
        assert result.execution_id is not None, "a claim without an execution"
        entry.stage = Stage.RUNNING
        entry.changed_ns = self._context.now_ns
        execution = Execution(
            result.execution_id,
            entry.job,
            request.run_tick,
            request.run_at,
            result.claimed_at,
            1,
            request.trigger,
            entry.job.deployment,
            "",
            payload=entry.job.payload,
        )
        self._holding.hold(execution, stale=result.revision != entry.job.revision)
        self._collecting.ask_soon()

    def failed(self, event: StoreFailed) -> FollowUps:
        """The statement may have been committed. The next try tells: the rows have later ticks then."""
        batch, context = self._in_flight.pop(event.request_id), self._context
        self._failures += 1
        # A message that takes too long must not block the others for ever: halved batches leave it alone in the end.
        self._batch = max(1, len(batch) // 2)
        context.log(Level.WARNING, "enqueue_failed", jobs=len(batch), reason=event.reason)
        backoff_ns = context.backoff_ns(self._failures, CONTENDED_BASE_MS, CONTENDED_CAP_MS)
        self._not_before_ns = context.now_ns + backoff_ns
        alone = len(batch) == 1 and not event.connection_lost
        for entry, request in batch:
            if self._window.entries.get(request.job_id) is not entry:
                continue
            if alone:
                self._window.retry_at(entry, context.now_us + REFUSED_RETRY_US)
            elif len(batch) == 1:
                self._window.retry_at(entry, context.now_us + CONTENDED_CAP_MS * 1_000)
            else:
                self.take_in(entry)
        return (ClaimInDoubt(),)


def _request(entry: Entry, run: PlannedTick, decision: Due, now_us: int) -> EnqueueRequest:
    job, tick = entry.job, entry.tick
    assert tick is not None, "ready without a tick"
    trigger = Trigger.CATCH_UP if decision.caught_up else Trigger.SCHEDULE
    following = ticks.after_enqueue(job, run, now_us)
    next_tick, next_run_at = following.next or (None, None)
    return EnqueueRequest(
        job.job_id,
        tick,
        run.tick,
        run.run_at,
        job.deployment,
        decision.skipped,
        trigger,
        following.skipped,
        next_tick,
        next_run_at,
        job.revision,
    )


def _job_id(pair: tuple[Entry, EnqueueRequest]) -> int:
    return pair[1].job_id
