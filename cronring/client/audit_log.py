"""Calls about the audit log: who changed what, who was refused, and the chain that rows are sealed into."""

import builtins
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import audit_log_pb2 as pb2
from cronring.protos.cronring.v1.audit_log_pb2_grpc import AuditLogStub
from cronring.protos.instants import instant_us
from cronring.schema.audit_chain import AuditRow, ChainLink, ChainPart

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.audit_log_pb2_grpc import AuditLogAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class AuditLogEntry:
    """`refused` None: a change, else why, as gRPC names it. `before`, `after`: JSON. `seq` 0: not sealed yet."""

    id: int
    at: datetime | None
    refused: str | None
    times: int
    principal: str
    method: str
    origin: str
    namespace: str
    subject: str
    before: str | None
    after: str | None
    remark: str
    controller: str
    seq: int
    hash: str


class AuditLogCalls:
    """List rows, and read the chain. Only admins are answered."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        principal: str = "",
        method: str = "",
        namespace: str = "",
        subject: str = "",
        refused_only: bool = False,
        changes_only: bool = False,
        limit: int | None = None,
    ) -> builtins.list[AuditLogEntry]:
        """The latest first. `method`, `subject`: a part of them. Raises Invalid, PermissionDenied."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[AuditLogEntry], str]:
            request = pb2.ListAuditLogRequest(
                page_size=page_size, page_token=token, since=convert.timestamp(since), until=convert.timestamp(until),
                principal=principal, method=method, namespace=namespace, subject=subject, refused_only=refused_only,
                changes_only=changes_only,
            )  # fmt: skip
            answer = await self._unary(lambda stub, timeout: stub.ListAuditLog(request, timeout=timeout))
            return [_entry(each) for each in answer.audit_rows], answer.next_page_token

        return await follow(fetch, limit)

    async def chain(self, after_seq: int = 0) -> ChainPart:
        """Sealed rows behind that position; the last part has none. Raises PermissionDenied.

        `cronring.schema.audit_check.ChainCheck` says whether they are whole.
        """
        request = pb2.ReadAuditChainRequest(after_seq=after_seq)
        answer = await self._unary(lambda stub, timeout: stub.ReadAuditChain(request, timeout=timeout))
        return ChainPart(
            [_row(each) for each in answer.audit_rows], _link(answer.previous), _link(answer.cut), _link(answer.head),
            answer.unsealed,
        )  # fmt: skip

    async def _unary(self, call: "Callable[[AuditLogAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(AuditLogStub(channel), self._failover.timeout_s))


def _entry(message: pb2.AuditLogRow) -> AuditLogEntry:
    row = _row(message)
    return AuditLogEntry(
        row.row_id, convert.instant(message.at), row.refused, row.times, row.principal, row.method, row.origin,
        row.namespace, row.subject, row.before, row.after, row.remark, row.controller_id, row.seq, row.hash.hex(),
    )  # fmt: skip


def _row(message: pb2.AuditLogRow) -> AuditRow:
    return AuditRow(
        row_id=message.id,
        at=instant_us(message.at),
        refused=message.refused if message.HasField("refused") else None,
        times=message.times,
        principal=message.principal,
        method=message.method,
        origin=message.origin,
        namespace=message.namespace,
        subject=message.subject,
        before=message.before_json if message.HasField("before_json") else None,
        after=message.after_json if message.HasField("after_json") else None,
        remark=message.remark,
        controller_id=message.controller,
        seq=message.seq,
        hash=message.hash,
    )


def _link(message: pb2.ChainLink) -> ChainLink:
    return ChainLink(message.seq, message.hash)
