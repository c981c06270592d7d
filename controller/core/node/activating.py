"""Runs beside the schedule (retries, manual runs, backfills, followers), from their rows in `cron_activations` to their
claims.

There are few of them compared with ticks. So each activation simply waits for its instant, and is claimed when a runner
and its job are free. When they are not, the controller tries again later. The primary of the job's slot tries at
run_at, the backup a little later. The controller that made the activation tries as a primary does, as nobody else may
know of it yet.
"""

from collections import Counter
from itertools import islice
from typing import Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Activation, ActivationRequest, ActivationResult, Execution
from cronring.controller.core.node.activation import WaitingActivation
from cronring.controller.core.node.collecting import Collecting
from cronring.controller.core.node.connected_runners import ConnectedRunners, Picker
from cronring.controller.core.node.context import REFUSED_RETRY_NS, NodeContext
from cronring.controller.core.node.effects import Activate, FetchActivations, FetchFollowers, Level
from cronring.controller.core.node.events import Activated, ActivationsFetched, StoreFailed
from cronring.controller.core.node.fair import Turns
from cronring.controller.core.node.follow_ups import NONE, ClaimInDoubt, FollowUps
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.places import Places
from cronring.controller.core.node.stock import Place
from cronring.controller.core.node.timers import Timers
from cronring.controller.core.node.window import DueWindow, Duty, Entry

BATCH: Final = 500
LIMITED_CAP_MS: Final = 1_000  # a NOTIFY tells when a limit has places; it may get lost
BUSY_BASE_MS: Final = 100  # its job runs, or no runner is there: the pause between two tries grows
TOGETHER_US: Final = 100_000
EARLY_MARGIN_US: Final = 2_000  # the clock is an estimate, and a claim that comes too early costs one more statement


class Activating:
    """Activations by id, their timers, one read and one claim under way."""

    __slots__ = (
        "_by_job",
        "_claiming",
        "_collecting",
        "_context",
        "_fetching",
        "_followers",
        "_following",
        "_holding",
        "_lease",
        "_limited",
        "_not_before_ns",
        "_places",
        "_ready",
        "_runners",
        "_timers",
        "_turns",
        "_waiting",
        "_wanted",
        "_window",
    )

    def __init__(
        self,
        context: NodeContext,
        window: DueWindow,
        lease: Lease,
        runners: ConnectedRunners,
        holding: Holding,
        places: Places,
        collecting: Collecting,
    ) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._runners = runners
        self._holding = holding
        self._places = places
        self._collecting = collecting
        self._waiting: dict[int, WaitingActivation] = {}
        self._by_job: dict[int, dict[int, None]] = {}
        self._timers = Timers()
        self._ready: dict[int, None] = {}
        self._limited: dict[int, dict[int, None]] = {}  # limit -> activations that it had no place for
        self._turns: dict[int, Turns] = {}  # limit -> the turns of shares
        self._claiming: tuple[int, list[WaitingActivation], list[ActivationRequest], list[Place]] | None = None
        self._fetching: tuple[int, dict[int, None]] | None = None  # request id, and what was known then
        self._followers: dict[int, None] = {}  # made by ends that were committed here, and not read yet
        self._following: tuple[int, tuple[int, ...]] | None = None
        self._wanted = False
        self._not_before_ns = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        return self._claiming is None

    def next_us(self) -> int | None:
        """When, in PostgreSQL's time, the next one is due."""
        return self._timers.next_us()

    def next_deadline(self) -> int | None:
        backing_off = (self._ready or self._wanted or self._followers) and self._context.now_ns < self._not_before_ns
        return self._not_before_ns if backing_off and self._context.store_ok else None

    def ask_soon(self) -> None:
        """Read what waits, with the window."""
        self._wanted = True

    def created(self, activations: list[Activation]) -> None:
        """This controller has just made these."""
        for activation in activations:
            self._learn(activation, own=True)

    def follow(self, activation_ids: list[int]) -> None:
        """An end that was committed here made these: their jobs' owners don't hear of it."""
        self._followers.update(dict.fromkeys(activation_ids))

    def job_freed(self, job_id: int) -> None:
        """The job ended a run: what waited for that is due now."""
        for activation_id in self._by_job.get(job_id, ()):
            waiting = self._waiting[activation_id]
            if waiting.busy:
                self._timers.arm(activation_id, max(waiting.activation.run_at, self._context.now_us))

    def called(self, waiting: WaitingActivation) -> None:
        """A runner has a place for it now, or it need not wait for one any more."""
        self._ready[waiting.activation.activation_id] = None

    def places_freed(self, limit: int | None) -> None:
        """A full limit has a place: the next activation that waits for it is tried. None: any limit may have one."""
        for each in self._limited if limit is None else {limit} & self._limited.keys():
            self._timers.arm(self._next_under(each), self._context.now_us)

    def _next_under(self, limit: int) -> int:
        """Of the activations that wait for this limit, the next: by the turn of its share, then by its rank."""
        turns, waiting = self._turns[limit], self._waiting
        ranks = {each: (turns.of(waiting[each].share), waiting[each].rank_us, each) for each in self._limited[limit]}
        return min(ranks, key=ranks.__getitem__)

    # docs/decisions/0045: if two statements tried both at once, the tick would always win
    def precedes(self, entry: Entry) -> bool:
        """Whether an activation that came due before this tick is tried now, and the tick can wait.

        Without this, a job that buffers its ticks and runs longer than its period would never let an activation in. The
        tick is compared, and not its run_at: that is when the run before it has ended.
        """
        ids = self._by_job.get(entry.job.job_id)
        if not ids or self._claiming is None or entry.tick is None or not ticks.buffers(entry.job):
            return False
        tried = {waiting.activation.activation_id for waiting in self._claiming[1]}
        return any(
            (activation_id in tried or activation_id in self._ready)
            and not (activation := self._waiting[activation_id].activation).beside
            and activation.run_at <= entry.tick
            for activation_id in ids
        )

    def act(self) -> None:
        context = self._context
        self._ready.update(dict.fromkeys(self._timers.pop_due(context.now_us)))
        if context.draining or not context.store_ok or context.now_ns < self._not_before_ns:
            return
        if self._wanted and self._fetching is None:
            self._fetch()
        if self._followers and self._following is None:
            self._fetch_followers()
        if self._ready and self._claiming is None and self._lease.valid and not context.in_drill:
            self._claim()

    def answered(self, event: ActivationsFetched | Activated) -> None:
        if isinstance(event, Activated):
            self._activated(event)
        else:
            self._fetched(event)

    def _fetch(self) -> None:
        slots = self._window.slots()
        self._wanted = False
        if slots:
            request_id = self._context.request(self)
            self._fetching = request_id, dict.fromkeys(self._waiting)
            self._context.effects.append(FetchActivations(request_id, slots, self._context.settings.window_ms))

    def _fetch_followers(self) -> None:
        activation_ids = tuple(islice(self._followers, BATCH))
        for activation_id in activation_ids:
            del self._followers[activation_id]
        request_id = self._context.request(self)
        self._following = request_id, activation_ids
        self._context.effects.append(FetchFollowers(request_id, activation_ids))

    def _fetched(self, event: ActivationsFetched) -> None:
        """Learn what was read. A known activation that is absent is gone, unless it was made here."""
        if self._following is not None and event.request_id == self._following[0]:
            self._following = None
            self.created(event.activations)
            return
        assert self._fetching is not None, "activations without asking"
        known, self._fetching = self._fetching[1], None
        found = {activation.activation_id for activation in event.activations}
        for activation_id in known:
            waiting = self._waiting.get(activation_id)
            # What this controller made may be due after the window, so a read of the window says nothing of it.
            if waiting is not None and activation_id not in found and not waiting.own:
                self._forget(activation_id)
        for activation in event.activations:
            if self._window.duties[activation.job.slot]:
                self._learn(activation, own=False)

    def _learn(self, activation: Activation, own: bool) -> None:
        waiting = self._waiting.get(activation.activation_id)
        if waiting is not None:
            sooner = activation.run_at < waiting.activation.run_at
            waiting.activation = activation
            if sooner:  # somebody has asked for a retry that waited for its backoff
                self._arm(waiting)
            return
        waiting = self._waiting[activation.activation_id] = WaitingActivation(activation, own)
        self._by_job.setdefault(activation.job.job_id, {})[activation.activation_id] = None
        self._arm(waiting)

    def _arm(self, waiting: WaitingActivation) -> None:
        activation = waiting.activation
        # If both owners tried at once, one claim of each activation would be in vain. So the backup waits a little.
        delay_us = 0
        if not waiting.own and self._window.duties[activation.job.slot] is not Duty.PRIMARY:
            delay_us = self._context.settings.backup_delay_ms * 1_000
        if waiting.busy:
            cap_ms = self._context.settings.activation_retry_ms if waiting.limit is None else LIMITED_CAP_MS
            backoff_ns = self._context.backoff_ns(waiting.busy, BUSY_BASE_MS, cap_ms)
            delay_us += max(0, self._context.now_us - activation.run_at) + backoff_ns // 1_000
        at_us = activation.run_at + delay_us
        if waiting.busy:  # hundreds may wait for one job: what comes about the same time goes into one statement
            at_us = -(-at_us // TOGETHER_US) * TOGETHER_US
        self._timers.arm(activation.activation_id, at_us)

    def _forget(self, activation_id: int) -> None:
        waiting = self._waiting.pop(activation_id, None)
        if waiting is None:
            return
        self._places.forgo(waiting)
        self._timers.disarm(activation_id)
        self._free(activation_id, waiting)
        job_id = waiting.activation.job.job_id
        of_job = self._by_job[job_id]
        del of_job[activation_id]
        if not of_job:
            del self._by_job[job_id]

    def _claim(self) -> None:
        picker = Picker(self._runners)
        chosen: list[tuple[WaitingActivation, ActivationRequest, Place]] = []
        for activation_id in list(islice(self._ready, BATCH)):
            del self._ready[activation_id]
            waiting = self._waiting.get(activation_id)
            if waiting is None:
                continue
            place = self._places.take(waiting, waiting.activation.job, picker)
            if place is not None:
                self._runners.change_held(place.runner_id, 1)
                chosen.append((waiting, _request(waiting.activation, place.runner_id), place))
            elif not self._places.wait(waiting, waiting.activation.job):
                self._busy(waiting)
        if not chosen:
            return
        # All statements lock jobs in this order, or two would deadlock. Within one job the most urgent comes first.
        chosen.sort(key=lambda pair: (pair[1].job_id, pair[0].rank_us, pair[1].activation_id))
        waiting_too, requests, places = (list(each) for each in zip(*chosen, strict=True))
        requests = self._in_turn(waiting_too, requests)
        request_id = self._context.request(self)
        self._claiming = request_id, waiting_too, requests, places
        self._context.effects.append(Activate(request_id, requests, self._context.settings.hard_timeout_grace_ms))

    def _busy(self, waiting: WaitingActivation) -> None:
        waiting.busy += 1
        self._arm(waiting)

    def _activated(self, event: Activated) -> None:
        """Hold and dispatch what was won; wait again for the rest."""
        assert self._claiming is not None, "activated without asking"
        (_, batch, requests, places), self._claiming = self._claiming, None
        results = {result.activation_id: result for result in event.results}
        won: list[Execution] = []
        freed = self._note_limits(results)
        epochs: list[int] = []
        for waiting, request, place in zip(batch, requests, places, strict=True):
            result = results.get(request.activation_id)
            execution = None if result is None else result.execution
            if execution is None:
                self._runners.change_held(request.runner_id, -1)
                self._places.give_back(place)
            else:
                self._holding.hold(execution, stale=False)
                self._window.runner_here(execution)
                if not execution.runner_id:  # its claim may have decided it
                    self._collecting.ask_soon()
                won.append(execution)
                epochs.append(self._places.epoch(place))
            self._follow(waiting, request, result)
        self._context.stats.activated += len(won)
        self._holding.dispatch(won, epochs)
        for limit in freed:
            self.places_freed(limit)

    def _note_limits(self, results: dict[int, ActivationResult]) -> set[int]:
        """Note which activations a limit refused. Returns the limits that let in all that were tried."""
        found, refused = set[int](), set[int]()
        for activation_id, result in results.items():
            waiting = self._waiting.get(activation_id)
            if waiting is None or waiting.limit is result.full is None:
                continue
            if waiting.limit is not None and result.execution is not None:
                found.add(waiting.limit)
                self._turns[waiting.limit].take(waiting.share)
            self._free(activation_id, waiting)
            waiting.limit = result.full
            if result.full is not None:
                refused.add(result.full)
                self._limited.setdefault(result.full, {})[activation_id] = None
                self._turns.setdefault(result.full, Turns())
        return found - refused

    def _free(self, activation_id: int, waiting: WaitingActivation) -> None:
        """No limit keeps it waiting."""
        if waiting.limit is None:
            return
        others = self._limited[waiting.limit]
        del others[activation_id]
        if not others:
            del self._limited[waiting.limit]
            del self._turns[waiting.limit]
        waiting.limit = None

    def _in_turn(self, tried: list[WaitingActivation], requests: list[ActivationRequest]) -> list[ActivationRequest]:
        """The requests. Those that wait for a limit get the turns of their shares."""
        order = sorted(range(len(tried)), key=lambda index: tried[index].rank_us)
        ahead: Counter[tuple[int, str]] = Counter()
        for place in order:
            waiting = tried[place]
            if waiting.limit is not None:
                turns, group = self._turns[waiting.limit], (waiting.limit, waiting.share)
                turn = turns.of(waiting.share) - turns.now + ahead[group]
                ahead[group] += 1
                requests[place] = requests[place]._replace(turn=turn)
        return requests

    def _follow(self, waiting: WaitingActivation, request: ActivationRequest, result: ActivationResult | None) -> None:
        """A backfill goes on with its next tick; whatever else was claimed is done."""
        if request.activation_id not in self._waiting:
            return
        if result is None or result.gone or (result.execution is not None and result.next_tick is None):
            self._forget(request.activation_id)
        elif result.next_tick is not None and result.next_tick != waiting.activation.tick:
            # A tick that was passed over takes no time. If a tick was claimed, the next one waits from that claim on.
            run_at = waiting.activation.run_at if result.execution is None else result.execution.claimed_at
            waiting.activation = waiting.activation._replace(tick=result.next_tick, run_at=run_at)
            waiting.busy = 0
            self._arm(waiting)
        else:
            self._busy(waiting)

    def failed(self, event: StoreFailed) -> FollowUps:
        """A failed claim may have been committed: the node adopts from itself to find out."""
        context = self._context
        self._not_before_ns = context.now_ns + REFUSED_RETRY_NS
        if self._fetching is not None and event.request_id == self._fetching[0]:
            self._fetching = None
            self._wanted = True
            return NONE
        if self._following is not None and event.request_id == self._following[0]:
            self._followers.update(dict.fromkeys(self._following[1]))
            self._following = None
            return NONE
        assert self._claiming is not None, "a failure without asking"
        (_, batch, requests, places), self._claiming = self._claiming, None
        context.log(Level.WARNING, "activation_failed", activations=len(requests), reason=event.reason)
        for waiting, request, place in zip(batch, requests, places, strict=True):
            self._runners.change_held(request.runner_id, -1)
            self._places.give_back(place)
            if request.activation_id in self._waiting:
                self._busy(waiting)
        return (ClaimInDoubt(),)


def _request(activation: Activation, runner_id: str) -> ActivationRequest:
    job = activation.job
    next_tick = None
    if activation.until_tick is not None:
        next_tick = ticks.next_within(job, activation.tick, activation.until_tick)
    return ActivationRequest(
        activation.activation_id, job.job_id, activation.tick, runner_id, job.deployment, next_tick
    )
