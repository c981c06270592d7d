"""Calls about the cluster's defaults: what jobs have that don't say it, and whose verbs don't."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import defaults_pb2
from cronring.protos.cronring.v1.defaults_pb2_grpc import DefaultsStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.defaults_pb2_grpc import DefaultsAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ClusterDefaults:
    """`timeout_ms` None: the --timeout of the controllers. `late_after`: a duration like "30s". "" and 0: none.

    `revision` grows with each change. `etag` is of what is set, for `update`.
    """

    timeout_ms: int | None
    late_after: str
    retries: int
    revision: int
    changed_at: datetime | None
    changed_by: str
    note: str
    etag: str


class DefaultsCalls:
    """Get, update. `by` says who asks, which is kept; "": this address."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def get(self) -> ClusterDefaults:
        """As they are now."""
        request = defaults_pb2.GetDefaultsRequest()
        return _defaults(
            await self._failover.unary(
                lambda channel: DefaultsStub(channel).GetDefaults(request, timeout=self._failover.timeout_s)
            )
        )

    async def update(
        self,
        *,
        timeout_ms: int | None = None,
        late_after: str | None = None,
        retries: int | None = None,
        etag: str = "",
        by: str = "",
        note: str = "",
    ) -> ClusterDefaults:
        """Set what is given; None: it stays. 0 and "" unset. Jobs have it at once, and what runs keeps what it had.

        Raises Invalid; EtagMismatch for an etag of what has been changed since.
        """
        request = defaults_pb2.UpdateDefaultsRequest(
            timeout_ms=timeout_ms, late_after=late_after, retries=retries, etag=etag, requested_by=by, note=note
        )
        return _defaults(
            await self._change(lambda stub, timeout: stub.UpdateDefaults(request, timeout=timeout), repeatable=not etag)
        )

    async def _change(
        self, call: "Callable[[DefaultsAsyncStub, float], Awaitable[Answer]]", *, repeatable: bool
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(DefaultsStub(channel), self._failover.timeout_s),
            "`cronring defaults`",
            repeatable=repeatable,
        )


def _defaults(message: defaults_pb2.ClusterDefaults) -> ClusterDefaults:
    return ClusterDefaults(
        message.timeout_ms if message.HasField("timeout_ms") else None,
        message.late_after,
        message.retries,
        message.revision,
        convert.instant(message.changed_at),
        message.changed_by,
        message.note,
        message.etag,
    )
