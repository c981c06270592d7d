"""What an operator orders beside what operating.py does, often at the very instant of a tick.

Pauses that end by themselves, skipped ticks, jobs cancelled and restored, executions tried again, versions of the
module rolled out and back. (cancels.py has executions cancelled.) It draws from a generator of its own, and not every
world has it: those that don't are the stories that they were.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from cronring.controller.core.model import Activation
from cronring.controller.core.node.events import ActivationsCreated, Event, JobsCreated
from cronring.controller.core.orders.orders import Cancel, JobOrder, Pause, Restore, Resume, SkipNext
from cronring.controller.errors import Conflict
from cronring.controller.ports.store import ActivatedDeployment, Controlled
from cronring.controller.store.memory.rows import StoredExecution
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome
from cronring.virtual.clock import MS, SECOND
from tests.simulation.asking import Asker
from tests.simulation.database import Call

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND_US: Final = 1_000_000
AIMED: Final = 0.5  # how often an order comes at the instant of ticks
VERSIONS_MAX: Final = 4  # before older ones come again more often than new ones
RECENT: Final = 200  # executions among which one is looked for that can be tried again


class Orders(Asker):
    """`promised`: retries by hand that it was told of."""

    def __init__(self, world: "World", until_ns: int) -> None:
        super().__init__(world, random.Random(f"orders of {world.seed}"))
        self._until_ns = until_ns
        self._pause_ns = self._rng.choice((SECOND // 2, SECOND, 3 * SECOND))
        self.promised: list[int] = []
        tasks: tuple[tuple[int, Callable[[], None]], ...] = (
            (4, self._pause_until), (1, self._resume), (5, self._skip_next), (2, self._cancel), (3, self._restore),
            (5, self._retry), (1, self._change_version),
        )  # fmt: skip
        self._tasks = tuple(task for weight, task in tasks for _ in range(weight))
        world.clock.call_after(2 * SECOND, self._act)

    def _act(self) -> None:
        if self._world.clock.now_ns >= self._until_ns:
            self._restore_most()
            return
        self._rng.choice(self._tasks)()
        delay_ns = int(self._rng.random() * 2 * self._pause_ns) + MS
        if self._rng.random() < AIMED:
            since_tick_us = (self._world.database.now_us() + delay_ns // 1_000) % SECOND_US
            delay_ns += (SECOND_US - since_tick_us) * 1_000 + int(self._rng.uniform(-6, 6) * MS)
        self._world.clock.call_after(max(delay_ns, MS), self._act)

    def _restore_most(self) -> None:
        for row in self._rows():
            if row.cancelled_at is not None and self._rng.random() < 0.8:
                self._order(row.key, Restore())

    def _order(self, key: str, order: JobOrder, persistence: float = 0.7) -> None:
        self._ask(
            f"orders {order} of {key}", lambda store: store.order_job(key, order, "operator"), _changed, persistence
        )

    def _pause_until(self) -> None:
        row = self._some()
        if row is not None:
            key, until = row.key, self._world.database.now_us() + int(10 ** self._rng.uniform(-0.5, 1.2) * SECOND_US)
            if self._rng.random() < 0.7:
                until = until // SECOND_US * SECOND_US

            async def pause(store: MemoryStore) -> Controlled:
                """Controllers refuse an end that has passed."""
                if until <= store.now_us():
                    raise Conflict("it has passed")
                return await store.order_job(key, Pause("for a while", until), "operator")

            self._ask(f"pauses {key} until {until}", pause, _changed)

    def _resume(self) -> None:
        paused = [row for row in self._rows() if row.paused]
        if paused:
            self._order(self._rng.choice(paused).key, Resume())

    def _skip_next(self) -> None:
        """One who names the tick may repeat it; two may mean the same."""
        row = self._some()
        if row is None:
            return
        if row.next_tick is None or self._rng.random() < 0.3:
            self._order(row.key, SkipNext(), persistence=0.0)
            return
        for _ in range(self._rng.choice((1, 1, 2))):
            self._order(row.key, SkipNext(row.next_tick))

    def _cancel(self) -> None:
        row = self._some()
        if row is not None:
            key = row.key
            self._order(key, Cancel("enough"))
            if self._rng.random() < 0.6:
                length_ns = int(10 ** self._rng.uniform(-2, 0.9) * SECOND)
                self._world.clock.call_after(length_ns, partial(self._order, key, Restore()))

    def _restore(self) -> None:
        cancelled = [row for row in self._rows() if row.cancelled_at is not None]
        if cancelled:
            self._order(self._rng.choice(cancelled).key, Restore())

    def _retry(self) -> None:
        executions = self._world.database.store.executions
        recent = (executions[number] for number in range(len(executions), max(0, len(executions) - RECENT), -1))
        found = [row for row in recent if _may_be_retried(row)]
        if found:
            execution_id = self._rng.choice(found).execution_id
            self._ask(
                f"retries {execution_id}", lambda store: store.retry_execution(execution_id, "operator"), self._retried
            )

    def _retried(self, made: Activation) -> Event:
        self.promised.append(made.activation_id)
        return ActivationsCreated([made])

    def _change_version(self) -> None:
        """Forth, or back to any that there was."""
        world = self._world
        keys = world.deployments
        if len(keys) < 2 or self._rng.random() > len(keys) / VERSIONS_MAX:
            world.roll_out()
        elif not world.deploying:
            key = self._rng.choice(keys)
            call: Call = lambda store: store.activate_deployment(key, 1, 4_000, "", "operator")  # noqa: E731
            self._ask(f"rolls back to {key}", call, _activated)


def _may_be_retried(row: StoredExecution) -> bool:
    return row.outcome not in (None, Outcome.COMPLETED) and not row.job.removed


def _changed(done: Controlled) -> Event | None:
    return JobsCreated([done.job]) if done.changed else None


def _activated(done: ActivatedDeployment) -> Event | None:
    return JobsCreated(done.deployed.jobs) if done.deployed.created else None
