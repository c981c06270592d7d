"""What a runner logs of its version: a line for each change, whichever controllers tell it, and however often."""

import itertools
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.integration.runner import test_service
from tests.integration.runner.fake_controller import FakeController, make_run
from tests.integration.runner.test_service import Start
from tests.support.waiting import wait_until

start = test_service.start
Lines = list[MutableMapping[str, Any]]
EXECUTIONS = itertools.count(1)
WORDS = ("deployment_active", "deployment_inactive", "module_refused")


@pytest.fixture
def log() -> Iterator[Lines]:
    with structlog.testing.capture_logs() as lines:
        yield lines


def told(log: Lines) -> list[str]:
    return [line["event"] for line in log if line["event"] in WORDS]


async def tell(controller: FakeController, *, active: bool, deployment: str = "d") -> None:
    """And wait until the runner has read it: it runs what comes behind it."""
    standings = wire.Standings(standings=[wire.Standing(deployment=deployment, active=active)])
    await controller.send(wire.ControllerMessage(standings=standings))
    execution_id = next(EXECUTIONS)
    await controller.dispatch(make_run(execution_id, "noop"))
    await controller.until(lambda: execution_id in controller.reports)


async def connected_again(controller: FakeController) -> None:
    hellos = len(controller.hellos)
    address = controller.address
    await controller.stop()
    await controller.start(address)
    await controller.until(lambda: len(controller.hellos) > hellos and controller.streams > 0)


async def test_each_change_is_a_line_whoever_tells_it(start: Start, log: Lines) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        await start(a, b)
        for active, expected in (
            (True, []),
            (False, ["deployment_inactive"]),
            (True, ["deployment_active"]),
            (False, ["deployment_inactive"]),
        ):
            log.clear()
            for controller in (a, b, a):
                await tell(controller, active=active)
                assert told(log) == expected
        assert log[0]["log_level"] == "warning"
        a.active = False
        await connected_again(a)
        await tell(a, active=False)
        assert told(log) == ["deployment_inactive"], "it is as it was"
        await tell(a, active=False, deployment="another's")
        a.active = True
        await connected_again(a)
        await wait_until(lambda: told(log) == ["deployment_inactive", "deployment_active"], "Welcome is not believed")


async def test_a_version_that_is_inactive_from_the_start_says_so_once(start: Start, log: Lines) -> None:
    async with FakeController("a") as a, FakeController("b") as b:
        a.active = b.active = False
        await start(a, b)
        await tell(a, active=False)
        await tell(b, active=False)
        assert told(log) == ["deployment_inactive"]


async def test_a_refusal_is_told_once_and_again_when_it_is_another(start: Start, log: Lines) -> None:
    async with FakeController("a") as a:
        a.problem = "no such zone"
        await start(a)
        await wait_until(lambda: told(log) == ["module_refused"], "it is not told")
        await connected_again(a)
        a.problem = "another one"
        await connected_again(a)
        await wait_until(lambda: len(told(log)) == 2, "another one is not told")
        a.problem = ""
        await connected_again(a)
        a.problem = "another one"
        await connected_again(a)
        await wait_until(lambda: told(log) == ["module_refused"] * 3, "it is not told again")
        assert [line["problem"] for line in log if line["event"] in WORDS] == ["no such zone"] + ["another one"] * 2
