"""cronring.v1.Limits: set, remove, list."""

from typing import Final

from cronring.controller.api.paging import Pages, page_size
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, name, note
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.limits import LimitRow, Limits
from cronring.protos.cronring.v1 import limits_pb2, limits_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.queues import module_fault
from cronring.schema.validate import namespace_fault

PLACES_MAX: Final = 1_000_000


class LimitsService(limits_pb2_grpc.LimitsServicer):
    """Whoever waits for a place is told by PostgreSQL's NOTIFY."""

    def __init__(self, limits: Limits, box: TokenBox) -> None:
        self._limits = limits
        self._box = box

    async def SetLimit(self, request: limits_pb2.SetLimitRequest, context: Context) -> limits_pb2.Limit:
        by, why = actor(request.requested_by, context), note("note", request.note)
        namespace, module = _named(request.namespace, request.module)
        require(Permission.ADMIN, namespace)
        places = request.max_concurrent
        if not 1 <= places <= PLACES_MAX:
            raise InvalidRequest([("max_concurrent", f"is {places}; it must be from 1 to {PLACES_MAX}")])
        return limit_message(await self._limits.set_limit(namespace, module, places, by, why))

    async def RemoveLimit(self, request: limits_pb2.RemoveLimitRequest, context: Context) -> limits_pb2.Limit:
        by, why = actor(request.requested_by, context), note("note", request.note)
        namespace, module = _named(request.namespace, request.module)
        require(Permission.ADMIN, namespace)
        return limit_message(await self._limits.remove_limit(namespace, module, by, why))

    async def ListLimits(
        self, request: limits_pb2.ListLimitsRequest, context: Context
    ) -> limits_pb2.ListLimitsResponse:
        named, size = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListLimits", named)
        after, _, after_module = pages.text_cursor(request.page_token).partition("/")
        rows = await self._limits.list_limits(
            named or None, None, namespaces(Permission.VIEW, named), after=(after, after_module), limit=size + 1
        )
        page = rows[:size]
        return limits_pb2.ListLimitsResponse(
            limits=map(limit_message, page),
            next_page_token=pages.token(f"{page[-1].namespace}/{page[-1].module}") if len(rows) > size else "",
        )


def limit_message(row: LimitRow) -> limits_pb2.Limit:
    return limits_pb2.Limit(
        namespace=row.namespace,
        module=row.module,
        max_concurrent=row.max_concurrent,
        running=row.running,
        changed_at=timestamp(row.changed_at),
        changed_by=row.changed_by,
        note=row.note,
    )


def _named(namespace: str, module: str) -> tuple[str, str]:
    """Raises InvalidRequest."""
    faults = (
        ("namespace", namespace_fault(namespace) if namespace else None),
        ("module", module_fault(module) if module else None),
    )
    problems: Violations = [(field, fault) for field, fault in faults if fault is not None]
    if problems:
        raise InvalidRequest(problems)
    return namespace or DEFAULT_NAMESPACE, module
