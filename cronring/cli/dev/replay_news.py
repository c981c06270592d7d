"""What happens in a replay, one thing at a time, out of the virtual cluster's books."""

from datetime import timedelta
from typing import Any, NamedTuple

from cronring.controller.store.memory.store import MemoryStore
from cronring.virtual.records import Execution, Skip, execution_of, skip_of


class Logged(NamedTuple):
    """A part has something to say: an outage began, a lease was lost, a child died."""

    who: str
    level: str
    event: str
    values: dict[str, Any]


News = Execution | Skip | Logged


class ReplayedBooks:
    """Follows the store: each execution is told once it has ended, each skip when it is decided."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._executions = 0
        self._skips = 0
        self._running: list[int] = []

    def news(self) -> list[tuple[int, News]]:
        """(virtual instant in us, what happened) since the last time, in order."""
        store = self._store
        self._running += range(self._executions + 1, len(store.executions) + 1)
        self._executions = len(store.executions)
        found: list[tuple[int, News]] = []
        running: list[int] = []
        for execution_id in self._running:
            row = store.executions[execution_id]
            if row.outcome is None or row.report is None:
                running.append(execution_id)
            else:
                found.append((row.report.ended_at, execution_of(row)))
        self._running = running
        skips = store.skips[self._skips :]
        found += [(skip.decided_at, skip_of(skip, store.jobs[skip.job_id])) for skip in skips]
        self._skips = len(store.skips)
        found.sort(key=lambda each: each[0])
        return found


def milliseconds_of(length: timedelta | None) -> float | None:
    return None if length is None else length / timedelta(milliseconds=1)


def fields(news: News) -> tuple[str, dict[str, object]]:
    """The line's word and its values."""
    match news:
        case Execution():
            took = None if news.ended is None or news.started is None else news.ended - news.started
            values: dict[str, object] = {
                "id": news.id,
                "job": news.job,
                "tick": news.tick,
                "outcome": news.outcome,
                "trigger": news.trigger,
                "attempt": news.attempt,
                "missed": news.missed,
                "lateness_ms": milliseconds_of(news.lateness),
                "duration_ms": milliseconds_of(took),
            }
            return "execution", values | ({"error": news.error} if news.error else {})
        case Skip():
            ticks = {"first_tick": news.first_tick, "last_tick": news.last_tick, "ticks": news.ticks}
            return "skipped", {"job": news.job, "reason": news.reason, **ticks}
        case Logged(who, level, event, values):
            return event, {"who": who, "level": level, **values}
