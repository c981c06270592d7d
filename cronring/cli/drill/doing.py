"""The drill itself: the primary is in a drill as long as this process holds the call, or is killed."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cronring.cli.credentials import connect
from cronring.cli.drill.plan import DrillPlan
from cronring.cli.drill.target import kill
from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.client import AsyncClient
from cronring.client.drills import Phase
from cronring.client.errors import Unreachable
from cronring.schema.duration import measured

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from cronring.client.drills import DrillWord

STEP_S: Final = 0.2
CALL_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class DrillSpan:
    """From when until when it claimed nothing, in PostgreSQL's time. `cut`: why it ended early; "": it didn't."""

    begun: datetime
    ended: datetime
    cut: str

    @property
    def lasted_s(self) -> float:
        return (self.ended - self.begun).total_seconds()


Passed = Callable[[float], None]  # told how many seconds of it have passed


async def perform(client: AsyncClient, plan: DrillPlan, passed: Passed) -> DrillSpan:
    """Raises Failure when it can't begin. What happens in the middle, the span tells."""
    if plan.wanted.kill:
        return await _kill(client, plan, passed)
    return await _hold_drill(plan, passed)


async def _kill(client: AsyncClient, plan: DrillPlan, passed: Passed) -> DrillSpan:
    view = await client.cluster.get()
    if view.database_time is None:
        raise Failure("the controller that answers has not heard from PostgreSQL yet; try again in a second")
    kill(plan.primary)
    await _wait(plan.wanted.for_s, passed)
    return DrillSpan(view.database_time, view.database_time + timedelta(seconds=plan.wanted.for_s), "")


async def _hold_drill(plan: DrillPlan, passed: Passed) -> DrillSpan:
    wanted, begun, latest = plan.wanted, None, None
    async with connect((plan.primary.grpc_address,), CALL_S) as direct:
        words: AsyncGenerator[DrillWord, None] = direct.drills.hold_drill(
            plan.primary.id, wanted.for_s, wanted.by, forced=wanted.forced
        )
        async with contextlib.aclosing(words):
            try:
                async for word in words:
                    begun, latest = begun or word.at, word.at
                    passed((word.at - begun).total_seconds())
                    if word.phase is Phase.ENDED:
                        return DrillSpan(begun, word.at, "" if word.time_over else word.reason)
            except Unreachable as error:
                if begun is None or latest is None:
                    raise _out_of_reach(plan) from error
    assert begun is not None, "its words end with ENDED, or with an error"
    return await _after_loss(wanted.for_s, begun, latest or begun, passed)


async def _after_loss(for_s: float, begun: datetime, latest: datetime, passed: Passed) -> DrillSpan:
    """It died, or can't be reached. In either case others go on: see what they make of it, for as long as was asked."""
    before_s = (latest - begun).total_seconds()
    await _wait(for_s - before_s, lambda seconds: passed(before_s + seconds))
    cut = (
        f"the connection to it was lost after {measured(before_s * 1_000)}: it died, was restarted, or can't be reached"
    )
    return DrillSpan(begun, begun + timedelta(seconds=for_s), cut)


async def _wait(for_s: float, passed: Passed) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (seconds := loop.time() - began) < for_s:
        passed(seconds)
        await asyncio.sleep(min(STEP_S, for_s - seconds))
    passed(for_s)


def _out_of_reach(plan: DrillPlan) -> Failure:
    return Failure(
        f"{plan.primary.id} can't be reached at {plan.primary.grpc_address}, though others say that it is alive. A "
        "drill asks it directly: run this where all controllers can be reached, as runners can",
        EXIT_UNREACHABLE,
    )
