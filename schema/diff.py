"""What changed between two descriptions of a module."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from cronring.schema.duration import format_duration
from cronring.schema.module import DataType, Module, Verb
from cronring.schema.policy_model import FIELDS
from cronring.schema.text_print import data_field, policy_text, verb_metadata, verb_signature

# Where a verb stands in its file says nothing about it. Policies are compared one by one.
_COMPARED: Final = tuple(field.name for field in fields(Verb) if field.name not in {"name", "line", "policy"})


class FieldChange(NamedTuple):
    """One thing said differently; values as text, empty for what was or is not said."""

    field: str
    old: str
    new: str


class VerbChange(NamedTuple):
    """A verb that is in both, and what is different about it."""

    name: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class ModuleDifference:
    """Verbs in the order of the module they are in; changed ones in the new order. Falsy if nothing changed."""

    module: tuple[FieldChange, ...]
    added: tuple[Verb, ...]
    removed: tuple[Verb, ...]
    changed: tuple[VerbChange, ...]

    def __bool__(self) -> bool:
        return bool(self.module or self.added or self.removed or self.changed)

    def lines(self) -> Iterator[str]:
        """For people: `+` for what is new, `-` for what is gone, `~` for what changed."""
        for change in self.module:
            yield _change_line("~ module", change)
        for verb in self.removed:
            yield _verb_line("-", verb)
        for verb in self.added:
            yield _verb_line("+", verb)
        for changed in self.changed:
            for change in changed.fields:
                yield _change_line(f"~ verb {changed.name}", change)


def diff_modules(old: Module, new: Module) -> ModuleDifference:
    """What `new` has that `old` hasn't, the other way round, and what they have differently."""
    old_verbs = {verb.name: verb for verb in old.verbs}
    new_verbs = {verb.name: verb for verb in new.verbs}
    changed = []
    for verb in new.verbs:
        before = old_verbs.get(verb.name)
        found = () if before is None else _changes(before, verb)
        if found:
            changed.append(VerbChange(verb.name, found))
    return ModuleDifference(
        tuple(
            FieldChange(field, getattr(old, field), getattr(new, field))
            for field in ("namespace", "name", "doc")
            if getattr(old, field) != getattr(new, field)
        )
        + _type_changes(old, new),
        tuple(verb for verb in new.verbs if verb.name not in old_verbs),
        tuple(verb for verb in old.verbs if verb.name not in new_verbs),
        tuple(changed),
    )


def _changes(old: Verb, new: Verb) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(field, _shown(old, field), _shown(new, field))
        for field in _COMPARED
        if getattr(old, field) != getattr(new, field)
    ) + tuple(
        FieldChange(field.name, policy_text(field.name, old.policy), policy_text(field.name, new.policy))
        for field in FIELDS
        if getattr(old.policy, field.name) != getattr(new.policy, field.name)
    )


def _type_changes(old: Module, new: Module) -> tuple[FieldChange, ...]:
    """Records by what they hold: their order and their docs are of no consequence."""
    before, after = ({data.name: _record(data) for data in module.types} for module in (old, new))
    return tuple(
        FieldChange(f"data {name}", before.get(name, ""), after.get(name, ""))
        for name in before | after
        if before.get(name) != after.get(name)
    )


def _record(data: DataType) -> str:
    return f"{{ {', '.join(map(data_field, data.fields))} }}" if data.fields else "{}"


def _shown(verb: Verb, field: str) -> str:
    value = getattr(verb, field)
    if field == "timeout_ms":
        return format_duration(verb.timeout_ms) if verb.timeout_ms and verb.timeout_ms > 0 else ""
    if field == "is_async":
        return "async" if verb.is_async else "sync"
    if field == "request_optional":
        return "optional" if verb.request_optional else "required"
    return str(value)


def _verb_line(sign: str, verb: Verb) -> str:
    return " ".join([f"{sign} verb {verb_signature(verb)}", *verb_metadata(verb)])


def _change_line(start: str, change: FieldChange) -> str:
    name = change.field.removesuffix("_ms").removeprefix("is_").replace("request_optional", "request")
    if name == "doc":
        return f"{start}: doc changed"
    old, new = (value or "nothing" for value in (change.old, change.new))
    return f"{start}: {name} {old} -> {new}"
