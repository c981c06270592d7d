"""From due to claimed.

Whatever is due goes into the next `StartCronJobs`. At most a few are under way, and what comes due meanwhile makes the
next batch. So batches grow by themselves when there is much to do. The statement decides. The controller only guesses
what it may win, and which runner the run is for.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from cronring.controller.core import ticks
from cronring.controller.core.model import ClaimRequest, ClaimResult, Execution
from cronring.controller.core.node.awaiting_runner import AwaitingRunner
from cronring.controller.core.node.collecting import Collecting
from cronring.controller.core.node.connected_runners import ConnectedRunners, Picker
from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import Claim, Level
from cronring.controller.core.node.enqueuing import Enqueuing
from cronring.controller.core.node.events import Claimed, StoreFailed
from cronring.controller.core.node.follow_ups import NONE, ClaimInDoubt, FollowUps, RowNewer, RunnerAwaited
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.limiting import Limiting
from cronring.controller.core.node.places import Places
from cronring.controller.core.node.putting_off import CONTENDED_BASE_MS, CONTENDED_CAP_MS, REFUSED_RETRY_US, put_off
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.stock import Place
from cronring.controller.core.node.window import DueWindow, Duty, Entry, Stage
from cronring.schema.execution import SkipReason, Trigger
from cronring.schema.timetable import Due, PlannedTick

# A herd's claims grow: 50, 200, and then as many as settings allow.
FIRST_BATCH = 50
GROWTH = 4


class ClaimBatch:
    """One claim under way."""

    __slots__ = ("entries", "places", "requests")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.requests: list[ClaimRequest] = []
        self.places: dict[int, Place] = {}  # by job


class Claiming:
    """Entries that are due, and claims under way."""

    __slots__ = (
        "_awaiting_runner",
        "_batch",
        "_behind",
        "_collecting",
        "_context",
        "_enqueuing",
        "_failures",
        "_holding",
        "_in_flight",
        "_lease",
        "_limiting",
        "_not_before_ns",
        "_places",
        "_ranked",
        "_ready",
        "_resumes",
        "_runners",
        "_skipping",
        "_slow_start",
        "_unsorted",
        "_window",
        "_won_now",
    )

    def __init__(  # noqa: PLR0917  the parts that it stands between
        self,
        context: NodeContext,
        window: DueWindow,
        lease: Lease,
        runners: ConnectedRunners,
        holding: Holding,
        awaiting_runner: AwaitingRunner,
        skipping: Skipping,
        limiting: Limiting,
        places: Places,
        enqueuing: Enqueuing,
        collecting: Collecting,
    ) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._runners = runners
        self._holding = holding
        self._awaiting_runner = awaiting_runner
        self._skipping = skipping
        self._limiting = limiting
        self._places = places
        self._enqueuing = enqueuing
        self._collecting = collecting
        self._behind: dict[int, Entry] = {}  # ready, but an activation of the job is tried first
        self._ready: dict[int, Entry] = {}
        self._ranked = False  # one of `_ready` has a priority; else they go in the order in which they came due
        self._unsorted = False
        self._in_flight: dict[int, ClaimBatch] = {}
        self._batch = context.settings.claim_batch
        self._slow_start = FIRST_BATCH
        self._won_now = False  # in this step: dispatch it before the next claim
        self._resumes = False  # claiming goes on in the next step, at once
        self._failures = 0
        self._not_before_ns = 0

    @property
    def idle(self) -> bool:
        return not self._in_flight

    def offer(self, entry: Entry) -> None:
        """The entry is due."""
        # If its limit was full, it joins the limit's queue. Without that, each of its ticks would be a claim in vain.
        if entry.limit is None or not self._limiting.queues(entry):
            self._take_in(entry)

    def _take_in(self, entry: Entry) -> None:
        if ticks.enqueues(entry.job):
            self._enqueuing.take_in(entry)
            return
        self._window.move_to(entry, Stage.READY)
        known = self._ready.get(entry.job.job_id)
        # The window forgot the job and learned of it anew. Only the new entry is claimed, so the old one's place is
        # free.
        if known is not None and known is not entry:
            self._places.forgo(known)
        self._ready[entry.job.job_id] = entry
        if self._ranked or (entry.job.policy and ticks.priority(entry.job)):
            self._ranked = self._unsorted = True

    def called(self, entry: Entry) -> None:
        """A runner has a place for it now, or it need not wait for one any more."""
        self._take_in(entry)

    def offer_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.offer(entry)

    def next_deadline(self) -> int | None:
        """Only a backoff and a pause for a dispatch need a deadline. All else that lets claims go on is an event."""
        if self._resumes:
            return self._context.now_ns
        return self._not_before_ns if self._ready and self._context.now_ns < self._not_before_ns else None

    def act(self, precedes: Callable[[Entry], bool]) -> FollowUps:
        """`precedes`: whether something beside the schedule goes before that tick, and is under way."""
        context = self._context
        for entry in self._limiting.act():
            self._take_in(entry)
        # The activations that these waited for may be over: `precedes` is asked again in each step.
        self._ready.update(self._behind)
        self._behind.clear()
        if not self._ready and not self._in_flight:
            self._slow_start = FIRST_BATCH
        self._resumes, self._won_now = self._won_now and len(self._ready) >= FIRST_BATCH, False
        if self._resumes:  # what is won should be on its way before a large claim is made
            return NONE
        if not self._ready or not self._lease.may_claim:
            return NONE
        awaited = False
        while self._ready and len(self._in_flight) < self._at_once() and context.now_ns >= self._not_before_ns:
            awaited = self._claim_batch(precedes, self._next_batch()) or awaited
        return (RunnerAwaited(),) if awaited else NONE

    @property
    def wants_more(self) -> bool:
        """Whether to offer more due entries. Not while the next claims are full, unless priorities decide the order."""
        claims = max(1, self._at_once() - len(self._in_flight))
        ready = max(len(self._ready), len(self._enqueuing))
        return self._window.ranked or ready < claims * self._context.settings.claim_batch

    def _at_once(self) -> int:
        """How many claims may be under way. Only one while a herd's claims grow: its answer comes first."""
        settings = self._context.settings
        return 1 if FIRST_BATCH < self._slow_start < settings.claim_batch else settings.claims_in_flight

    # docs/decisions/0007: the first start of a herd must not wait for all of it
    def _next_batch(self) -> int:
        """A herd's first claims are small, so that runners have something to do while the rest is claimed."""
        size = self._slow_start
        larger = min(size * GROWTH, self._context.settings.claim_batch)
        if size < larger <= len(self._ready):
            self._slow_start = larger
            return min(size, self._batch)
        if size > FIRST_BATCH:  # the herd's rest
            self._slow_start = self._context.settings.claim_batch
        return self._batch

    def _claim_batch(self, precedes: Callable[[Entry], bool], size: int) -> bool:
        """Claim up to `size` entries. True: some of them await a runner now."""
        batch, awaited = ClaimBatch(), False
        picker = Picker(self._runners)
        now_us = self._context.now_us
        if self._unsorted:
            self._unsorted = False
            self._ready = dict(sorted(self._ready.items(), key=_rank))
        ready = self._ready
        for job_id in list(islice(ready, size)):
            entry = ready.pop(job_id)
            # Nobody removes an entry from here when it is forgotten, changed or claimed. So that is checked here.
            if entry.stage is not Stage.READY or self._window.entries.get(job_id) is not entry:
                self._places.forgo(entry)
                continue
            # docs/decisions/0045: if two statements tried both at once, the tick would always win, and no manual run
            # get in
            if precedes(entry):
                self._behind[job_id] = entry
                continue
            decision = self._decide(entry, now_us)
            if decision.run is None:
                self._places.forgo(entry)
                self._skipping.skip(entry, decision.skipped, decision.next)
                continue
            place = self._places.take(entry, entry.job, picker)
            if place is not None:
                batch.requests.append(self._request(entry, decision.run, decision, place.runner_id))
                batch.entries.append(entry)
                batch.places[job_id] = place
            elif not self._places.wait(entry, entry.job):
                self._awaiting_runner.wait(entry)
                awaited = True
        self._ranked = self._ranked and bool(ready)
        if batch.requests:
            self._send(batch)
        return awaited

    @staticmethod
    def _decide(entry: Entry, now_us: int) -> Due:
        planned = entry.planned
        assert planned is not None, "ready without being due"
        return ticks.due(entry.job, planned, now_us)

    # docs/decisions/0020: the deployment is named, as the job may have moved on
    def _request(self, entry: Entry, run: PlannedTick, decision: Due, runner_id: str) -> ClaimRequest:
        job, tick = entry.job, entry.tick
        assert tick is not None, "ready without a tick"
        entry.stage = Stage.CLAIMING
        # Counted before the claim is won: otherwise all runs of one statement would go to the least loaded runner.
        self._runners.change_held(runner_id, 1)
        trigger = Trigger.CATCH_UP if decision.caught_up else Trigger.SCHEDULE
        following = ticks.after_claim(job, run) if ticks.allows(job) else None
        next_tick, next_run_at = following or (None, None)
        return ClaimRequest(
            job.job_id,
            tick,
            run.tick,
            run.run_at,
            runner_id,
            job.deployment,
            decision.skipped,
            trigger,
            next_tick,
            next_run_at,
            job.revision,
            entry.turn,
        )

    def _send(self, batch: ClaimBatch) -> None:
        context = self._context
        # Both by job: StartCronJobs takes its arrays so, and its answer is matched with the entries in that order.
        batch.requests.sort()
        batch.entries.sort(key=_job_id)
        request_id = context.request(self)
        self._in_flight[request_id] = batch
        context.stats.claims_attempted += len(batch.requests)
        context.effects.append(Claim(request_id, batch.requests, context.settings.hard_timeout_grace_ms))

    def claimed(self, event: Claimed) -> FollowUps:
        """Hold and dispatch what was won; wait again for the rest."""
        batch = self._in_flight.pop(event.request_id)
        self._failures = 0
        self._batch = self._context.settings.claim_batch
        results = {result.job_id: result for result in event.results}
        won: list[Execution] = []
        epochs: list[int] = []
        newer = False
        for entry, request in zip(batch.entries, batch.requests, strict=True):
            result = results.get(request.job_id)
            if result is not None and result.updated:
                newer = newer or result.revision != entry.job.revision
                won.append(self._won(entry, request, result))
                if not request.runner_id:  # its claim may have decided it
                    self._collecting.ask_soon()
                epochs.append(self._places.epoch(batch.places[request.job_id]))
                continue
            # docs/decisions/0050: others wait for the unused place, and a new epoch would void it
            self._places.give_back(batch.places[request.job_id])
            self._runners.change_held(request.runner_id, -1)
            # No fault: another controller was quicker, or the row has changed. Its answer says how the row is now.
            self._context.stats.claims_wasted += 1
            if result is None or not result.active:
                self._window.forget(request.job_id)
            else:
                newer = self._not_won(entry, request, result) or newer
        self._context.stats.claims_won += len(won)
        self._won_now = bool(won)
        self._holding.dispatch(won, epochs)
        return (RowNewer(),) if newer else NONE

    def _won(self, entry: Entry, request: ClaimRequest, result: ClaimResult) -> Execution:
        job = entry.job
        assert result.execution_id is not None, "a claim without an execution"
        if self._window.duty(entry) is not Duty.PRIMARY:
            self._context.stats.backup_claims += 1
            self._context.log(
                Level.WARNING, "backup_claimed", job=job.key, lateness_ms=(result.claimed_at - request.run_at) / 1_000
            )
        if entry.limit is not None:
            self._limiting.won(entry)
            entry.turn = 0
        holds_job = not ticks.allows(job)
        entry.stage = Stage.RUNNING
        entry.retries = 0
        entry.changed_ns = self._context.now_ns
        # If the run doesn't hold its job, the job goes on to its next tick now. Otherwise the run's end tells that
        # tick.
        if not holds_job:
            self._window.reset(entry, executing=False, tick=result.next_tick, run_at=result.next_run_at)
        execution = Execution(
            result.execution_id,
            job,
            request.run_tick,
            request.run_at,
            result.claimed_at,
            1,
            request.trigger,
            job.deployment,
            request.runner_id,
            result.missed,
            result.previous_tick,
            result.previous_success,
            job.payload,
            holds_job,
        )
        # The row is newer than this controller knows. What follows the run must be computed from the new row.
        self._holding.hold(execution, stale=result.revision != job.revision)
        return execution

    def _not_won(self, entry: Entry, request: ClaimRequest, result: ClaimResult) -> bool:
        """Let the entry wait again. True: its row is newer than the window knows, or seems to be."""
        newer = result.revision != entry.job.revision
        if result.full is not None:
            # If the window has learned of the job anew, the new entry makes its own claim.
            if self._window.entries.get(entry.job.job_id) is entry:
                entry.retries = 0
                entry.changed_ns = self._context.now_ns
                self._limiting.refused(entry, result.full)
            return newer
        if result.executing and result.next_tick == request.expected_tick and ticks.allows(entry.job):
            self._too_many(entry)
            return newer
        return put_off(self._context, self._window, entry, request, result)

    # docs/decisions/0026: runs that ended during an outage still count in the row
    def _too_many(self, entry: Entry) -> None:
        """As many of its executions run as may at once, so this tick does not.

        But ticks that came due while nobody could claim are decided later: first the runners' reports need time to
        come. Until then, runs that have ended still count in their job's row.
        """
        planned, ready_since_us = entry.planned, self._awaiting_runner.ready_since_us
        assert planned is not None, "claimed without a tick"
        patience_ns = self._context.settings.runner_lost_after_ms * MS
        if planned.run_at < (ready_since_us or 0) and self._lease.unbroken_ns() < patience_ns:
            entry.retries += 1
            wait_ns = self._context.backoff_ns(entry.retries, CONTENDED_BASE_MS, CONTENDED_CAP_MS)
            self._window.retry_at(entry, self._context.now_us + wait_ns // 1_000)
            return
        answer = ticks.passed(entry.job, planned, self._context.now_us, SkipReason.OVERLAP)
        self._skipping.skip(entry, answer.skipped, answer.next)

    def failed(self, event: StoreFailed) -> FollowUps:
        """The claim may have been committed. So the same ticks are tried again, and the node adopts from itself."""
        batch = self._in_flight.pop(event.request_id)
        self._failures += 1
        if not event.connection_lost:  # PostgreSQL may refuse one row of this batch: halve it until that row is alone
            self._batch = max(1, len(batch.requests) // 2)
        context = self._context
        context.log(Level.WARNING, "claim_failed", jobs=len(batch.requests), reason=event.reason)
        backoff_ns = context.backoff_ns(self._failures, CONTENDED_BASE_MS, CONTENDED_CAP_MS)
        self._not_before_ns = context.now_ns + backoff_ns
        alone = len(batch.requests) == 1 and not event.connection_lost
        for entry, request in zip(batch.entries, batch.requests, strict=True):
            self._runners.change_held(request.runner_id, -1)
            self._places.give_back(batch.places[request.job_id])
            if self._window.entries.get(request.job_id) is not entry:
                continue
            # Halved batches have led to the one job that PostgreSQL refuses. All others go on without it.
            if alone:
                self._window.retry_at(entry, context.now_us + REFUSED_RETRY_US)
            else:
                self.offer(entry)
        # docs/decisions/0057: no answer tells what this claim won, so the node adopts from itself
        return (ClaimInDoubt(),)


def _job_id(entry: Entry) -> int:
    return entry.job.job_id


def _rank(pair: tuple[int, Entry]) -> tuple[int, int]:
    return pair[1].rank_us, pair[0]
