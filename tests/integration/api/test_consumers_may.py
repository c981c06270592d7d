"""The role of consumers: messages of its namespace, and nothing else."""

from typing import Any

import grpc
import pytest

from cronring.controller.api.policy import POLICY, Audience
from cronring.protos.cronring.v1 import queues_pb2
from cronring.schema.identity import Permission, Role, RoleGrant
from tests.integration.api.conftest import Scene
from tests.integration.api.queue_calls import QUEUE_CALLS
from tests.integration.api.test_who_may import methods
from tests.support.callers import NamedCallers, bearer, judge_of
from tests.support.guarded import guarded
from tests.support.waiting import TIMEOUT_S

SECRET = '"4111"'


async def code_of(channel: Any, method: str, request: Any, caller: str) -> grpc.StatusCode:
    try:
        await channel.unary_unary(f"/{method}")(
            request.SerializeToString(), metadata=bearer(caller), timeout=TIMEOUT_S
        )  # fmt: skip
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_consumer_calls_what_is_for_consumers_in_its_namespace(scene: Scene) -> None:
    callers = NamedCallers(
        here=(RoleGrant(Role.CONSUMER, "billing"),), there=(RoleGrant(Role.CONSUMER, "other"),)
    )  # fmt: skip
    denied, wrong = grpc.StatusCode.PERMISSION_DENIED, []
    async with guarded(scene.database, judge_of(callers)) as channel:
        for name, request, _ in QUEUE_CALLS:
            method = f"cronring.v1.Queues/{name}"
            consumes = POLICY[f"/{method}"].permission is Permission.CONSUME
            found = [await code_of(channel, method, request, caller) for caller in ("here", "there")]
            if found != [grpc.StatusCode.OK if consumes else denied, denied]:
                wrong.append((method, found))
        for path, access in POLICY.items():
            if access.audience is Audience.PEOPLE and access.permission not in {None, Permission.CONSUME}:
                method = methods()[path.removeprefix("/")]
                if not method.server_streaming:
                    request = queues_pb2.ListQueuesRequest()
                    code = await code_of(channel, path.removeprefix("/"), request, "here")
                    wrong += [(path, [code])] if code is not denied else []
    assert not wrong, wrong


@pytest.mark.parametrize(("role", "sees"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
async def test_payloads_are_shown_to_those_who_may_see_outputs(scene: Scene, role: Role, sees: bool) -> None:
    callers = NamedCallers(one=(RoleGrant(role, "billing"),), root=(RoleGrant(Role.ADMIN),))
    async with guarded(scene.database, judge_of(callers)) as channel:
        wire: Any = channel
        put = queues_pb2.PutMessageRequest(namespace="billing", queue="q", payload=SECRET)
        assert await code_of(channel, "cronring.v1.Queues/PutMessage", put, "root") is grpc.StatusCode.OK
        asked = queues_pb2.ListMessagesRequest(namespace="billing", queue="q").SerializeToString()
        raw = await wire.unary_unary("/cronring.v1.Queues/ListMessages")(
            asked, metadata=bearer("one"), timeout=TIMEOUT_S
        )  # fmt: skip
    (message,) = queues_pb2.ListMessagesResponse.FromString(raw).messages
    assert message.payload == (SECRET if sees else "")
