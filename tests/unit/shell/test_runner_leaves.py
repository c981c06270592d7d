"""A runner whose stream ends: it has left, or it is dead."""

from collections.abc import Callable

import pytest

from cronring.controller.core.node.events import Event, RunnerBeat, RunnerLeft
from cronring.controller.errors import StoreUnavailable
from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.support.fake_runner import hello
from tests.support.waiting import wait_until
from tests.unit.shell import test_gateway
from tests.unit.shell.test_gateway import World

gates = test_gateway.world


async def test_a_runner_that_drained_has_left_and_one_that_did_not_is_dead(
    gates: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cluster runners` called each stopped one dead. PostgreSQL may be away just then."""

    async def away(_: str) -> None:
        raise StoreUnavailable("connection refused")

    def heard(kind: type[Event], runner_id: str) -> Callable[[], bool]:
        return lambda: any(getattr(each, "runner_id", "") == runner_id for each in gates.inbox.of(kind))

    for runner_id, draining in ("r-1", True), ("r-2", False):
        runner = await gates.connect(hello(runner_id))
        await runner.hear()
        await runner.say(beat=wire.Beat(sequence=1, renew=True, draining=draining))
        await wait_until(heard(RunnerBeat, runner_id), "no beat came")
        monkeypatch.setattr(gates.store, "runner_left", away)
        await runner.close()
        await wait_until(heard(RunnerLeft, runner_id), "its stream did not end")
        monkeypatch.undo()
    await wait_until(lambda: gates.store.runners["r-1"].left_at is not None, "it has not left")
    assert gates.store.runners["r-2"].left_at is None
