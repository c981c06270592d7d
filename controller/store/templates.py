"""Templates in PostgreSQL: a statement or a transaction each, with who did it and why."""

import asyncpg

from cronring.controller.errors import NotFound, Outdated
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.templates import TemplateRow, TemplateValues, template_key
from cronring.controller.services.audit_changes import of_template
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.controller.store.rows import spec_columns, spec_of
from cronring.schema.job import JobSpec
from cronring.sql.parameters import (
    CountTemplates,
    CreateTemplate,
    DeleteTemplate,
    GetTemplate,
    ListTemplates,
    UpdateTemplate,
)

_VALUES_FIRST = TemplateRow._fields.index("values")
_VALUES_END = _VALUES_FIRST + 1 + len(JobSpec._fields)


class PostgresTemplates:
    """cronring.controller.ports.templates.Templates."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_template(self, namespace: str, name: str) -> TemplateRow:
        """Raises NotFound."""
        records = await self._database.fetch(GetTemplate(namespace=namespace, name=name))
        if not records:
            raise no_such_template(namespace, name)
        return _row(records[0])

    async def list_templates(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[TemplateRow]:
        """By namespace and name; see cronring.controller.ports.templates.Templates."""
        after_namespace, after_name = after
        records = await self._database.fetch(
            ListTemplates(
                namespace=namespace,
                namespaces=namespaces,
                after_namespace=after_namespace,
                after_name=after_name,
                limit=limit,
            )
        )
        return list(map(_row, records))

    async def count_templates(self, namespace: str, namespaces: Namespaces = None) -> int:
        ((count,),) = await self._database.fetch(CountTemplates(namespace=namespace, namespaces=namespaces))
        return int(count)

    async def set_template(
        self, namespace: str, name: str, values: TemplateValues, seen: TemplateRow | None, by: str, note: str = ""
    ) -> None:
        """Raises Outdated; see cronring.controller.ports.templates.Templates."""
        columns = spec_columns(values.spec) | {"description": values.description}
        key = template_key(namespace, name)
        async with self._database.transaction("setting a template") as transaction:
            if seen is None:
                written = await transaction.fetch(CreateTemplate(namespace=namespace, name=name, actor=by, **columns))
            else:
                written = await transaction.fetch(
                    UpdateTemplate(template_id=seen.template_id, revision=seen.revision, actor=by, **columns)
                )
            if not written:
                raise Outdated(f"the template {key!r} has been changed meanwhile; try again")
            details = {"revision": 1 if seen is None else seen.revision + 1}
            await add_actions(transaction, [Action("set_template", by, note, template=key, details=details)])
            # Of that revision, and so what was there until now.
            before = None if seen is None else seen.values
            await record(transaction, of_template(namespace, name, before, values))

    async def delete_template(
        self, namespace: str, name: str, by: str, note: str = "", seen: TemplateRow | None = None
    ) -> int:
        """How many jobs came from it. Raises NotFound, Outdated."""
        async with self._database.transaction("deleting a template") as transaction:
            template_id, revision = (None, None) if seen is None else (seen.template_id, seen.revision)
            records = await transaction.fetch(
                DeleteTemplate(namespace=namespace, name=name, template_id=template_id, revision=revision)
            )
            if not records and seen is not None:
                raise Outdated(f"the template {template_key(namespace, name)!r} has been changed meanwhile; try again")
            if not records:
                raise no_such_template(namespace, name)
            description, *spec, jobs = records[0]
            key = template_key(namespace, name)
            await add_actions(transaction, [Action("delete_template", by, note, template=key, details={"jobs": jobs})])
            await record(transaction, of_template(namespace, name, TemplateValues(description, spec_of(spec)), None))
            return int(jobs)


def no_such_template(namespace: str, name: str) -> NotFound:
    return NotFound(f"there is no template {template_key(namespace, name)!r}; `cronring template list` shows them")


def _row(record: asyncpg.Record) -> TemplateRow:
    columns = tuple(record)
    description, *spec = columns[_VALUES_FIRST:_VALUES_END]
    return TemplateRow._make(
        (*columns[:_VALUES_FIRST], TemplateValues(description, spec_of(spec)), *columns[_VALUES_END:])
    )
