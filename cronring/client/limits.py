"""Calls about limits: how much may run at once of a module, or of a namespace."""

import builtins
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import limits_pb2
from cronring.protos.cronring.v1.limits_pb2_grpc import LimitsStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.limits_pb2_grpc import LimitsAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Limit:
    """`module` "": of the whole namespace. `running`: unfinished executions that it counts."""

    namespace: str
    module: str
    max_concurrent: int
    running: int
    changed_at: datetime | None
    changed_by: str
    note: str


class LimitCalls:
    """Set, remove, list. `by` says who asks, which is kept; "": this address. All may be repeated."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def set(
        self, max_concurrent: int, module: str = "", namespace: str = "default", *, by: str = "", note: str = ""
    ) -> Limit:
        """At most so many executions of the module ("": of the namespace) run at once. Raises Invalid."""
        request = limits_pb2.SetLimitRequest(
            namespace=namespace, module=module, max_concurrent=max_concurrent, requested_by=by, note=note
        )
        return _limit(
            await self._change(lambda stub, timeout: stub.SetLimit(request, timeout=timeout), repeatable=True)
        )

    async def remove(self, module: str = "", namespace: str = "default", *, by: str = "", note: str = "") -> Limit:
        """As it was. Raises NotFound."""
        request = limits_pb2.RemoveLimitRequest(namespace=namespace, module=module, requested_by=by, note=note)
        return _limit(await self._change(lambda stub, timeout: stub.RemoveLimit(request, timeout=timeout)))

    async def list(self, namespace: str = "") -> builtins.list[Limit]:
        """By namespace, its own before those of its modules. `namespace`: "" for all."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[Limit], str]:
            request = limits_pb2.ListLimitsRequest(page_size=page_size, page_token=token, namespace=namespace)
            answer = await self._unary(lambda stub, timeout: stub.ListLimits(request, timeout=timeout))
            return [_limit(each) for each in answer.limits], answer.next_page_token

        return await follow(fetch, None)

    async def _change(
        self, call: "Callable[[LimitsAsyncStub, float], Awaitable[Answer]]", *, repeatable: bool = False
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(LimitsStub(channel), self._failover.timeout_s),
            "`cronring limits list`",
            repeatable=repeatable,
        )

    async def _unary(self, call: "Callable[[LimitsAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(LimitsStub(channel), self._failover.timeout_s))


def _limit(message: limits_pb2.Limit) -> Limit:
    return Limit(
        message.namespace,
        message.module,
        message.max_concurrent,
        message.running,
        convert.instant(message.changed_at),
        message.changed_by,
        message.note,
    )
