"""Which classes a run can make of JSON, and where a parameter asks for a class that can't be made of it."""

from __future__ import annotations

import enum
from typing import Any, Callable

from cronring.child import shapes
from cronring.child.shapes import Shape, record_fields, shape_of
from cronring.context import Context

# Classes of the standard library that JSON has as text.
_ISO = {"datetime.datetime", "datetime.date", "datetime.time"}
_OF_TEXT = {"decimal.Decimal", "uuid.UUID", "pathlib.Path", "pathlib.PurePath"}

REMEDY = (
    "use a dataclass, a TypedDict, an enum, int, float, str, bool, list, dict, datetime, date, time, Decimal, UUID or "
    "Path, or a class with model_validate (pydantic); or Any, to take the JSON as it is"
)


def builder_of(made: Any) -> Callable[[Any], Any] | None:
    """A function that makes an object of this class from a JSON value; None: there is none."""
    module = getattr(made, "__module__", "").replace("pathlib._local", "pathlib")  # as Python 3.13 has it
    name = f"{module}.{getattr(made, '__qualname__', '')}"
    if isinstance(made, type) and issubclass(made, enum.Enum):
        return made
    if hasattr(made, "model_validate"):  # pydantic
        build: Callable[[Any], Any] = made.model_validate
        return build
    if name in _ISO:
        # "Z" is understood from Python 3.11 on.
        return lambda text: made.fromisoformat(text[:-1] + "+00:00" if text[-1:] == "Z" else text)
    return (lambda value: made(str(value))) if name in _OF_TEXT else None


def unbuildable(annotation: Any) -> tuple[str, str] | None:
    """The first class in a parameter's type that can't be made of JSON, as (where in it, the class); None: all can.

    `where` is "" for the parameter itself, `.lines` or `[]` for what is inside. A name that only type checkers know
    can't be judged, and passes.
    """
    return _Search().find(annotation, "")


class _Search:
    def __init__(self) -> None:
        self._seen: set[Any] = set()

    def find(self, annotation: Any, where: str) -> tuple[str, str] | None:
        shape = shape_of(annotation)
        if shape.kind == shapes.CLASS and shape.made is not Context and builder_of(shape.made) is None:
            return where, _name(shape.made)
        for inner, step in _inside(shape, self._seen):
            found = self.find(inner, where + step)
            if found is not None:
                return found
        return None


def _inside(shape: Shape, seen: set[Any]) -> list[tuple[Any, str]]:
    if shape.kind == shapes.RECORD:
        if shape.made in seen:  # records may hold records of their own kind, with ever other arguments
            return []
        seen.add(shape.made)
        return [(field.annotation, f".{field.name}") for field in record_fields(shape.made, shape.inner)]
    if shape.kind == shapes.OBJECT:
        return [(shape.inner[1], ".*")]
    if shape.kind in {shapes.ARRAY, shapes.TUPLE}:
        return [(inner, "[]") for inner in shape.inner if inner is not ...]
    return [(inner, "") for inner in shape.inner] if shape.kind == shapes.UNION else []


def _name(made: Any) -> str:
    name = getattr(made, "__qualname__", None) or repr(made)
    module = getattr(made, "__module__", "builtins")
    return name if module == "builtins" else f"{module}.{name}"
