"""Idempotency keys on gRPC, with real PostgreSQL: the same mechanism as REST's, and a caller that is gone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from cronring.controller.ports.request_keys import RequestKey
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.protos.cronring.v1 import (
    deployments_pb2,
    deployments_pb2_grpc,
    identities_pb2,
    identities_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
)
from cronring.protos.problems import said
from tests.integration.api.conftest import CALLERS, Scene
from tests.support.callers import NamedCallers, judge_of
from tests.support.guarded import guarded
from tests.support.rested import rested
from tests.support.waiting import TIMEOUT_S, wait_until

JOB = "billing/xm.xc"


@pytest.fixture
async def channel(scene: Scene) -> AsyncIterator[grpc.aio.Channel]:
    async with guarded(scene.database, judge_of(NamedCallers(**CALLERS))) as found:
        yield found


def carried(key: str, by: str = "operator") -> Any:
    return (("authorization", f"Bearer test-{by}"), ("idempotency-key", key))


def trigger(channel: grpc.aio.Channel, key: str, note: str = "") -> Any:
    stub: Any = jobs_pb2_grpc.JobsStub(channel)
    return stub.TriggerJob(jobs_pb2.TriggerJobRequest(key=JOB, note=note), metadata=carried(key), timeout=TIMEOUT_S)


async def triggered(scene: Scene) -> int:
    return sum(each.action == "trigger" for each in await scene.world.scene.actions())


async def reason(call: Any) -> tuple[str, list[str]]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    word = said(refused.value.trailing_metadata())  # type: ignore[arg-type]  # the stubs take it for a single pair
    assert word is not None
    return word.reason, [field for field, _ in word.violations]


async def test_it_is_done_once_and_answered_as_before_on_both_wires(channel: grpc.aio.Channel, scene: Scene) -> None:
    first = trigger(channel, "k1")
    made = await first
    assert "idempotency-replayed" not in dict(await first.trailing_metadata())
    again = trigger(channel, "k1")
    assert await again == made
    assert dict(await again.trailing_metadata())["idempotency-replayed"] == "true"
    assert await reason(trigger(channel, "k1", note="another")) == ("KEY_REUSED", [])
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as rest:
        path = "/jobs/billing%2Fxm.xc/trigger"
        answer = await rest.ask("POST", path, {}, by="operator", headers={"Idempotency-Key": "k1"})
    assert (answer.status, answer.body["id"], answer.headers["Idempotency-Replayed"]) == (200, str(made.id), "true")
    assert await triggered(scene) == 1


async def test_who_looks_by_a_dry_run_may_do_it_by_the_same_key(channel: grpc.aio.Channel, scene: Scene) -> None:
    stub: Any = deployments_pb2_grpc.DeploymentsStub(channel)

    async def kill(*, dry_run: bool) -> tuple[Any, bool]:
        request = deployments_pb2.KillDeploymentRequest(key=scene.deployment, dry_run=dry_run)
        call = stub.KillDeployment(request, metadata=carried("k9", by="admin"), timeout=TIMEOUT_S)
        return await call, "idempotency-replayed" in dict(await call.trailing_metadata())

    assert not (await kill(dry_run=True))[1]
    done, replayed = await kill(dry_run=False)
    assert not replayed
    assert await kill(dry_run=False) == (done, True)


async def test_what_has_begun_ends_though_its_caller_is_gone(
    channel: grpc.aio.Channel, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = asyncio.Event(), PostgresRequestKeys.end

    async def slowly(self: PostgresRequestKeys, key: RequestKey, begun_at: int, answer: bytes) -> None:
        begun.set()
        await asyncio.sleep(0.1)  # so that the caller is gone before the answer is kept
        await end(self, key, begun_at, answer)

    monkeypatch.setattr(PostgresRequestKeys, "end", slowly)
    call = trigger(channel, "k")
    waiting = asyncio.ensure_future(_outcome(call))
    async with asyncio.timeout(TIMEOUT_S):
        await begun.wait()
    call.cancel()
    await waiting

    async def answered() -> bool:
        try:
            again = trigger(channel, "k")
            await again
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ABORTED:  # it is being done
                raise
            return False
        return bool(dict(await again.trailing_metadata())["idempotency-replayed"] == "true")

    await wait_until(answered, "the answer was never kept")
    assert await triggered(scene) == 1


async def _outcome(call: Any) -> None:
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_keys_are_refused_where_they_would_not_count(channel: grpc.aio.Channel) -> None:
    jobs: Any = jobs_pb2_grpc.JobsStub(channel)
    identities: Any = identities_pb2_grpc.IdentitiesStub(channel)
    root = carried("k", by="root")
    calls = (
        jobs.ListJobs(jobs_pb2.ListJobsRequest(), metadata=root),
        jobs.WatchJobs(jobs_pb2.WatchJobsRequest(), metadata=root).read(),
        identities.CreateToken(identities_pb2.CreateTokenRequest(name="x"), metadata=root),
        trigger(channel, "a b"),
        trigger(channel, "x" * 256),
    )
    for call in calls:
        assert await reason(call) == ("INVALID", ["Idempotency-Key"])
