"""What an annotation means for a JSON value. The description of a module and its runs use the same reading."""

from __future__ import annotations

import collections.abc
import dataclasses
import sys
import typing
from typing import Any, NamedTuple

from cronring.child.generics import bindings, filled
from cronring.context import Context

if sys.version_info >= (3, 10):
    from types import UnionType

    _UNIONS: tuple[Any, ...] = (typing.Union, UnionType)
else:
    _UNIONS = (typing.Union,)

ANY, NULL, SCALAR, UNION, LITERAL, ARRAY, TUPLE, OBJECT, RECORD, CLASS, TEXT = (
    "any", "null", "scalar", "union", "literal", "array", "tuple", "object", "record", "class", "text",
)  # fmt: skip

_SCALARS = (int, float, str, bool)
_ARRAYS: dict[Any, Any] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Set: frozenset,
}
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "Annotated")


class Shape(NamedTuple):
    """`kind` is one of the above. `made`: the class that a value becomes (or the text of TEXT, which is no type here).

    `inner`: annotations, of the alternatives, of the items (TUPLE: of each; with `...` last, of all), of key and value;
    of LITERAL the constants, of a RECORD what its type variables stand for.
    """

    kind: str
    made: Any = None
    inner: tuple[Any, ...] = ()


class RecordField(NamedTuple):
    """`default`: a tuple with the default; empty if there is none, or if only code can make it."""

    name: str
    annotation: Any
    optional: bool
    default: tuple[Any, ...] = ()


def resolve(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The type that an annotation names, if it is a text; the text itself if the name can't be resolved."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, namespace)  # noqa: S307 - the author's own # nosec B307
            if isinstance(annotation, str):  # quoted, under `from __future__ import annotations`
                annotation = eval(annotation, namespace)  # noqa: S307 - as above # nosec B307
        except Exception:  # a name that only exists for type checkers
            return annotation
    return annotation


def is_context(annotation: Any, namespace: dict[str, Any]) -> bool:
    """Whether a parameter with this annotation gets the Context. An unresolved name is judged by its text."""
    annotation = resolve(annotation, namespace)
    if isinstance(annotation, str):
        return annotation.strip().strip("'\"").rpartition(".")[2] == Context.__name__
    return annotation is Context


def shape_of(annotation: Any) -> Shape:
    """The shape of a resolved annotation. What is not known is CLASS or ANY."""
    annotation = _plain(annotation)
    origin = typing.get_origin(annotation) or annotation
    arguments = typing.get_args(annotation)
    if isinstance(annotation, (str, typing.ForwardRef)):
        return Shape(TEXT, getattr(annotation, "__forward_arg__", annotation))
    if annotation is None or annotation is type(None):
        return Shape(NULL)
    if origin in _UNIONS:
        return Shape(UNION, inner=arguments)
    if origin is typing.Literal:
        return Shape(LITERAL, inner=arguments)
    if origin is tuple:
        return Shape(TUPLE, inner=arguments or (Any, ...))
    return _shape_of_class(annotation, origin, arguments)


def _shape_of_class(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Shape:
    if not isinstance(origin, type) or origin in {object, Any}:
        return Shape(ANY)
    if origin in _SCALARS:
        return Shape(SCALAR, origin)
    if origin in _ARRAYS:
        return Shape(ARRAY, _ARRAYS[origin], arguments or (Any,))
    if origin in _OBJECTS:
        return Shape(OBJECT, dict, arguments or (str, Any))
    if dataclasses.is_dataclass(origin) or is_typed_dict(origin):
        return Shape(RECORD, origin, arguments)
    return Shape(CLASS, origin if arguments else annotation)


def own_annotations(annotated: Any) -> dict[str, Any]:
    """The annotations of a function, or of a class without its bases. Names that don't exist are no error."""
    if sys.version_info >= (3, 14):  # evaluated only now, and a name under TYPE_CHECKING may not exist
        import annotationlib  # noqa: PLC0415

        return annotationlib.get_annotations(annotated, format=annotationlib.Format.FORWARDREF)
    own = vars(annotated).get("__annotations__") if isinstance(annotated, type) else None
    return own or ({} if isinstance(annotated, type) else getattr(annotated, "__annotations__", {}))


def is_typed_dict(made: type) -> bool:
    return issubclass(made, dict) and hasattr(made, "__total__") and hasattr(made, "__annotations__")


def record_fields(record: type, arguments: tuple[Any, ...] = ()) -> list[RecordField]:
    """The fields of a JSON object for this dataclass or TypedDict. `arguments`: those of a generic record."""
    hints = _hints(record)
    if any(hasattr(base, "__parameters__") for base in (record, *record.__mro__)):
        hints = _filled_hints(record, arguments, hints)
    if is_typed_dict(record):
        return [RecordField(name, hint, not _is_required(record, name, hint)) for name, hint in hints.items()]
    found = []
    for field in dataclasses.fields(record):
        if field.init:
            known = field.default is not dataclasses.MISSING
            optional = known or field.default_factory is not dataclasses.MISSING
            default = (field.default,) if known else ()
            found.append(RecordField(field.name, hints.get(field.name, Any), optional, default))
    return found


def _hints(record: type) -> dict[str, Any]:
    namespace = vars(sys.modules.get(record.__module__, typing))
    try:
        hints = typing.get_type_hints(record, include_extras=True)
    except Exception:  # one name that only exists for type checkers spoils it for all
        hints = {}
        for base in reversed(record.__mro__):
            hints.update({name: resolve(hint, namespace) for name, hint in own_annotations(base).items()})
    return hints


def _filled_hints(record: type, arguments: tuple[Any, ...], hints: dict[str, Any]) -> dict[str, Any]:
    """Each hint is filled in for the class that declares it, as two bases may use one variable differently."""
    bound = bindings(record, arguments)
    everywhere = {variable: value for each in reversed(list(bound.values())) for variable, value in each.items()}
    made = {}
    for name, hint in hints.items():
        owner = next((base for base in bound if name in own_annotations(base)), record)
        made[name] = filled(hint, {**everywhere, **bound[owner]})
    return made


def _is_required(record: Any, name: str, hint: Any) -> bool:
    marked = _qualifier(hint)
    if marked in {"Required", "NotRequired"}:  # not counted in where annotations are kept as text
        return marked == "Required"
    return name in getattr(record, "__required_keys__", ())


def _qualifier(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    return getattr(origin, "_name", None) or getattr(origin, "__name__", "") or ""


def _plain(annotation: Any) -> Any:
    """The annotation without parts that say nothing about the value: Annotated, Required, Final, NewType, aliases."""
    while True:
        if hasattr(annotation, "__metadata__") and hasattr(annotation, "__origin__"):
            annotation = annotation.__origin__
        elif _qualifier(annotation) in _QUALIFIERS:
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation
