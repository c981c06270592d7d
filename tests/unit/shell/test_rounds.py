"""Rounds: how long is paused after a good one, and after one that failed; and what ends them."""

import pytest

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.runtime.rounds import go_round


class _Over(Exception):
    """Of a test: there are no more rounds."""


async def test_each_round_says_how_long_to_pause_and_failures_have_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[float | Exception] = [0, 3, StoreUnavailable("away"), StoreError("refused"), 1, _Over()]
    pauses: list[float] = []
    told: list[str] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def once() -> float:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("cronring.controller.runtime.rounds.asyncio.sleep", pause)
    with pytest.raises(_Over):  # what nobody foresaw ends the process: Background sees to that
        await go_round(once, lambda error: told.append(str(error)), pause_s=5, failed_s=10)
    assert pauses == [5, 0, 3, 10, 10, 1]
    assert told == ["away", "refused"]
