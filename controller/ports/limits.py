"""Limits: how much may run at once of a module, or of a namespace. Instants are int microseconds since 1970."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cronring.controller.ports.reads import Namespaces


class LimitRow(NamedTuple):
    """`module` empty: of the whole namespace. `running`: unfinished executions that it counts."""

    namespace: str
    module: str
    max_concurrent: int
    running: int
    changed_at: int
    changed_by: str
    note: str


# docs/decisions/0101: an etag is checked under the lock
Check = Callable[[LimitRow | None], None]
"""Is told what is there (None: nothing), before it is changed and while nobody else can; raises to leave it so."""


class Limits(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def set_limit(
        self, namespace: str, module: str, max_concurrent: int, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        """From now on at most so many executions of the module (empty: of the namespace) begin to run at once.

        What runs already goes on, and counts; it is counted anew each time. There need not be such a module yet.
        """
        ...

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        """As it was. Raises cronring.controller.errors.NotFound."""
        ...

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        """By namespace, that of a namespace before those of its modules. None: of all. `after`: a namespace and module.

        `limit`: the first ones of them.
        """
        ...


def limit_name(namespace: str, module: str) -> str:
    """In words: `module billing`, `module prod/billing`, `namespace prod`."""
    if not module:
        return f"namespace {namespace}"
    return f"module {module}" if namespace == "default" else f"module {namespace}/{module}"


def no_such_limit(namespace: str, module: str) -> str:
    return f"the {limit_name(namespace, module)} has no limit; `cronring limits list` shows those that there are"
