"""What queues hold, as metrics. PostgreSQL is asked now and then; the metrics show its last answer."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NoReturn

from prometheus_client.core import GaugeMetricFamily, Metric

from cronring.controller.ports.queues import QueueFigure
from cronring.controller.runtime.help import HELP
from cronring.controller.runtime.rounds import go_round

INTERVAL_S: Final = 15.0
QUEUES_MAX: Final = 100  # those that hold most: labels are not without bounds
COUNTED_MAX: Final = 10_000


class QueueFigures:
    """A collector for Metrics.registry. It shows nothing of queues while PostgreSQL can't be asked."""

    def __init__(self) -> None:
        self._rows: Sequence[QueueFigure] = ()

    async def go_on(self, read: Callable[[int, int], Awaitable[Sequence[QueueFigure]]]) -> NoReturn:
        """For ever. `read(queues, most)`: as Queues.figures."""

        async def once() -> float:
            self._rows = await read(QUEUES_MAX, COUNTED_MAX)
            return INTERVAL_S

        def failed(_: Exception) -> None:
            self._rows = ()

        await go_round(once, failed, pause_s=1.0, failed_s=INTERVAL_S)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        families = [
            GaugeMetricFamily(f"cronring_{name}", HELP[name], labels=["namespace", "queue"])
            for name in ("queue_messages", "queue_oldest_seconds", "queue_dead_letters")
        ]
        for row in self._rows:
            for family, value in zip(families, (row.depth, row.oldest_ms / 1_000, row.dead), strict=True):
                family.add_metric([row.namespace, row.queue], value)
        return families
