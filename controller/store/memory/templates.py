"""Templates, in memory; see controller/store/templates.py."""

from cronring.controller.errors import NotFound, Outdated
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.templates import TemplateRow, TemplateValues, template_key
from cronring.controller.services.audit_changes import of_template
from cronring.controller.store.memory.rows import StoredAction
from cronring.controller.store.memory.tables import MemoryTables


class MemoryTemplates(MemoryTables):
    """Implements cronring.controller.ports.templates.Templates."""

    async def get_template(self, namespace: str, name: str) -> TemplateRow:
        return self._template(namespace, name)

    async def list_templates(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[TemplateRow]:
        keys = [
            key
            for key in sorted(self.templates)
            if key > after and namespace in {"", key[0]} and (namespaces is None or key[0] in namespaces)
        ]
        rows = [self._template(*key) for key in keys[:limit]]
        return [row._replace(values=row.values._replace(spec=row.values.spec._replace(payload=""))) for row in rows]

    async def count_templates(self, namespace: str, namespaces: Namespaces = None) -> int:
        return len(await self.list_templates(namespace, ("", ""), len(self.templates), namespaces))

    async def set_template(
        self, namespace: str, name: str, values: TemplateValues, seen: TemplateRow | None, by: str, note: str = ""
    ) -> None:
        there, now = self.templates.get((namespace, name)), self.now_us()
        if _version(there) != _version(seen):
            raise Outdated(f"the template {name!r} has been changed meanwhile; try again")
        if there is None:
            self.templates_made += 1
            row = TemplateRow(self.templates_made, namespace, name, values, 1, now, by, now, by, 0)
        else:
            row = there._replace(values=values, revision=there.revision + 1, changed_at=now, changed_by=by)
        self.templates[namespace, name] = row
        details: dict[str, object] = {"revision": row.revision}
        self._log(
            StoredAction("set_template", by, note, None, details, at=now, template=template_key(namespace, name)),
            of_template(namespace, name, None if there is None else there.values, values),
        )

    async def delete_template(
        self, namespace: str, name: str, by: str, note: str = "", seen: TemplateRow | None = None
    ) -> int:
        row = self._template(namespace, name)
        if seen is not None and _version(row) != _version(seen):
            raise Outdated(f"the template {name!r} has been changed meanwhile; try again")
        del self.templates[namespace, name]
        details: dict[str, object] = {"jobs": row.jobs}
        key = template_key(namespace, name)
        self._log(
            StoredAction("delete_template", by, note, None, details, at=self.now_us(), template=key),
            of_template(namespace, name, row.values, None),
        )
        return row.jobs

    def _template(self, namespace: str, name: str) -> TemplateRow:
        row = self.templates.get((namespace, name))
        if row is None:
            raise NotFound(f"there is no template {template_key(namespace, name)!r}")
        jobs = [job for job in self.jobs.values() if (job.deployment.module[0], job.template) == (namespace, name)]
        return row._replace(jobs=sum(not job.removed for job in jobs))


def _version(row: TemplateRow | None) -> tuple[int, int] | None:
    return None if row is None else (row.template_id, row.revision)
