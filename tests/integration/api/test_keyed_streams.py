"""Idempotency keys of orders to many jobs, on both wires and real PostgreSQL: given once, and answered as before."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
import pytest

from cronring.controller.api import keyed_streams
from cronring.controller.store.control import PostgresControl
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from tests.integration.api.conftest import CALLERS, Scene
from tests.integration.api.test_grpc_keys import reason
from tests.support.callers import NamedCallers, judge_of
from tests.support.guarded import guarded
from tests.support.rested import Rested
from tests.support.waiting import TIMEOUT_S, wait_until

MODULE: Final = "xm"  # three jobs, of which one is paused
REPLAYED: Final = ("idempotency-replayed", "true")


@pytest.fixture
async def channel(scene: Scene) -> AsyncIterator[grpc.aio.Channel]:
    async with guarded(scene.database, judge_of(NamedCallers(**CALLERS))) as found:
        yield found


def order(channel: grpc.aio.Channel, key: str, by: str = "operator", **more: Any) -> Any:
    request = jobs_pb2.ControlJobsRequest(
        filter=jobs_pb2.JobFilter(namespace="billing", module=MODULE),
        action=jobs_pb2.ControlJobsRequest.ACTION_TRIGGER,
        **more,
    )
    stub: Any = jobs_pb2_grpc.JobsStub(channel)
    carried = (("authorization", f"Bearer test-{by}"), ("idempotency-key", key))
    return stub.ControlJobs(request, metadata=carried, timeout=TIMEOUT_S)


async def given(call: Any) -> tuple[list[Any], bool]:
    """The answers, and whether they are those of a former request."""
    answers = [each async for each in call]
    return answers, REPLAYED in tuple(await call.trailing_metadata())


async def refusal(call: Any) -> str:
    return (await reason(given(call)))[0]


async def triggered(scene: Scene) -> int:
    return sum(each.action == "trigger" for each in await scene.world.scene.actions())


async def test_an_order_is_given_once(channel: grpc.aio.Channel, scene: Scene, rest: Rested) -> None:
    looked, _ = await given(order(channel, "k", dry_run=True))
    first, replayed = await given(order(channel, "k"))
    assert ([each.key for each in first], replayed) == ([each.key for each in looked], False)
    assert [first[0].total, *(each.position for each in first)] == [3, 0, 1, 2, 3]
    assert all(each.done for each in first[1:])
    assert await given(order(channel, "k")) == (first, True)
    assert await refusal(order(channel, "k", note="another")) == "KEY_REUSED"
    body = {"filter": {"namespace": "billing", "module": MODULE}, "action": "ACTION_TRIGGER"}
    answer = await rest.ask("POST", "/jobs:control", body, by="operator", headers={"Idempotency-Key": "k"})
    assert (answer.status, answer.headers["Idempotency-Replayed"]) == (200, "true")
    assert len(answer.body.splitlines()) == len(first)
    assert await triggered(scene) == 3
    (others, replayed) = await given(order(channel, "k", by="root"))
    assert (len(others), replayed) == (4, False), "keys are of who asks"
    assert await triggered(scene) == 6


async def test_what_was_refused_may_be_ordered_again_by_its_key(channel: grpc.aio.Channel, scene: Scene) -> None:
    assert await refusal(order(channel, "k", expected=2)) == "CONFLICT"

    async def is_free() -> bool:
        try:
            return (await given(order(channel, "k", expected=3)))[1] is False
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                return False
            raise

    await wait_until(is_free, "the key is still taken")
    assert await triggered(scene) == 3


async def test_it_goes_on_though_its_caller_is_gone(
    channel: grpc.aio.Channel, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, order_jobs = asyncio.Event(), asyncio.Event(), PostgresControl.order_jobs

    async def held(self: PostgresControl, *arguments: Any, **more: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await order_jobs(self, *arguments, **more)

    monkeypatch.setattr(PostgresControl, "order_jobs", held)
    call = order(channel, "k")
    assert (await call.read()).total == 3
    async with asyncio.timeout(TIMEOUT_S):
        await begun.wait()
    call.cancel()
    assert await refusal(order(channel, "k")) == "KEY_IN_USE"
    assert await triggered(scene) == 0
    go_on.set()

    async def is_answered() -> bool:
        try:
            answers, replayed = await given(order(channel, "k"))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ABORTED:  # it is being done
                raise
            return False
        return replayed and [each.position for each in answers] == [0, 1, 2, 3]

    await wait_until(is_answered, "the answers were never kept")
    assert await triggered(scene) == 3


async def test_more_answers_than_are_kept_are_said_to_be(
    channel: grpc.aio.Channel, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_streams, "KEPT_BYTES", 1)
    assert len((await given(order(channel, "k")))[0]) == 4
    assert await refusal(order(channel, "k")) == "KEY_UNDECIDED"
    assert await triggered(scene) == 3
