"""What becomes of a verb's call that fails where another try of it was successful meanwhile."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.verb_calls import VerbCallsService
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import Conflict, IllegalTransition, NotFound, Outdated, StoreError, StoreUnavailable
from cronring.controller.ports.caller import calling
from cronring.controller.ports.verb_calls import CallDone, VerbCall
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.identity import LOCAL

CALL = wire.VerbCall(execution_id=7, number=1, pause=jobs_pb2.PauseJobRequest(key="m.v:x"))


class Store:
    """Of VerbCalls. `done`: what it says, one look after the other."""

    def __init__(self, *done: bool) -> None:
        self._done = list(done)

    async def standing(self, _: VerbCall) -> tuple[str, bool]:
        return "m.v", self._done.pop(0)

    @contextlib.contextmanager
    def keeping(self, _: VerbCall) -> Iterator[None]:
        yield


class Orders:
    """Of JobOrders: it fails."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.tried = 0

    async def pause(self, request: jobs_pb2.PauseJobRequest, by: str) -> None:
        self.tried += 1
        assert (request.requested_by, by) == ("execution 7 of m.v", "execution 7 of m.v")
        if self._error is not None:
            raise self._error

    create = update = delete = resume = told = pause


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def exception(self, event: str, error: BaseException) -> None:
        self.events.append(f"{event} {error}")


async def answered(error: Exception | None, *done: bool) -> tuple[wire.VerbAnswer, Orders, Log]:
    orders, log = Orders(error), Log()
    parts: Any = (Store(*done), orders, None, None, lambda _: None, None, lambda *_, **__: None, log)
    with calling(LOCAL):
        answer = await VerbCallsService(*parts).answer("r1", CALL)
    return answer, orders, log


async def test_what_was_done_before_is_not_tried() -> None:
    answer, orders, _ = await answered(None, True)
    assert (answer.key, orders.tried) == ("m.v:x", 0)


@pytest.mark.parametrize(
    "error",
    [
        CallDone("done"),
        NotFound("it is gone, by this very call"),
        Conflict("another one"),
        IllegalTransition("not now", job="m.v:x", state="a", target="b", action="c"),
        Outdated("changed"),
        NeverRuns("it has passed"),
        InvalidRequest([("until", "has passed")]),
        StoreError("a look at what was committed was refused"),
    ],
)
async def test_what_fails_for_what_another_try_has_done_is_done(error: Exception) -> None:
    answer, *_ = await answered(error, False, True)
    assert answer.key == "m.v:x"


@pytest.mark.parametrize(
    ("error", "reason", "again"),
    [
        (NotFound("no"), "NOT_FOUND", False),
        (Conflict("no"), "CONFLICT", False),
        (NeverRuns("no"), "INVALID", False),
        (Outdated("no"), "OUTDATED", True),
        (StoreError("no"), "STATEMENT_REFUSED", False),
    ],
)
async def test_else_it_is_refused_as_by_the_api(error: Exception, reason: str, again: bool) -> None:
    answer, *_ = await answered(error, False, False)
    assert (answer.refusal.reason, answer.refusal.again) == (reason, again)


async def test_without_the_database_nobody_can_look_so_it_is_asked_again() -> None:
    answer, *_ = await answered(StoreUnavailable("away"), False)
    assert (answer.refusal.reason, answer.refusal.again) == ("DATABASE_AWAY", True)


async def test_a_defect_is_in_the_log_and_the_verb_is_told() -> None:
    answer, _, log = await answered(ZeroDivisionError("oh"), False)
    assert (answer.refusal.reason, answer.refusal.again) == ("UNEXPECTED", False)
    assert "the controller's log has the details" in answer.refusal.problem
    assert log.events == ["verb_call_error oh"]
