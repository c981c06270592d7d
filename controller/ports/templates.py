"""Templates: named defaults that jobs made through the API start from. Instants are int microseconds since 1970."""

from typing import NamedTuple, Protocol

from cronring.controller.ports.reads import Namespaces
from cronring.schema.job import JobSpec


class TemplateValues(NamedTuple):
    """What a template sets. Fields that its spec leaves out are up to the job."""

    description: str = ""
    spec: JobSpec = JobSpec()


class TemplateRow(NamedTuple):
    """A template as it is kept. `jobs`: that were made from it, and are not deleted."""

    template_id: int
    namespace: str
    name: str
    values: TemplateValues
    revision: int
    created_at: int
    created_by: str
    changed_at: int
    changed_by: str
    jobs: int


class Templates(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def get_template(self, namespace: str, name: str) -> TemplateRow:
        """Raises cronring.controller.errors.NotFound."""
        ...

    async def list_templates(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[TemplateRow]:
        """By namespace and name, from after `after` on (two empty texts: from the first). Without payloads.

        `namespace`: empty for all.
        """
        ...

    async def count_templates(self, namespace: str, namespaces: Namespaces = None) -> int:
        """How many list_templates has, on all pages."""
        ...

    async def set_template(
        self, namespace: str, name: str, values: TemplateValues, seen: TemplateRow | None, by: str, note: str = ""
    ) -> None:
        """Make it (`seen` None), or change the one that was seen. `by` and `note` are kept.

        Raises cronring.controller.errors.Outdated if it was changed since: then nothing is written.
        """
        ...

    async def delete_template(
        self, namespace: str, name: str, by: str, note: str = "", seen: TemplateRow | None = None
    ) -> int:
        """How many jobs came from it; they stay. Raises cronring.controller.errors.NotFound.

        With `seen` it raises Outdated if it isn't what was seen any more.
        """
        ...


def template_key(namespace: str, name: str) -> str:
    """As it is kept with actions."""
    return f"{namespace}/{name}"
