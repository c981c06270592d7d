"""Turns effects into calls. What the store answers comes back as an event; nothing here waits."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from cronring.controller.core.node import effects, events
from cronring.controller.core.node.effects import Effect, ToRunner
from cronring.controller.core.node.events import Event
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.services.asking import Changes, Reads, answer_of, failure_of


class Runners(Protocol):
    """Connected runners. An effect for one that is gone is dropped: the node hears of it by RunnerLeft."""

    def send(self, effect: ToRunner) -> None: ...


class Peers(Protocol):
    """Other controllers. Packets may get lost."""

    def send(self, effect: effects.SendPacket) -> None: ...


class Performer:
    """`put` takes the answers. `fail` is told of an unexpected error, which ends the process."""

    def __init__(
        self,
        store: Store,
        controller: ControllerInfo,
        settings: ClusterSettings,
        runners: Runners,
        peers: Peers,
        log: Log,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._store = store
        self._controller = controller
        self._settings = settings
        self._runners = runners
        self._peers = peers
        self._log = log
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
                | effects.SendDemands()
                | effects.CancelRuns()
                | effects.AckReports()
                | effects.AckBeat()
            ):
                self._runners.send(effect)
            case effects.LogLine():
                self._log.write(effect)
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
                self._log.warning("statement_refused", effect=type(effect).__name__, reason=str(error))
            failure = failure_of(effect, error)
            if failure is not None:
                self._put(failure)
            return
        self._heard(True)
        self._count(effect, answer)
        self._put(answer)

    def _heard(self, ok: bool) -> None:
        self.database_ok = ok
        if ok:
            self.database_away_since_us = None
        elif self.database_away_since_us is None:
            self.database_away_since_us = self._clock.wall_us()

    async def _asked(self, effect: Changes | Reads) -> Event:
        """A cancellation that leaks out of the database driver becomes StoreUnavailable: a node waits for an answer."""
        try:
            return await answer_of(effect, self._store, self._controller, self._settings)
        except asyncio.CancelledError as cancelled:
            if self._closing:
                raise
            raise StoreUnavailable(f"{type(effect).__name__} was cancelled by its connection") from cancelled

    def _count(self, effect: Changes | Reads, answer: Event) -> None:
        match effect, answer:
            case effects.Claim(), events.Claimed():
                self._metrics.claimed(effect.requests, answer.results)
            case effects.Enqueue(), events.Enqueued():
                self._metrics.enqueued(effect.requests, answer.results)
            case effects.End(), events.Ended():
                self._metrics.ended(effect.requests, answer.results)
            case effects.Activate(), events.Activated():
                self._metrics.activated(answer.results)


def _not_connected(_: object) -> None:
    raise AssertionError("connect() comes before the first effect")
