"""cronring.v1.Drills: this controller is in a drill for as long as somebody holds the call, and no longer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, actor, required
from cronring.controller.core.node.drill import LONGEST_MS, DrillEnd, PastDrill
from cronring.controller.core.node.events import DrillReleased, DrillRequested
from cronring.controller.errors import Conflict, CronringError
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.drills import Drills
from cronring.protos.cronring.v1 import drills_pb2, drills_pb2_grpc
from cronring.protos.instants import timestamp

SHORTEST_MS: Final = 1_000
BEGIN_MAX_S: Final = 2.0  # from the event to the node's word that it is in a drill
LOOK_S: Final = 0.02
LOOKS_PER_MESSAGE: Final = 25

Event = drills_pb2.DrillEvent


class DrilledNode(Protocol):
    """What a node shows of itself."""

    @property
    def in_drill(self) -> bool: ...
    @property
    def past_drill(self) -> PastDrill | None: ...
    def why_no_drill(self, forced: bool) -> str | None: ...
    def database_now(self, now_ns: int) -> int: ...


class DrillsService(drills_pb2_grpc.DrillsServicer):
    """One drill at a time: here, and by a note in PostgreSQL, in the whole cluster."""

    def __init__(
        self,
        controller_id: str,
        node: DrilledNode,
        drills: Drills,
        clock: Clock,
        put: Callable[[DrillRequested | DrillReleased], None],
    ) -> None:
        self._controller_id = controller_id
        self._node = node
        self._drills = drills
        self._clock = clock
        self._put = put
        self._busy = False

    async def HoldDrill(
        self, request: drills_pb2.HoldDrillRequest, context: Context
    ) -> AsyncIterator[drills_pb2.DrillEvent]:
        by = actor(request.requested_by, context)
        self._check(request)
        self._busy = True
        try:
            await self._note(request.for_ms, request.forced)
            try:
                self._put(DrillRequested(request.for_ms, request.forced, by))
                begun_us = await self._begun(request.forced)
                async for event in self._events(begun_us, begun_us + request.for_ms * 1_000):
                    yield event
            finally:  # the caller hung up, or it is over: then this changes nothing
                self._put(DrillReleased())
                with contextlib.suppress(CronringError):  # the note's time ends by itself
                    await self._drills.claim_again(self._controller_id)
        finally:
            self._busy = False

    def _check(self, request: drills_pb2.HoldDrillRequest) -> None:
        """Raises InvalidRequest or Conflict."""
        if not SHORTEST_MS <= request.for_ms <= LONGEST_MS:
            raise InvalidRequest([("for_ms", f"is {request.for_ms}; it must be from {SHORTEST_MS} to {LONGEST_MS}")])
        meant = required("controller", request.controller, "the id of the controller that is to hold the drill")
        if meant != self._controller_id:
            raise Conflict(f"this is {self._controller_id}, not {meant}: another process has taken its address")
        reason = "it is in a drill already" if self._busy else self._node.why_no_drill(request.forced)
        if reason is not None:
            raise Conflict(f"{self._controller_id} can't hold a drill: {reason}")

    async def _note(self, for_ms: int, forced: bool) -> None:
        """Raises Conflict."""
        standing = await self._drills.hold_drill(self._controller_id, for_ms, forced)
        if standing.noted:
            return
        if standing.other is not None:
            raise Conflict(f"{standing.other} is in a drill already, and of two owners of a job one must not")
        if not standing.ready:
            raise Conflict("no other controller holds a lease, so nobody would take over")
        raise Conflict(f"{self._controller_id} is not in the table of controllers (yet); try again in a second")

    async def _begun(self, forced: bool) -> int:
        """When, in PostgreSQL's time. Raises Conflict if it doesn't."""
        looks = round(BEGIN_MAX_S / LOOK_S)
        while not self._node.in_drill or self._node.past_drill is None:
            looks -= 1
            if looks < 0:
                reason = self._node.why_no_drill(forced) or "its loop is too busy"
                raise Conflict(f"{self._controller_id} did not hold a drill: {reason}")
            await asyncio.sleep(LOOK_S)
        return self._node.past_drill.begun_us

    async def _events(self, begun_us: int, until_us: int) -> AsyncIterator[drills_pb2.DrillEvent]:
        yield Event(kind=Event.KIND_BEGUN, at=timestamp(begun_us), until=timestamp(until_us))
        looks = 0
        while self._node.in_drill:
            await asyncio.sleep(LOOK_S)
            looks += 1
            if looks % LOOKS_PER_MESSAGE == 0:
                yield Event(kind=Event.KIND_LASTS, at=timestamp(self._now_us()), until=timestamp(until_us))
        latest = self._node.past_drill
        assert latest is not None, "it has begun"
        yield Event(
            kind=Event.KIND_ENDED,
            at=timestamp(latest.ended_us),
            until=timestamp(until_us),
            reason=latest.why or "",
            time_over=latest.why is DrillEnd.TIME,
        )

    def _now_us(self) -> int:
        return self._node.database_now(self._clock.now_ns())
