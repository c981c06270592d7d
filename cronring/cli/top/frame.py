"""What one frame shows, as the controllers tell it."""

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cronring.cli.execution_rows import listed
from cronring.cli.output import jsonable
from cronring.schema.execution import FAILURES

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Cluster, Due, Execution
    from cronring.client.statistics import SchedulerStats

ROWS_MAX: Final = 100
RATED_OVER_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second, over the last few seconds."""

    started: float
    ended: float
    failed: float


@dataclass(frozen=True, slots=True)
class Frame:
    """`troubles`: what ended otherwise than completed, the latest first. `rates` None: not known yet."""

    cluster: "Cluster"
    figures: "SchedulerStats"
    running: list["Execution"]
    due: tuple["Due", ...]
    troubles: list["Execution"]
    rates: Rates | None

    @property
    def now(self) -> datetime | None:
        """PostgreSQL's time."""
        return self.cluster.database_time


class Counting:
    """Rates, from totals that are counted now and then."""

    def __init__(self) -> None:
        self._counted: deque[SchedulerStats] = deque()

    def take(self, figures: "SchedulerStats") -> Rates | None:
        latest = self._counted[-1] if self._counted else None
        if figures.counted_at is not None and (latest is None or latest.counted_at != figures.counted_at):
            self._counted.append(figures)
        while len(self._counted) > 2 and _seconds(self._counted[1], self._counted[-1]) >= RATED_OVER_S:
            self._counted.popleft()
        if len(self._counted) < 2:
            return None
        first, last = self._counted[0], self._counted[-1]
        seconds = _seconds(first, last)
        return Rates(
            (last.executions - first.executions) / seconds,
            (_ended(last) - _ended(first)) / seconds,
            (last.failures - first.failures) / seconds,
        )


async def take_frame(client: "AsyncClient", counting: Counting) -> Frame:
    """Everything at once. Raises what the calls raise."""
    troubling = asyncio.gather(*(client.executions.list(outcome=outcome, limit=20) for outcome in FAILURES))
    cluster, figures, due, running, troubled = await asyncio.gather(
        client.cluster.get(),
        client.statistics.scheduler(),
        client.cluster.due(ROWS_MAX),
        client.executions.list(outcome="running", limit=ROWS_MAX),
        troubling,
    )
    troubles = sorted((each for rows in troubled for each in rows), key=lambda each: -each.id)
    return Frame(cluster, figures, running, due, troubles, counting.take(figures))


def as_json(frame: Frame) -> dict[str, Any]:
    """For programs; its executions as `executions list` has them."""
    rows = {"running": list(map(listed, frame.running)), "troubles": list(map(listed, frame.troubles))}
    return {"now": frame.now, **jsonable(frame), **rows}


def _seconds(first: "SchedulerStats", last: "SchedulerStats") -> float:
    assert first.counted_at is not None
    assert last.counted_at is not None
    return max((last.counted_at - first.counted_at).total_seconds(), 0.001)


def _ended(figures: "SchedulerStats") -> int:
    return sum(figures.outcomes.values())
