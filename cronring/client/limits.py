"""Calls about limits: how much may run at once of a module, of a namespace, or of each value of a label."""

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
class LimitedValue:
    """A value of a label, and how many executions of it run."""

    value: str
    running: int


@dataclass(frozen=True, slots=True)
class Limit:
    """`module` "": of the whole namespace. `running`: unfinished executions that it counts.

    `label` not "": so many of each of its values. `values` have something running, `full_values` as much as they may.
    `fullest` are the first five, those that run most in front.
    """

    namespace: str
    module: str
    max_concurrent: int
    running: int
    changed_at: datetime | None
    changed_by: str
    note: str
    label: str
    values: int
    full_values: int
    fullest: builtins.list[LimitedValue]
    etag: str = ""  # of what is set, for `set` and `remove`


class LimitCalls:
    """Set, remove, list. `by` says who asks, which is kept; "": this address. All may be repeated."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def set(
        self,
        max_concurrent: int,
        module: str = "",
        namespace: str = "default",
        *,
        label: str = "",
        by: str = "",
        note: str = "",
        etag: str = "",
    ) -> Limit:
        """At most so many executions of the module ("": of the namespace) run at once. Raises Invalid.

        `label`: so many of each of its values, as `workspace`. What has no such label is not limited by it.
        `etag`: only if the limit still has this one, else EtagMismatch is raised.
        """
        request = limits_pb2.SetLimitRequest(
            namespace=namespace, module=module, max_concurrent=max_concurrent, requested_by=by, note=note, label=label,
            etag=etag,
        )  # fmt: skip
        return _limit(
            await self._change(lambda stub, timeout: stub.SetLimit(request, timeout=timeout), repeatable=not etag)
        )

    async def remove(
        self, module: str = "", namespace: str = "default", *, label: str = "", by: str = "", note: str = "",
        etag: str = "",
    ) -> Limit:  # fmt: skip
        """As it was. Raises NotFound. `etag`: as of `set`."""
        request = limits_pb2.RemoveLimitRequest(
            namespace=namespace, module=module, requested_by=by, note=note, label=label, etag=etag
        )
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
        message.label,
        message.values,
        message.full_values,
        [LimitedValue(each.value, each.running) for each in message.fullest],
        message.etag,
    )
