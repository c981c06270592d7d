"""An audit log without rows, for FakeApi."""

from typing import Any

from cronring.protos.cronring.v1.audit_log_pb2 import ListAuditLogResponse, ReadAuditChainResponse
from cronring.protos.cronring.v1.audit_log_pb2_grpc import AuditLogServicer


class NothingOnRecord(AuditLogServicer):
    async def ListAuditLog(self, request: Any, context: Any) -> ListAuditLogResponse:  # noqa: ARG002, N802
        return ListAuditLogResponse()

    async def ReadAuditChain(self, request: Any, context: Any) -> ReadAuditChainResponse:  # noqa: ARG002, N802
        return ReadAuditChainResponse()
