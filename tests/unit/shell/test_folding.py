"""The task that folds figures: when the next round comes, and what it tells."""

from collections.abc import Sequence

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.statistics import Folded
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.folding import BACKLOG, INTERVAL_S, Folding
from cronring.controller.runtime.log import Log


class Counting:
    """Which log lines there were."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def logged(self, event: str, level: str) -> None:
        self.events.append(f"{level} {event}")


class _Over(Exception):
    """Of a test: there are no more rounds."""


async def _rounds(
    monkeypatch: pytest.MonkeyPatch, answers: Sequence[Folded | Exception | None]
) -> tuple[Folding, list[str], list[str]]:
    """What happened, in order: pauses and rounds."""
    happened: list[str] = []
    waiting = list(answers)

    async def pause(seconds: float) -> None:
        assert seconds in {0, INTERVAL_S}
        if seconds:
            happened.append("pause")

    async def fold() -> Folded | None:
        if not waiting:
            raise _Over
        happened.append("round")
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("cronring.controller.runtime.rounds.asyncio.sleep", pause)
    task, counting = Folding(), Counting()
    with pytest.raises(_Over):
        await task.go_on(fold, Log(SystemClock(), counting))
    return task, happened, counting.events


async def test_a_backlog_is_folded_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    task, happened, _ = await _rounds(monkeypatch, [Folded(20_000, BACKLOG), Folded(20_000, 5), Folded(5, 0)])
    assert happened == ["pause", "round", "round", "pause", "round", "pause"]
    assert task.counters() == {"figures_folded_executions": 40_005.0}


async def test_one_that_can_not_go_on_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that is open for hours keeps ids from being known: nobody asks again and again."""
    task, happened, _ = await _rounds(monkeypatch, [Folded(0, BACKLOG), Folded(0, BACKLOG)])
    assert happened == ["pause", "round", "pause", "round", "pause"]
    assert task.gauges() == {"figures_behind_executions": float(BACKLOG)}


async def test_who_folds_elsewhere_and_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    task, happened, log = await _rounds(monkeypatch, [Folded(1, 9), None, StoreUnavailable("away"), Folded(2, 0)])
    assert happened == ["pause", "round"] * 4 + ["pause"]
    assert task.gauges() == {"figures_behind_executions": 0.0}
    assert task.counters() == {"figures_folded_executions": 3.0}
    assert log == ["warning figures_not_folded"]
