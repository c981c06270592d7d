"""How long a call goes on, and when it tries again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, ParamSpec, TypeVar

from cronring.client.errors import Unavailable, Unreachable
from cronring.client.failures import Failed, Kind

Answer = TypeVar("Answer")
Question = ParamSpec("Question")

POLL_S: Final = 0.2
AWAY_MAX_S: Final = 60.0  # a controller that dies, or a database that fails over, doesn't end what waits
BUSY_MAX_S: Final = 60.0  # controllers that send this caller away for now are asked again for as long
# What became of a change is asked for as long. A controller that stops has as much for its last calls.
LOST_MAX_S: Final = 20.0
PAUSE_MIN_S: Final = 0.1
PAUSE_MAX_S: Final = 2.0
TOLD_S: Final = 2.0  # after which somebody who waits is told why
_LOST: Final = "the connection was lost before the answer came; what became of the change is asked for"


def unheard(_: str) -> None:
    """Where nobody wants to know why a call waits."""


class Patience:
    """Of one call. Pauses grow, and are of random length: those who were sent away at once don't come back at once.

    `told` hears why it waits, if that takes a while.
    """

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told: Callable[[str], None] | None = told
        self._pause_s = 0.0
        self._began_s: float | None = None

    async def again(self, tried: Sequence[tuple[str, Failed]], *, lost: bool = False) -> bool:
        """After a pause: if one of those who were tried asks for it, or an answer is `lost`.

        False: there is no sense in it, or no time.
        """
        busy = [failed for _, failed in tried if failed.kind is Kind.BUSY]
        if not busy and not lost:
            return False
        now_s = asyncio.get_running_loop().time()
        self._began_s = now_s if self._began_s is None else self._began_s
        waited_s = now_s - self._began_s
        if waited_s >= (LOST_MAX_S if lost else BUSY_MAX_S):
            return False
        if self._told is not None and waited_s >= TOLD_S:
            self._told(_LOST if lost else busy[0].words)
            self._told = None
        asked_s = max((failed.retry_s for failed in busy), default=PAUSE_MIN_S)
        self._pause_s = min(max(2 * self._pause_s, asked_s), PAUSE_MAX_S)
        await asyncio.sleep(self._pause_s * _spread())
        return True


def _spread() -> float:
    return 0.5 + random.random()  # noqa: S311 - nobody's secret # nosec B311


async def patiently(
    ask: Callable[Question, Awaitable[Answer]], *question: Question.args, **named: Question.kwargs
) -> Answer:
    """What it answers. Raises Unavailable or Unreachable only once nobody has answered for AWAY_MAX_S."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + AWAY_MAX_S
    while True:
        try:
            return await ask(*question, **named)
        except (Unavailable, Unreachable):
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(POLL_S)
