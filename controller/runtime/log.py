"""A controller's log lines, and their counts. Warnings of one kind are limited to a few in 10 seconds."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import structlog

from cronring.controller.core.node.effects import Level, LogLine
from cronring.controller.ports.clock import Clock

LINES_PER_PERIOD: Final = 5  # of one event
PERIOD_NS: Final = 10_000_000_000


class Counted(Protocol):
    def logged(self, event: str, level: str) -> None: ...


class _Kind(NamedTuple):
    since_ns: int
    lines: int


class Log:
    """Writes log lines. Warnings and worse of one event are limited to LINES_PER_PERIOD in 10 s; all are counted."""

    def __init__(self, clock: Clock, metrics: Counted, **bound: str) -> None:
        self._clock = clock
        self._metrics = metrics
        self._logger: structlog.types.FilteringBoundLogger = structlog.get_logger().bind(**bound)
        self._kinds: dict[str, _Kind] = {}

    def write(self, line: LogLine) -> None:
        self._metrics.logged(line.event, line.level)
        suppressed = self._suppressed(line)
        if suppressed is None:
            return
        values = line.values if not suppressed else {**line.values, "not_shown_before": suppressed}
        self._writer(line.level)(line.event, **values)

    def info(self, event: str, **values: str | int | float | bool) -> None:
        self.write(LogLine(Level.INFO, event, values))

    def warning(self, event: str, **values: str | int | float | bool) -> None:
        self.write(LogLine(Level.WARNING, event, values))

    def error(self, event: str, **values: str | int | float | bool) -> None:
        self.write(LogLine(Level.ERROR, event, values))

    def exception(self, event: str, error: BaseException) -> None:
        """An unexpected error, with its traceback. Never suppressed."""
        self._metrics.logged(event, Level.ERROR)
        self._logger.error(event, exc_info=error, reason=f"{type(error).__name__}: {error}")

    def _writer(self, level: Level) -> Callable[..., None]:
        writer: Callable[..., None] = getattr(self._logger, level.value)
        return writer

    def _suppressed(self, line: LogLine) -> int | None:
        """How many lines of this event were left out before this one; None: leave this one out as well."""
        if line.level in {Level.DEBUG, Level.INFO}:
            return 0
        now_ns = self._clock.now_ns()
        kind = self._kinds.get(line.event)
        suppressed = 0
        if kind is None or now_ns - kind.since_ns >= PERIOD_NS:
            suppressed = max(0, kind.lines - LINES_PER_PERIOD) if kind else 0
            kind = _Kind(now_ns, 0)
        self._kinds[line.event] = kind._replace(lines=kind.lines + 1)
        return suppressed if kind.lines < LINES_PER_PERIOD else None
