"""Folds figures now and then. Every controller tries; PostgreSQL lets one at a time do it."""

from collections.abc import Awaitable, Callable
from typing import Final

from cronring.controller.ports.statistics import Folded
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.rounds import go_round

INTERVAL_S: Final = 15.0
BACKLOG: Final = 10_000  # executions: while so many are left, the next round begins at once


class Folding:
    """How far behind the figures are, by this controller's own rounds."""

    def __init__(self) -> None:
        self._executions = 0
        self._behind = 0  # also where another controller is at it

    async def go_on(self, fold: Callable[[], Awaitable[Folded | None]], log: Log) -> None:
        """For ever; a round that fails is tried again."""

        async def once() -> float:
            done = await fold()
            self._behind = 0 if done is None else done.behind
            self._executions += 0 if done is None else done.executions
            return 0 if done is not None and done.executions and done.behind >= BACKLOG else INTERVAL_S

        def failed(error: Exception) -> None:
            self._behind = 0
            log.warning("figures_not_folded", reason=str(error))

        await go_round(once, failed, pause_s=INTERVAL_S, failed_s=INTERVAL_S)

    def counters(self) -> dict[str, float]:
        """For Metrics.add_counters."""
        return {"figures_folded_executions": float(self._executions)}

    def gauges(self) -> dict[str, float]:
        """For Metrics.add_gauges."""
        return {"figures_behind_executions": float(self._behind)}
