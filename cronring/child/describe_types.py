"""The types of verbs' payloads as text, and the records that they are made of."""

from __future__ import annotations

import enum
import inspect
import json
import re
from typing import Any

from cronring.child import shapes
from cronring.child.shapes import record_fields, shape_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NAME_LIMIT = 200
_ENUM_LIMIT = 300  # characters; a type has 500 at most
# As in cronring.schema.payload: a record of that name would be something else.
_RESERVED = frozenset([
    "Unit", "None", "NoneType", "int", "float", "str", "bool", "list", "List", "set", "Set", "frozenset", "FrozenSet",
    "Sequence", "Iterable", "dict", "Dict", "Mapping", "tuple", "Tuple", "Any", "object", "Optional", "Union",
    "Literal",
])  # fmt: skip


class TypeDump:
    """`records`: a dump of each dataclass and TypedDict that was met, by its name in the texts."""

    def __init__(self, module_name: str) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self._module_name = module_name
        self._classes: dict[str, type] = {}

    def text(self, annotation: Any) -> str:
        """One spelling for one type. "Any" for what JSON can't say, and for records that can't be told apart."""
        shape = shape_of(annotation)
        if shape.kind == shapes.NULL:
            return "None"
        if shape.kind == shapes.SCALAR:
            return str(shape.made.__name__)
        if shape.kind == shapes.UNION:
            return " | ".join(dict.fromkeys(map(self.text, shape.inner)))
        if shape.kind == shapes.LITERAL:
            plain = all(constant is None or isinstance(constant, (str, int)) for constant in shape.inner)
            return f"Literal[{', '.join(map(json.dumps, shape.inner))}]" if plain else "Any"
        if shape.kind in {shapes.ARRAY, shapes.OBJECT, shapes.TUPLE}:
            name = {shapes.OBJECT: "dict", shapes.TUPLE: "tuple"}.get(shape.kind) or shape.made.__name__
            return f"{name}[{', '.join('...' if inner is ... else self.text(inner) for inner in shape.inner)}]"
        if shape.kind == shapes.RECORD:
            return self._record(shape.made, shape.inner)
        if shape.kind == shapes.CLASS:
            return _enum_text(shape.made) or self._name(shape.made)
        return str(shape.made) if shape.kind == shapes.TEXT else "Any"

    def _name(self, made: Any) -> str:
        name = getattr(made, "__qualname__", "")
        if made.__module__ != self._module_name or name in _RESERVED:
            name = f"{made.__module__}.{name}"
        return name if _NAME.fullmatch(name) and name not in _RESERVED else "Any"

    def _record(self, record: type, arguments: tuple[Any, ...]) -> str:
        name = self._name(record)
        known = self._classes.setdefault(name, record)
        if name == "Any" or known is not record:
            return "Any"
        if arguments:
            name = f"{name}[{', '.join(map(self.text, arguments))}]"
            if len(name) > _NAME_LIMIT:  # a record that nests in its own arguments would never end
                return "Any"
        if name not in self.records:
            fields = record_fields(record, arguments)
            if not all(_FIELD.fullmatch(field.name) for field in fields):  # a TypedDict's may be any text
                return "Any"
            doc = record.__doc__ or ""
            if doc.startswith(f"{record.__name__}("):  # made by @dataclass
                doc = ""
            described: list[dict[str, Any]] = []
            self.records[name] = {"name": name, "doc": inspect.cleandoc(doc), "fields": described}
            for field in fields:
                dump = {"name": field.name, "type": self.text(field.annotation), "optional": field.optional}
                described.append({**dump, **_default(field.default)})
        return name


def _enum_text(made: Any) -> str:
    """The values of an enum as a Literal; "" if it is no enum, or takes more than its members' values."""
    if not isinstance(made, type) or not issubclass(made, enum.Enum) or issubclass(made, enum.Flag):
        return ""
    if "_missing_" in {name for base in made.__mro__ if base is not enum.Enum for name in vars(base)}:
        return ""
    values = [member.value for member in made]
    text = f"Literal[{', '.join(map(json.dumps, values))}]" if all(type(each) in {str, int} for each in values) else ""
    return text if len(text) <= _ENUM_LIMIT and values else ""


def _default(default: tuple[Any, ...]) -> dict[str, Any]:
    """A field's default as JSON, if JSON can hold the same value."""
    try:
        [value] = default
        again = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"default": again} if again == value and type(again) is type(value) else {}
