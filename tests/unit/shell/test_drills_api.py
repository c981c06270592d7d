"""A drill lasts as long as the call, and every way out of it ends it."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from cronring.controller.api.drills import DrillsService
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.core.node.drill import DrillEnd, PastDrill
from cronring.controller.core.node.events import DrillReleased, DrillRequested
from cronring.controller.errors import Conflict, StoreUnavailable
from cronring.controller.ports.caller import calling
from cronring.controller.ports.drills import Drill
from cronring.protos.cronring.v1.drills_pb2 import DrillEvent, HoldDrillRequest
from cronring.schema.identity import LOCAL

CONTEXT: Any = None  # asked only for who it is, which the requests say
READY = Drill(True, 2, None)


class Parts:
    """A node that does at once what it is told, and PostgreSQL. `refuses`: why the node won't; `works`: it begins."""

    def __init__(self, standing: Drill = READY, refuses: str | None = None, *, works: bool = True) -> None:
        self.standing = standing
        self.refuses = refuses
        self.works = works
        self.in_drill = False
        self.past_drill: PastDrill | None = None
        self.told: list[Any] = []
        self.service = DrillsService("c1", self, self, self, self.put)

    def why_no_drill(self, forced: bool) -> str | None:
        return None if forced else self.refuses

    def database_now(self, now_ns: int) -> int:
        return now_ns // 1_000

    def now_ns(self) -> int:
        return 7_000_000_000

    def wall_us(self) -> int:
        raise AssertionError("drills are timed by PostgreSQL's clock")

    def put(self, event: DrillRequested | DrillReleased) -> None:
        self.told.append(event)
        if isinstance(event, DrillRequested) and self.works:
            self.in_drill, self.past_drill = True, PastDrill(5_000_000)
        elif isinstance(event, DrillReleased):
            self.end(DrillEnd.RELEASED)

    def end(self, why: DrillEnd) -> None:
        if self.in_drill:
            self.in_drill, self.past_drill = False, PastDrill(5_000_000, 6_000_000, why)

    async def hold_drill(self, controller_id: str, for_ms: int, forced: bool) -> Drill:
        assert (controller_id, for_ms, forced) == ("c1", 5_000, False)
        self.told.append("noted")
        return self.standing

    async def claim_again(self, controller_id: str) -> None:
        assert controller_id == "c1"
        self.told.append("void")
        raise StoreUnavailable("away")

    async def begin(self, **changes: Any) -> AsyncGenerator[DrillEvent, None]:
        fields: dict[str, Any] = {"controller": "c1", "for_ms": 5_000, "requested_by": "ann"}
        request = HoldDrillRequest(**(fields | changes))
        with calling(LOCAL):
            events: Any = self.service.HoldDrill(request, CONTEXT)
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event


@pytest.mark.parametrize("for_ms", [0, 999, 60_001, -1])
async def test_how_long_has_bounds(for_ms: int) -> None:
    parts = Parts()
    with pytest.raises(InvalidRequest, match=r"for_ms: is .*; it must be from 1000 to 60000"):
        await anext(parts.begin(for_ms=for_ms))
    assert parts.told == []


async def test_it_begins_and_says_when_it_is_over_and_why() -> None:
    parts = Parts()
    words = parts.begin()
    begun = await anext(words)
    assert (begun.kind, begun.at.seconds, begun.until.seconds) == (DrillEvent.KIND_BEGUN, 5, 10)
    lasts = await anext(words)
    assert (lasts.kind, lasts.at.seconds) == (DrillEvent.KIND_LASTS, 7)
    parts.end(DrillEnd.TIME)
    ended = await anext(words)
    assert (ended.kind, ended.at.seconds, ended.time_over) == (DrillEvent.KIND_ENDED, 6, True)
    assert ended.reason == "its time is over"
    with pytest.raises(StopAsyncIteration):
        await anext(words)
    assert parts.told == ["noted", DrillRequested(5_000, False, "ann"), DrillReleased(), "void"]


async def test_whoever_hangs_up_ends_it_and_another_one_may_begin() -> None:
    parts = Parts()
    words = parts.begin()
    await anext(words)
    with pytest.raises(Conflict, match="c1 can't hold a drill: it is in a drill already"):
        await anext(parts.begin(forced=True))
    await words.aclose()
    assert not parts.in_drill
    assert parts.told[-2:] == [DrillReleased(), "void"]
    assert (await anext(parts.begin())).kind == DrillEvent.KIND_BEGUN


@pytest.mark.parametrize(
    ("parts", "changes", "says"),
    [
        (Parts(), {"controller": "c2"}, "this is c1, not c2"),
        (Parts(refuses="it is about to leave"), {}, "c1 can't hold a drill: it is about to leave"),
        (Parts(Drill(False, 1, "c2")), {}, "c2 is in a drill already"),
        (Parts(Drill(False, 0, None)), {}, "no other controller holds a lease"),
        (Parts(Drill(False, 2, None)), {}, "c1 is not in the table of controllers"),
    ],
)
async def test_it_is_refused_before_anything_is_done(parts: Parts, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Conflict, match=says):
        await anext(parts.begin(**changes))
    assert [each for each in parts.told if each != "noted"] == []


async def test_a_node_that_does_not_begin_is_released_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cronring.controller.api.drills.BEGIN_MAX_S", 0.1)
    parts = Parts(works=False)
    with pytest.raises(Conflict, match="c1 did not hold a drill: its loop is too busy"):
        await anext(parts.begin())
    assert parts.told[-2:] == [DrillReleased(), "void"]
