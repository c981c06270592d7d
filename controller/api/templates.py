"""cronring.v1.Templates: set, get, list, delete."""

import contextlib

from cronring.controller.api.etags import check_etag, template_etag
from cronring.controller.api.job_writes import TRIES
from cronring.controller.api.messages import schedule_words
from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, name, note
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.template_specs import find_template, template_values
from cronring.controller.api.token_box import TokenBox
from cronring.controller.errors import NotFound, Outdated
from cronring.controller.ports.caller import caller
from cronring.controller.ports.templates import TemplateRow, Templates, TemplateValues
from cronring.protos.cronring.v1 import templates_pb2, templates_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.protos.jobs import encode_spec
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.names import job_name_fault
from cronring.schema.validate import namespace_fault


class TemplatesService(templates_pb2_grpc.TemplatesServicer):
    """Templates change no job that is there, so nobody has to be told of them."""

    def __init__(self, templates: Templates, box: TokenBox) -> None:
        self._templates = templates
        self._box = box

    async def SetTemplate(self, request: templates_pb2.SetTemplateRequest, context: Context) -> templates_pb2.Template:
        by, why = actor(request.requested_by, context), note("note", request.note)
        named = _named(request.namespace, request.name)
        require(Permission.OPERATE, named[0])
        for _ in range(TRIES):
            with contextlib.suppress(Outdated):
                return await self._set(request, named, by, why)
        raise Outdated(f"others keep changing the template {request.name!r}; try again")

    async def GetTemplate(self, request: templates_pb2.GetTemplateRequest, context: Context) -> templates_pb2.Template:
        return self._told(await find_template(self._templates, *_named(request.namespace, request.name)))

    async def ListTemplates(
        self, request: templates_pb2.ListTemplatesRequest, context: Context
    ) -> templates_pb2.ListTemplatesResponse:
        namespace, limit = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListTemplates", namespace)
        after, _, after_name = pages.text_cursor(request.page_token).partition("/")
        visible = namespaces(Permission.VIEW, namespace)
        rows = await self._templates.list_templates(namespace, (after, after_name), limit + 1, visible)
        page = rows[:limit]
        return templates_pb2.ListTemplatesResponse(
            templates=[template_message(row) for row in page],
            next_page_token=pages.token(f"{page[-1].namespace}/{page[-1].name}") if len(rows) > limit else "",
            total=await total(request, lambda: self._templates.count_templates(namespace, visible)),
        )

    async def DeleteTemplate(
        self, request: templates_pb2.DeleteTemplateRequest, context: Context
    ) -> templates_pb2.DeleteTemplateResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        for _ in range(TRIES):
            with contextlib.suppress(Outdated):
                return await self._delete(request, by, why)
        raise Outdated(f"others keep changing the template {request.name!r}; try again")

    async def _delete(
        self, request: templates_pb2.DeleteTemplateRequest, by: str, why: str
    ) -> templates_pb2.DeleteTemplateResponse:
        """Raises NotAsSeen; Outdated if that became so after it was read."""
        row = await find_template(self._templates, *_named(request.namespace, request.name))
        require(Permission.OPERATE, row.namespace)
        check_etag(request.etag, template_etag(self._box, row), f"template {row.name!r}")
        jobs = await self._templates.delete_template(row.namespace, row.name, by, why, row if request.etag else None)
        return templates_pb2.DeleteTemplateResponse(jobs=jobs)

    async def _set(
        self, request: templates_pb2.SetTemplateRequest, named: tuple[str, str], by: str, why: str
    ) -> templates_pb2.Template:
        """Raises Outdated if somebody changed it after it was read: what they set is not to be lost."""
        try:
            seen: TemplateRow | None = await self._templates.get_template(*named)
        except NotFound:
            seen = None
        there = "" if seen is None else template_etag(self._box, seen)
        check_etag(request.etag, there, f"template {request.name!r}")
        values = template_values(request, TemplateValues() if seen is None else seen.values)
        if seen is not None and seen.values == values:
            message = self._told(seen)
            message.unchanged = True
            return message
        await self._templates.set_template(*named, values, seen, by, why)
        return self._told(await self._templates.get_template(*named))

    def _told(self, row: TemplateRow) -> templates_pb2.Template:
        message = template_message(row)
        message.etag = template_etag(self._box, row)
        return message


def template_message(row: TemplateRow) -> templates_pb2.Template:
    schedule = row.values.spec.schedule
    shown = caller().may(Permission.OUTPUTS, row.namespace)
    return templates_pb2.Template(
        namespace=row.namespace,
        name=row.name,
        description=row.values.description,
        spec=encode_spec(row.values.spec if shown else row.values.spec._replace(payload="")),
        outputs_hidden=not shown,
        created_at=timestamp(row.created_at),
        created_by=row.created_by,
        changed_at=timestamp(row.changed_at),
        changed_by=row.changed_by,
        revision=row.revision,
        jobs=row.jobs,
        schedule_words=schedule_words(schedule, row.values.spec.policy) if schedule else "",
    )


def _named(namespace: str, template: str) -> tuple[str, str]:
    """Raises InvalidRequest."""
    faults = (("namespace", namespace_fault(namespace) if namespace else None), ("name", _name_fault(template)))
    problems: Violations = [(field, fault) for field, fault in faults if fault is not None]
    if problems:
        raise InvalidRequest(problems)
    return namespace or DEFAULT_NAMESPACE, template


def _name_fault(template: str) -> str | None:
    """As of a job's name."""
    fault = job_name_fault(template)
    if fault is None:
        return None
    return (
        "is empty; it must be a template's name, like nightly" if not template else fault.replace("job's", "template's")
    )
