"""cronring.v1.AuditLog: list it, and read its chain."""

from typing import Final

from cronring.controller.api.paging import PAGE_SIZE_MAX, Pages, page_size
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, instant, name, number, row_id
from cronring.controller.api.scope import namespaces
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.audit_chain import AuditFilter, AuditLog
from cronring.protos.cronring.v1 import audit_log_pb2 as pb2
from cronring.protos.cronring.v1 import audit_log_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.audit_chain import AuditRow, ChainLink
from cronring.schema.identity import Permission
from cronring.schema.instant import FIRST_US, LAST_US

_LAST_ID: Final = 2**63 - 1  # of PostgreSQL's bigint


class AuditLogService(audit_log_pb2_grpc.AuditLogServicer):
    """Rows that concern the whole cluster are only for admins of all namespaces."""

    def __init__(self, audit_log: AuditLog, box: TokenBox) -> None:
        self._audit_log = audit_log
        self._box = box

    async def ListAuditLog(self, request: pb2.ListAuditLogRequest, context: Context) -> pb2.ListAuditLogResponse:
        wanted, pages = self._wanted(request)
        rows = await self._audit_log.list_rows(wanted)
        page = rows[: wanted.limit - 1]
        more = len(rows) > len(page)
        return pb2.ListAuditLogResponse(
            audit_rows=map(_row, page),
            next_page_token=pages.token(f"{page[-1].at} {page[-1].row_id}") if more else "",
        )

    async def ReadAuditChain(self, request: pb2.ReadAuditChainRequest, context: Context) -> pb2.ReadAuditChainResponse:
        limit = number(request, "page_size", PAGE_SIZE_MAX, PAGE_SIZE_MAX)
        page = await self._audit_log.read_chain(row_id("after_seq", request.after_seq), limit)
        return pb2.ReadAuditChainResponse(
            audit_rows=map(_row, page.rows),
            previous=_link(page.previous),
            cut=_link(page.cut),
            head=_link(page.head),
            unsealed=page.unsealed,
        )

    def _wanted(self, request: pb2.ListAuditLogRequest) -> tuple[AuditFilter, Pages]:
        """One more than the page has, which says whether there is another. Raises InvalidRequest, Forbidden."""
        if request.refused_only and request.changes_only:
            raise InvalidRequest([("changes_only", "is set beside refused_only; leave one of them out")])
        since = instant("since", request.since) if request.HasField("since") else FIRST_US
        until = instant("until", request.until) if request.HasField("until") else LAST_US
        named = {each: name(each, getattr(request, each)) for each in ("namespace", "principal", "method", "subject")}
        visible = namespaces(Permission.ADMIN, named["namespace"])
        pages = Pages(self._box, "ListAuditLog", since, until, named, request.refused_only, request.changes_only)
        cursor = pages.text_cursor(request.page_token)
        at, _, last_id = cursor.partition(" ")
        before = (int(at), int(last_id)) if cursor else (until, _LAST_ID)
        wanted = AuditFilter(
            since, before, page_size(request) + 1, visible, changes=not request.refused_only,
            refusals=not request.changes_only, **named,
        )  # fmt: skip
        return wanted, pages


def _row(row: AuditRow) -> pb2.AuditLogRow:
    return pb2.AuditLogRow(
        id=row.row_id, at=timestamp(row.at), refused=row.refused, times=row.times, principal=row.principal,
        method=row.method, origin=row.origin, namespace=row.namespace, subject=row.subject, before_json=row.before,
        after_json=row.after, remark=row.remark, controller=row.controller_id, seq=row.seq, hash=row.hash,
    )  # fmt: skip


def _link(link: ChainLink) -> pb2.ChainLink:
    return pb2.ChainLink(seq=link.seq, hash=link.hash)
