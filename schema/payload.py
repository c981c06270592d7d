"""Payloads: JSON values that verbs are given, held against the type of the verb's parameter.

A type's name is a record of the module, one of Python's own, or unknown: then it accepts any value, as only the
author's code knows better. (An enum's values stand in its text, as a Literal.) A generic record is one for each use:
its name has its arguments, `Page[int]`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple
from uuid import UUID

from cronring.schema.module import DataType, Module
from cronring.schema.nearest import nearest
from cronring.schema.types import LITERAL, UNIT, type_tokens

PAYLOAD_LIMIT: Final = 64 * 1024  # bytes of UTF-8
DEPTH_LIMIT: Final = 100
_FAULTS_SHOWN: Final = 20
_HINTS_MAX: Final = 5  # one takes milliseconds among hundreds of fields, and the loop waits for all of them
_NULLS: Final = frozenset({UNIT, "None", "NoneType"})
_SCALARS: Final[dict[str, tuple[type, ...]]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_ARRAYS: Final = frozenset({"list", "List", "set", "Set", "frozenset", "FrozenSet", "Sequence", "Iterable"})
_OBJECTS: Final = frozenset({"dict", "Dict", "Mapping"})
_TUPLES: Final = frozenset({"tuple", "Tuple"})


def _iso(made: type[date] | type[time]) -> Callable[[Any], object]:
    # "Z" as the author's Python reads it, see cronring.child.payloads.
    return lambda text: made.fromisoformat(text[:-1] + "+00:00" if text[-1:] == "Z" else text)


# Classes of the standard library that runs make of JSON (cronring.child.payloads): what fails here fails there, with an
# example.
_FORMATS: Final[dict[str, tuple[Callable[[Any], object], str]]] = {
    "datetime.datetime": (_iso(datetime), "2026-03-01T08:00:00Z"),
    "datetime.date": (_iso(date), "2026-03-01"),
    "datetime.time": (_iso(time), "08:00:00"),
    "uuid.UUID": (lambda value: UUID(str(value)), "12345678-1234-5678-1234-567812345678"),
    "decimal.Decimal": (lambda value: Decimal(str(value)), "12.50"),
}
_ENCODER: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
# What a record may not be called, as it would mean something else in a type.
RESERVED: Final = frozenset(
    {*_NULLS, *_SCALARS, *_ARRAYS, *_OBJECTS, *_TUPLES, "Any", "object", "Optional", "Union", LITERAL}
)


class NoPayload(ValueError):
    """A text that is no payload at all."""


class Type(NamedTuple):
    """A type as a tree. `name` is "|" for alternatives; a Literal's arguments are its constants, as JSON."""

    name: str
    arguments: tuple["Type", ...]

    def __str__(self) -> str:
        if self.name == "|":
            return " | ".join(map(str, self.arguments))
        return f"{self.name}[{', '.join(map(str, self.arguments))}]" if self.arguments else self.name


def canonical_json(value: object) -> str:
    """The one text of a JSON value, keys as they stand. Raises ValueError for what JSON has not, or UTF-8."""
    text = _ENCODER.encode(value)
    text.encode()  # lone surrogates
    return text


class ReadPayload(NamedTuple):
    """A payload's value, and the one text of it that is stored."""

    value: Any
    text: str


def read_payload(text: str) -> ReadPayload:
    """Raises NoPayload for what is too long or too deep, no JSON, or holds what other readers of JSON don't take."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > PAYLOAD_LIMIT:
        raise NoPayload(f"it has {size} bytes; at most {PAYLOAD_LIMIT} are allowed")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise NoPayload(f"it is nested deeper than {DEPTH_LIMIT}") from None
    except NoPayload:
        raise
    except json.JSONDecodeError as error:
        raise NoPayload(f"it is no JSON: {error.msg}, line {error.lineno}, column {error.colno}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise NoPayload(f"it is no JSON: {error}") from None
    if _depth(value) > DEPTH_LIMIT:
        raise NoPayload(f"it is nested deeper than {DEPTH_LIMIT}")
    try:
        return ReadPayload(value, canonical_json(value))
    except ValueError:
        raise NoPayload("it holds halves of surrogate pairs, which no text may") from None


def payload_faults(module: Module, type_text: str, json_text: str) -> list[str]:
    """What is wrong with a payload for a parameter of that type, each by its JSON path; none: the verb may have it."""
    try:
        value = read_payload(json_text).value
    except NoPayload as error:
        return [str(error)]
    return value_faults({data.name: data for data in module.types}, type_text, value)


def value_faults(types: Mapping[str, DataType], type_text: str, value: object) -> list[str]:
    """As payload_faults, for a value that has been read."""
    faults = _Check(types).faults(parse_type(type_text), value, "$")
    return [fault for fault, _ in zip(faults, range(_FAULTS_SHOWN), strict=False)]


@lru_cache(maxsize=10_000)
def parse_type(canonical: str) -> Type:
    """The tree of a type in its canonical spelling."""
    tokens = type_tokens(canonical)
    tree, _ = _alternatives(tokens, 0)
    return tree


def _alternatives(tokens: list[str], start: int) -> tuple[Type, int]:
    options = []
    while True:
        option, start = _single(tokens, start)
        options.append(option)
        if start >= len(tokens) or tokens[start] != "|":
            return (option if len(options) == 1 else Type("|", tuple(options))), start
        start += 1


def _single(tokens: list[str], start: int) -> tuple[Type, int]:
    name = tokens[start]
    start += 1
    if start >= len(tokens) or tokens[start] != "[":
        return Type(name, ()), start
    arguments = []
    while tokens[start] != "]":
        argument, start = _alternatives(tokens, start + 1)
        arguments.append(argument)
    return _plain(Type(name, tuple(arguments))), start + 1


def _plain(type_: Type) -> Type:
    """`Optional[A]` and `Union[A, B]` are alternatives like `A | None`."""
    if type_.name == "Optional" and len(type_.arguments) == 1:
        return Type("|", (*type_.arguments, Type("None", ())))
    return Type("|", type_.arguments) if type_.name == "Union" else type_


class _Check:
    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._types = types
        # Alternatives inside alternatives would be tried again for each way that leads to them: exponentially often.
        self._fitting: dict[tuple[Type, int], bool] = {}
        self._hints = _HINTS_MAX  # that may still be given

    def faults(self, type_: Type, value: object, path: str) -> Iterator[str]:
        name = type_.name
        # A generic record's arguments are part of its name.
        data = self._types.get(str(type_) if type_.arguments and name not in RESERVED else name)
        if data is not None:
            yield from self._record(data, value, path)
        elif name == "|":
            yield from self._one_of(type_, value, path)
        elif name in _NULLS:
            yield from _unless(value is None, type_, value, path)
        elif name in _SCALARS:
            right = isinstance(value, _SCALARS[name]) and (name == "bool" or not isinstance(value, bool))
            yield from _unless(right, type_, value, path)
        elif name == LITERAL:
            right = any(_same(json.loads(str(constant)), value) for constant in type_.arguments)
            yield from _unless(right, type_, value, path)
        elif name in _FORMATS:
            yield from _of_format(type_, value, path)
        elif name in _ARRAYS or name in _TUPLES:
            yield from self._array(type_, name in _TUPLES, value, path)
        elif name in _OBJECTS:
            yield from self._object(type_, value, path)

    def _one_of(self, type_: Type, value: object, path: str) -> Iterator[str]:
        options = [option for option in type_.arguments if option.name not in _NULLS]
        if value is None and len(options) < len(type_.arguments):
            return
        if len(options) == 1:
            yield from self.faults(options[0], value, path)
        elif not any(self._fits(option, value) for option in options):
            yield _wrong(type_, value, path)

    def _fits(self, type_: Type, value: object) -> bool:
        known = self._fitting.get((type_, id(value)))
        if known is None:
            left, self._hints = self._hints, 0  # nobody reads what a try says
            known = next(self.faults(type_, value, ""), None) is None
            self._hints = left
            self._fitting[type_, id(value)] = known
        return known

    def _array(self, type_: Type, fixed: bool, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield _wrong(type_, value, path)
            return
        arguments = type_.arguments
        if not arguments:
            return
        if fixed and arguments[-1].name != "...":
            if len(value) != len(arguments):
                yield f"{path}: has {len(value)} items, but {type_} has {len(arguments)}"
                return
        else:
            arguments = arguments[:1] * len(value)
        for index, (argument, item) in enumerate(zip(arguments, value, strict=True)):
            yield from self.faults(argument, item, f"{path}[{index}]")

    def _object(self, type_: Type, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield _wrong(type_, value, path)
        elif len(type_.arguments) == 2:
            for key, item in value.items():
                yield from self.faults(type_.arguments[1], item, f"{path}{_step(key)}")

    def _record(self, data: DataType, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield _wrong(Type(data.name, ()), value, path)
            return
        fields = {field.name: field for field in data.fields}
        for key in value:
            if key not in fields:
                yield f"{path}{_step(key)}: {data.name} has no such field{self._hint(key, fields)}"
        for field in data.fields:
            if field.name in value:
                yield from self.faults(parse_type(field.type), value[field.name], f"{path}.{field.name}")
            elif not field.optional:
                yield f"{path}.{field.name}: is missing; {data.name} needs it ({field.type})"

    def _hint(self, key: str, fields: Iterable[str]) -> str:
        """What was meant; "" where enough was said already."""
        if not self._hints:
            return ""
        self._hints -= 1
        close = nearest(key, fields)
        return f"; did you mean {close}?" if close else f"; it has {', '.join(fields) or 'no fields'}"


def _of_format(type_: Type, value: object, path: str) -> Iterator[str]:
    read, example = _FORMATS[type_.name]
    try:
        read(value)
    except (ValueError, TypeError, AttributeError, InvalidOperation):
        yield f"{_wrong(type_, value, path)}, like {json.dumps(example)}"


def _unless(right: bool, type_: Type, value: object, path: str) -> Iterator[str]:
    if not right:
        yield _wrong(type_, value, path)


def _wrong(type_: Type, value: object, path: str) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return f"{path}: is {shown if len(shown) <= 60 else shown[:59] + '…'}, not {type_}"


def _same(constant: object, value: object) -> bool:
    """Equal as JSON: true is not 1."""
    return type(constant) is type(value) and constant == value


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key, ensure_ascii=False)}]"


def _finite(text: str) -> float:
    value = float(text)
    if value in {inf, -inf}:
        raise NoPayload(f"it is no JSON that everybody reads: {text[:40]} is too large a number")
    return value


def _no_constant(name: str) -> None:
    raise NoPayload(f"it is no JSON: {name} is no number there")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _depth(value: object) -> int:
    """How deep lists and objects are nested; without recursion, as the text is anybody's."""
    depth, level = 0, [value]
    while level:
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        depth += 1
        level = inner
    return depth
