"""The task that seals the audit log: when the next round comes, and when the head is logged."""

from collections.abc import Sequence

import pytest

from cronring.controller.core.node.effects import LogLine
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.audit_chain import Sealed
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.sealing import FAILED_S, INTERVAL_S, TOLD_NS, Sealing
from cronring.schema.audit_chain import ChainLink


class _Over(Exception):
    """Of a test: there are no more rounds."""


class Quiet:
    """Keeps what is logged, and has a clock that goes on with the pauses."""

    def __init__(self) -> None:
        self.now = 1
        self.told: list[tuple[str, object]] = []
        self.pauses: list[float] = []

    def now_ns(self) -> int:
        return self.now

    def wall_us(self) -> int:
        return 0

    def logged(self, event: str, level: str) -> None:
        """Nobody counts."""

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += int(seconds * 1e9)


async def rounds(monkeypatch: pytest.MonkeyPatch, answers: Sequence[Sealed | Exception]) -> tuple[Quiet, Sealing]:
    quiet, waiting = Quiet(), list(answers)
    task = Sealing(quiet)

    async def seal() -> Sealed:
        if not waiting:
            raise _Over
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def write(_: Log, line: LogLine) -> None:
        quiet.told.append((line.event, line.values.get("seq")))

    monkeypatch.setattr("cronring.controller.runtime.rounds.asyncio.sleep", quiet.pause)
    monkeypatch.setattr(Log, "write", write)
    with pytest.raises(_Over):
        await task.go_on(seal, Log(SystemClock(), quiet))
    return quiet, task


def sealed(rows: int, unsealed: int, seq: int = 0) -> Sealed:
    return Sealed(rows, unsealed, 7_000 if unsealed else 0, ChainLink(seq, bytes(32)) if seq else None)


async def test_a_backlog_is_sealed_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, task = await rounds(monkeypatch, [sealed(1_000, 2_500, 1_000), sealed(1_000, 1_500, 2_000)])
    assert quiet.pauses == [INTERVAL_S, 0, 0]
    assert task.counters() == {"audit_log_sealed_rows": 2_000.0}
    assert task.gauges() == {"audit_log_unsealed_rows": 500.0, "audit_log_unsealed_seconds": 7.0}


async def test_what_somebody_else_seals_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, task = await rounds(monkeypatch, [sealed(0, 3), sealed(0, 0)])
    assert quiet.pauses == [INTERVAL_S] * 3
    assert (quiet.told, task.gauges()["audit_log_unsealed_rows"]) == ([], 0.0)


async def test_a_round_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, _ = await rounds(monkeypatch, [StoreUnavailable("away"), sealed(2, 2, 2)])
    assert quiet.pauses == [INTERVAL_S, FAILED_S, INTERVAL_S]
    assert quiet.told == [("audit_log_not_sealed", None), ("audit_log_sealed", 2)]


async def test_the_head_is_logged_once_a_minute_and_the_last_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = [sealed(1, 1, seq) for seq in range(1, 100)]
    quiet, _ = await rounds(monkeypatch, [*busy, *[sealed(0, 0)] * 100])
    told = [seq for _, seq in quiet.told]
    minute = round(TOLD_NS / 1e9 / INTERVAL_S)
    assert told == [1, 1 + minute, 99]
