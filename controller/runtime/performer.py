"""Turns effects into calls. What the store answers comes back as an event; nothing here waits."""

import asyncio
from collections.abc import Callable
from typing import Protocol, assert_never

from cronring.controller.core.model import Execution
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.effects import Effect, ToRunner
from cronring.controller.core.node.events import Event
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.notes import Notes
from cronring.schema.address import is_address

Changes = effects.Claim | effects.End | effects.SkipTicks | effects.Activate | effects.Adopt | effects.RenewLease
ReadsOfExecutions = effects.FetchExecutions | effects.FetchHeld | effects.FetchLost | effects.FetchOverdueExecutions
Reads = (
    effects.FindPeers
    | effects.FetchWindow
    | effects.FetchOverdue
    | effects.FetchActivations
    | effects.FetchFollowers
    | ReadsOfExecutions
)


class Runners(Protocol):
    """Connected runners. An effect for one that is gone is dropped: the node hears of it by RunnerLeft."""

    def send(self, effect: ToRunner) -> None: ...


class Peers(Protocol):
    """Other controllers. Packets may get lost."""

    def send(self, effect: effects.SendPacket) -> None: ...


class Performer:
    """`put` takes the answers; `fail` is told of an error that nobody foresaw, which ends the process."""

    def __init__(
        self,
        store: Store,
        controller: ControllerInfo,
        settings: ClusterSettings,
        runners: Runners,
        peers: Peers,
        notes: Notes,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._store = store
        self._controller = controller
        self._settings = settings
        self._runners = runners
        self._peers = peers
        self._notes = notes
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._clock = clock
        self.database_ok = False  # as of the latest answer
        self.database_away_since_us: int | None = None
        self._put: Callable[[Event], None] = _not_connected
        self._fail: Callable[[BaseException], None] = _not_connected

    def connect(self, put: Callable[[Event], None], fail: Callable[[BaseException], None]) -> None:
        """Say where answers go. Before the first effect."""
        self._put, self._fail = put, fail

    @property
    def statements_in_flight(self) -> int:
        return len(self._tasks)

    def perform(self, effect: Effect) -> None:
        match effect:
            case effects.SendPacket():
                self._peers.send(effect)
            case (
                effects.Dispatch()
                | effects.SendWishes()
                | effects.CancelRuns()
                | effects.AckReports()
                | effects.AckBeat()
            ):
                self._runners.send(effect)
            case effects.Note():
                self._notes.write(effect)
            case effects.Leave():
                raise AssertionError("Leave is the driver's own")
            case _:
                self._ask(effect)

    async def close(self) -> None:
        """Give up what is under way; nobody will hear the answers."""
        self._closing = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, effect: Changes | Reads) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(effect))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _answer(self, effect: Changes | Reads) -> None:
        try:
            answer = await self._asked(effect)
        except (StoreUnavailable, StoreError) as error:
            self._heard(isinstance(error, StoreError))
            self._metrics.store_failed(type(effect).__name__)
            if isinstance(error, StoreError):
                self._notes.warning("statement_refused", effect=type(effect).__name__, reason=str(error))
            if isinstance(effect, effects.FindPeers):
                return  # it is asked again at the next refetch
            answer = events.StoreFailed(effect.request_id, str(error), isinstance(error, StoreUnavailable))
        else:
            self._heard(True)
        self._put(answer)

    def _heard(self, ok: bool) -> None:
        self.database_ok = ok
        if ok:
            self.database_away_since_us = None
        elif self.database_away_since_us is None:
            self.database_away_since_us = self._clock.wall_us()

    async def _asked(self, effect: Changes | Reads) -> Event:
        """Raises StoreUnavailable, too, when a driver's own cancellation leaks out: a node waits for every answer."""
        try:
            return await (self._change(effect) if isinstance(effect, Changes) else self._read(effect))
        except asyncio.CancelledError as cancelled:
            if self._closing:
                raise
            raise StoreUnavailable(f"{type(effect).__name__} was cancelled by its connection") from cancelled

    async def _change(self, effect: Changes) -> Event:
        store, own_id = self._store, self._controller.controller_id
        match effect:
            case effects.RenewLease(request_id, draining, runner_ids, cancelling):
                renewal = await store.renew_lease(
                    self._controller,
                    draining,
                    self._settings.lease_ms,
                    runner_ids,
                    self._settings.runner_lost_after_ms,
                    cancelling,
                )
                return events.LeaseRenewed(request_id, renewal)
            case effects.Claim(request_id, requests, hard_grace_ms):
                database_now, results = await store.start_cron_jobs(own_id, requests, hard_grace_ms)
                self._metrics.claimed(requests, results)
                return events.Claimed(request_id, database_now, results)
            case effects.End(request_id, end_requests):
                ended = await store.end_cron_jobs(own_id, end_requests)
                self._metrics.ended(end_requests, ended)
                return events.Ended(request_id, ended)
            case effects.SkipTicks(request_id, skip_requests):
                return events.TicksSkipped(request_id, await store.skip_ticks(own_id, skip_requests))
            case effects.Activate(request_id, wanted, hard_grace_ms):
                database_now, started = await store.start_activations(own_id, wanted, hard_grace_ms)
                self._metrics.activated(started)
                return events.Activated(request_id, database_now, started)
            case effects.Adopt(request_id, controller_ids, runner_ids):
                return events.Adopted(request_id, await store.adopt_executions(own_id, controller_ids, runner_ids))
            case _:
                assert_never(effect)

    async def _read(self, effect: Reads) -> Event:
        store = self._store
        match effect:
            case effects.FindPeers():
                found = await store.find_peers()
                return events.PeersFound(
                    tuple((peer.controller_id, peer.grpc_address) for peer in found if is_address(peer.grpc_address))
                )
            case effects.FetchWindow(request_id, slots, window_ms):
                database_now, jobs = await store.get_cron_jobs(slots, window_ms)
                return events.WindowFetched(request_id, database_now, jobs)
            case effects.FetchOverdue(request_id, slots, delay_ms, at_most):
                database_now, jobs = await store.get_overdue_jobs(slots, delay_ms, at_most)
                return events.OverdueFetched(request_id, database_now, jobs)
            case effects.FetchActivations(request_id, slots, window_ms):
                database_now, activations = await store.get_activations(slots, window_ms)
                return events.ActivationsFetched(request_id, database_now, activations)
            case effects.FetchFollowers(request_id, activation_ids):
                database_now, activations = await store.get_followers(activation_ids)
                return events.ActivationsFetched(request_id, database_now, activations)
            case _:
                return events.ExecutionsFetched(effect.request_id, await self._executions(effect))

    async def _executions(self, effect: ReadsOfExecutions) -> list[Execution]:
        store = self._store
        match effect:
            case effects.FetchExecutions(_, execution_ids):
                return await store.get_unfinished(execution_ids)
            case effects.FetchHeld(_, execution_ids):
                return await store.get_held(self._controller.controller_id, execution_ids)
            case effects.FetchLost(_, lost_after_ms):
                return await store.get_lost(lost_after_ms)
            case effects.FetchOverdueExecutions():
                return await store.get_overdue_executions()
            case _:
                assert_never(effect)


def _not_connected(_: object) -> None:
    raise AssertionError("connect() comes before the first effect")
