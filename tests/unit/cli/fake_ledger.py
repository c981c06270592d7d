"""The part of the API with canned answers that reads the books."""

from typing import Any

from cronring.protos.cronring.v1 import ledger_pb2, ledger_pb2_grpc
from tests.unit.cli.fake_times import stamp


class FakeLedger(ledger_pb2_grpc.LedgerServicer):
    check: Any
    not_found: Any
    jobs: Any
    executions: Any
    audit: ledger_pb2.AuditResponse
    books: Any

    async def Audit(self, request: Any, context: Any) -> ledger_pb2.AuditResponse:  # noqa: N802
        await self.check(request, context)
        if request.job not in {"", *(each.key for each in self.jobs)}:
            await self.not_found(context, f"job {request.job}")
        return self.audit

    async def ListBooks(self, request: Any, context: Any) -> ledger_pb2.ListBooksResponse:  # noqa: N802
        await self.check(request, context)
        known = [key for key in request.keys if key in {each.key for each in self.jobs}]
        books = [ledger_pb2.JobBook(job=key, entries=self.books) for key in known if self.books]
        return ledger_pb2.ListBooksResponse(books=books)

    async def Why(self, request: Any, context: Any) -> ledger_pb2.WhyResponse:  # noqa: N802
        await self.check(request, context)
        if request.job not in {each.key for each in self.jobs}:
            await self.not_found(context, f"job {request.job}")
        return ledger_pb2.WhyResponse(
            sentences=["A tick of billing.refresh was due at 8.", "Execution 3 completed."], verdict="executed",
            job=request.job, tick=stamp(0), attempts=[self.executions[0]], timezone="Europe/Berlin", hosted=True,
            skip=ledger_pb2.Skip(reason="overlap", first_tick=stamp(0), last_tick=stamp(0), ticks=1),
            waiting=[ledger_pb2.WaitingRun(id=1, trigger="retry", tick=stamp(0), attempt=2, run_at=stamp(9))],
        )  # fmt: skip
