"""Calls about drills: showing on the running cluster that it survives."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.errors import Unreachable
from cronring.protos.cronring.v1 import drills_pb2
from cronring.protos.cronring.v1.drills_pb2_grpc import DrillsStub
from cronring.schema.duration import measured

SILENCE_MAX_S: Final = 5.0  # a controller that is in a drill says so each half second


class Phase(StrEnum):
    """LASTS: the drill still lasts."""

    BEGUN = "begun"
    LASTS = "lasts"
    ENDED = "ended"


_PHASES: Final = {
    drills_pb2.DrillEvent.KIND_BEGUN: Phase.BEGUN,
    drills_pb2.DrillEvent.KIND_LASTS: Phase.LASTS,
    drills_pb2.DrillEvent.KIND_ENDED: Phase.ENDED,
}


@dataclass(frozen=True, slots=True)
class DrillWord:
    """A word of a controller that claims nothing for a drill, in PostgreSQL's time. `until`: when it ends by itself.

    Of ENDED: `reason`, and `time_over`: it lasted as long as was asked.
    """

    phase: Phase
    at: datetime
    until: datetime
    reason: str
    time_over: bool


class DrillCalls:
    """Meant for a client of one controller: it is that one which is in a drill."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def hold_drill(
        self, controller: str, for_s: float, by: str = "", *, forced: bool = False
    ) -> AsyncGenerator[DrillWord, None]:
        """That controller claims nothing until it says so, or until this is closed: BEGUN, LASTS..., ENDED.

        Raises Conflict when it won't, saying why, and Unreachable when it is gone, or falls silent.
        """
        request = drills_pb2.HoldDrillRequest(
            controller=controller, for_ms=round(for_s * 1_000), forced=forced, requested_by=by
        )
        words = self._failover.finite(lambda channel: DrillsStub(channel).HoldDrill(request))
        address = self._failover.current_address
        async with contextlib.aclosing(words):
            while True:
                try:
                    async with asyncio.timeout(SILENCE_MAX_S):
                        message = await anext(words, None)
                except TimeoutError:
                    raise Unreachable([(address, f"it said nothing for {measured(SILENCE_MAX_S * 1_000)}")]) from None
                if message is None:
                    raise Unreachable([(address, "the connection was lost")])
                word = _word(message)
                if word is not None:
                    yield word
                    if word.phase is Phase.ENDED:
                        return


def _word(message: drills_pb2.DrillEvent) -> DrillWord | None:
    """None: of a kind that this version doesn't know."""
    phase = _PHASES.get(message.kind)
    at, until = convert.instant(message.at), convert.instant(message.until)
    if phase is None or at is None or until is None:
        return None
    return DrillWord(phase, at, until, message.reason, message.time_over)
