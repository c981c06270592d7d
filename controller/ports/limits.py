"""Limits: how much may run at once of a module, of a namespace, or of each value that a label has there.

Instants are int microseconds since 1970.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from cronring.controller.ports.reads import Namespaces
from cronring.schema.keys import qualified

FULLEST: Final = 5  # values that are named of a limit by label


class ValueRow(NamedTuple):
    """One value of a limit by label, and how many unfinished executions have a place of it."""

    value: str
    running: int


class LimitRow(NamedTuple):
    """`module` empty: of the whole namespace. `running`: unfinished executions that it counts.

    `label` not empty: the limit is for each of its values. `values`: how many values have something running.
    `full_values`: how many of them have reached the limit; `fullest` are the first few of those.
    """

    namespace: str
    module: str
    max_concurrent: int
    running: int
    changed_at: int
    changed_by: str
    note: str
    label: str = ""
    values: int = 0
    full_values: int = 0
    fullest: tuple[ValueRow, ...] = ()


# docs/decisions/0101: an etag is checked under the lock
Check = Callable[[LimitRow | None], None]
"""Gets the present limit (None: there is none), while nobody else can change it; raises to leave it as it is."""


class Limits(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def set_limit(
        self,
        namespace: str,
        module: str,
        max_concurrent: int,
        by: str,
        note: str = "",
        check: Check | None = None,
        *,
        label: str = "",
    ) -> LimitRow:
        """From now on at most so many executions of the module (empty: of the namespace) begin to run at once.

        With a label, the limit is for each of its values; jobs without that label are not limited. Present runs go on,
        and count. The module need not exist yet.
        """
        ...

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None, *, label: str = ""
    ) -> LimitRow:
        """Returns the limit as it was. Raises cronring.controller.errors.NotFound."""
        ...

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str, str] = ("", "", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        """By namespace, that of a namespace before those of its modules, then by label. None: of all.

        `after`: a namespace, a module and a label. `limit`: the first ones of them.
        """
        ...

    async def count_limits(self, namespace: str | None = None, namespaces: Namespaces = None) -> int:
        """How many list_limits has, on all pages."""
        ...


def limit_name(namespace: str, module: str, label: str = "", value: str | None = None) -> str:
    """In words: `module billing`, `namespace prod`, `each workspace of module prod/billing`, `workspace=a of ...`."""
    group = f"namespace {namespace}"
    if module:
        group = f"module {qualified(namespace, module)}"
    if not label:
        return group
    return f"each {label} of {group}" if value is None else f"{label}={value} of {group}"


def no_such_limit(namespace: str, module: str, label: str = "") -> str:
    name = limit_name(namespace, module, label)
    return f"{'' if label else 'the '}{name} has no limit; `cronring limits list` shows those that there are"
