"""How operators ask: some controller, which may be gone before it answers; and perhaps again."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cronring.controller.core.model import Job
from cronring.controller.core.node.events import Event, JobsCreated
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import Conflict, NotFound, StoreUnavailable
from cronring.controller.store.memory.rows import StoredJob
from cronring.virtual.clock import SECOND
from tests.simulation.database import Call

if TYPE_CHECKING:
    from tests.simulation.world import World

PERSISTENCE: Final = 0.7  # how likely the operator asks again what was not answered
Tell = Callable[[Any], Event | None]


def nobody(_: object) -> None:
    """Of what the controller that was asked need not be told."""


class Asker:
    """`persistence`: of an order that may be repeated."""

    def __init__(self, world: "World", rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def _ask(self, what: str, call: Call, tell: Tell = nobody, persistence: float = PERSISTENCE) -> None:
        """Some controller, which hears of it from itself; the others by NOTIFY. Perhaps again if nobody answers."""
        controller = self._world.some_controller()
        if controller is None:
            self._again(what, call, tell, persistence)
            return
        self._world.log(f"OPERATOR {what}, asks {controller.name}")

        def answered(result: Any) -> None:
            if not controller.alive or isinstance(result, StoreUnavailable):
                self._again(what, call, tell, persistence)
            elif isinstance(result, Exception):
                assert isinstance(result, Conflict | NotFound | NeverRuns), repr(result)
            else:
                self._world.log(f"OPERATOR is told: {what}")
                event = tell(result)
                if event is not None:
                    controller.put(event)

        self._world.database.ask(controller.address, call, answered)

    def _again(self, what: str, call: Call, tell: Tell, persistence: float) -> None:
        if self._rng.random() < persistence:
            delay_ns = int(self._rng.uniform(0.1, 3) * SECOND)
            self._world.clock.call_after(delay_ns, lambda: self._ask(what, call, tell, persistence))

    def _rows(self, source: str = "") -> list[StoredJob]:
        rows = self._world.database.store.jobs.values()
        return [row for row in rows if not row.removed and (not source or row.source == source)]

    def _some(self, source: str = "") -> StoredJob | None:
        rows = self._rows(source)
        return self._rng.choice(rows) if rows else None


def created(job: Job) -> Event:
    return JobsCreated([job])
