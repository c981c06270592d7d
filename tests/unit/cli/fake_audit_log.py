"""An audit log without rows, for FakeApi."""

from typing import Any

from cronring.protos.cronring.v1 import audit_log_pb2, audit_log_pb2_grpc


class NothingOnRecord(audit_log_pb2_grpc.AuditLogServicer):
    async def ListAuditLog(self, request: Any, context: Any) -> audit_log_pb2.ListAuditLogResponse:  # noqa: ARG002, N802
        return audit_log_pb2.ListAuditLogResponse()

    async def ReadAuditChain(self, request: Any, context: Any) -> audit_log_pb2.ReadAuditChainResponse:  # noqa: ARG002, N802
        return audit_log_pb2.ReadAuditChainResponse()
