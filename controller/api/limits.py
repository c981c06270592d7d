"""cronring.v1.Limits: set, remove, list."""

from typing import Final

from cronring.controller.api.etags import check_etag, limit_etag
from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, name, note
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.limits import Check, LimitRow, Limits, limit_name
from cronring.protos.cronring.v1 import limits_pb2, limits_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.labels import label_faults
from cronring.schema.queues import module_fault
from cronring.schema.validate import namespace_fault

PLACES_MAX: Final = 1_000_000


class LimitsService(limits_pb2_grpc.LimitsServicer):
    """PostgreSQL's NOTIFY tells controllers of free places, so this need not."""

    def __init__(self, limits: Limits, box: TokenBox) -> None:
        self._limits = limits
        self._box = box

    async def SetLimit(self, request: limits_pb2.SetLimitRequest, context: Context) -> limits_pb2.Limit:
        by, why = actor(request.requested_by, context), note("note", request.note)
        namespace, module, label = _named(request.namespace, request.module, request.label)
        require(Permission.ADMIN, namespace)
        most = request.max_concurrent
        if not 1 <= most <= PLACES_MAX:
            raise InvalidRequest([("max_concurrent", f"is {most}; it must be from 1 to {PLACES_MAX}")])
        check = self._check(request.etag, namespace, module, label)
        return self._told(await self._limits.set_limit(namespace, module, most, by, why, check, label=label))

    async def RemoveLimit(self, request: limits_pb2.RemoveLimitRequest, context: Context) -> limits_pb2.Limit:
        by, why = actor(request.requested_by, context), note("note", request.note)
        namespace, module, label = _named(request.namespace, request.module, request.label)
        require(Permission.ADMIN, namespace)
        check = self._check(request.etag, namespace, module, label)
        return self._told(await self._limits.remove_limit(namespace, module, by, why, check, label=label))

    async def ListLimits(
        self, request: limits_pb2.ListLimitsRequest, context: Context
    ) -> limits_pb2.ListLimitsResponse:
        named, size = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListLimits", named)
        after, module, label = _after(pages.text_cursor(request.page_token))
        visible = namespaces(Permission.VIEW, named)
        rows = await self._limits.list_limits(
            named or None, None, visible, after=(after, module, label), limit=size + 1
        )
        page = rows[:size]
        return limits_pb2.ListLimitsResponse(
            limits=map(self._told, page),
            next_page_token=pages.token("/".join(_key(page[-1]))) if len(rows) > size else "",
            total=await total(request, lambda: self._limits.count_limits(named or None, visible)),
        )

    def _told(self, row: LimitRow) -> limits_pb2.Limit:
        message = limit_message(row)
        message.etag = limit_etag(self._box, row)
        return message

    def _check(self, etag: str, namespace: str, module: str, label: str) -> Check:
        def check(row: LimitRow | None) -> None:
            what = f"the limit of {limit_name(namespace, module, label)}"
            check_etag(etag, "" if row is None else limit_etag(self._box, row), what)

        return check


def limit_message(row: LimitRow) -> limits_pb2.Limit:
    return limits_pb2.Limit(
        namespace=row.namespace,
        module=row.module,
        max_concurrent=row.max_concurrent,
        running=row.running,
        changed_at=timestamp(row.changed_at),
        changed_by=row.changed_by,
        note=row.note,
        label=row.label,
        values=row.values,
        full_values=row.full_values,
        fullest=[limits_pb2.LimitedValue(value=value, running=running) for value, running in row.fullest],
    )


def _key(row: LimitRow) -> tuple[str, str, str]:
    return row.namespace, row.module, row.label


def _after(cursor: str) -> tuple[str, str, str]:
    """The inverse of `_key`. Of the three parts only a label has slashes."""
    namespace, _, rest = cursor.partition("/")
    module, _, label = rest.partition("/")
    return namespace, module, label


def _named(namespace: str, module: str, label: str) -> tuple[str, str, str]:
    """Raises InvalidRequest."""
    faults = (
        ("namespace", namespace_fault(namespace) if namespace else None),
        ("module", module_fault(module) if module else None),
        ("label", next((fault for _, fault in label_faults({label: ""})), None) if label else None),
    )
    problems: Violations = [(field, fault) for field, fault in faults if fault is not None]
    if problems:
        raise InvalidRequest(problems)
    return namespace or DEFAULT_NAMESPACE, module, label
