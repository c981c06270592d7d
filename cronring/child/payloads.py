"""Turns a run's payload, which is JSON text, into a value of the type of the verb's parameter."""

from __future__ import annotations

import enum
import json
from typing import Any, Callable

from cronring.child import shapes
from cronring.child.buildable import builder_of
from cronring.child.shapes import record_fields, resolve, shape_of

# (value, its JSON path, alternatives that are known not to fit) -> what the verb gets
Make = Callable[[Any, str, "set[tuple[int, int]]"], Any]


class PayloadError(ValueError):
    """The payload is not what the verb's parameter asks for. The message starts with the JSON path."""


class Payloads:
    """Makes values for one parameter. It reads the parameter's type once, and a record's when its first value comes."""

    def __init__(self, annotation: Any, namespace: dict[str, Any]) -> None:
        self._records: dict[Any, Make] = {}
        self._make = self._maker(resolve(annotation, namespace))

    def read(self, payload_json: str) -> Any:
        """Raises PayloadError."""
        return self._make(json.loads(payload_json), "$", set())

    def _maker(self, annotation: Any) -> Make:
        shape = shape_of(annotation)
        makers: dict[str, Callable[[shapes.Shape], Make]] = {
            shapes.SCALAR: _scalar,
            shapes.UNION: self._union,
            shapes.LITERAL: _literal,
            shapes.ARRAY: self._array,
            shapes.TUPLE: self._tuple,
            shapes.OBJECT: self._object,
            shapes.RECORD: self._record,
            shapes.CLASS: _of_class,
        }
        if shape.kind == shapes.NULL:
            return _null
        maker = makers.get(shape.kind)
        return _as_it_is if maker is None else maker(shape)

    def _union(self, shape: shapes.Shape) -> Make:
        nullable = any(shape_of(inner).kind == shapes.NULL for inner in shape.inner)
        options = [self._maker(inner) for inner in shape.inner if shape_of(inner).kind != shapes.NULL]

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            if value is None and nullable:
                return None
            # Without `unfit`, nested alternatives would be tried again on each way that leads to them.
            reason: PayloadError | None = None
            for option in options:
                if (id(option), id(value)) in unfit:
                    continue
                try:
                    return option(value, path, unfit)
                except PayloadError as error:
                    unfit.add((id(option), id(value)))
                    reason = error if reason is None or len(str(error)) > len(str(reason)) else reason
            raise reason or PayloadError(f"{path}: fits none of the types that it may have")

        return make

    def _array(self, shape: shapes.Shape) -> Make:
        item, made = self._maker(shape.inner[0]), shape.made

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            _require(isinstance(value, list), value, path, "a list")
            return made([item(each, f"{path}[{index}]", unfit) for index, each in enumerate(value)])

        return make

    def _tuple(self, shape: shapes.Shape) -> Make:
        inner = shape.inner
        if inner[-1] is ...:
            return self._array(shape._replace(made=tuple, inner=inner[:1]))
        items = [self._maker(each) for each in inner]

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            _require(isinstance(value, list) and len(value) == len(items), value, path, f"a list of {len(items)}")
            return tuple(item(value[index], f"{path}[{index}]", unfit) for index, item in enumerate(items))

        return make

    def _object(self, shape: shapes.Shape) -> Make:
        of_int, item = shape.inner[0] is int, self._maker(shape.inner[1])

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            _require(isinstance(value, dict), value, path, "an object")
            made = {key: item(each, f"{path}.{key}", unfit) for key, each in value.items()}
            return {_int_key(key, path): each for key, each in made.items()} if of_int else made

        return make

    def _record(self, shape: shapes.Shape) -> Make:
        """Made only when it is needed, as records may hold records of their own kind."""
        key = shape.made, repr(shape.inner)  # what it is used with need not be hashable

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            known = self._records.get(key)
            if known is None:
                known = self._records[key] = self._record_maker(shape.made, shape.inner)
            return known(value, path, unfit)

        return make

    def _record_maker(self, record: Any, arguments: tuple[Any, ...]) -> Make:
        told = record_fields(record, arguments)
        fields = {field.name: self._maker(field.annotation) for field in told}
        required = [field.name for field in told if not field.optional]

        def make(value: Any, path: str, unfit: set[tuple[int, int]]) -> Any:
            _require(isinstance(value, dict), value, path, record.__name__)
            for name in required:
                if name not in value:
                    raise PayloadError(f"{path}.{name}: is missing")
            made = {}
            for name, each in value.items():
                if name not in fields:
                    raise PayloadError(f"{path}.{name}: {record.__name__} has no such field")
                made[name] = fields[name](each, f"{path}.{name}", unfit)
            return _called(lambda: record(**made), path)

        return make


def _as_it_is(value: Any, _path: str, _unfit: object) -> Any:
    return value


def _null(value: Any, path: str, _unfit: object) -> Any:
    return _require(value is None, value, path, "null")


def _scalar(shape: shapes.Shape) -> Make:
    made = shape.made
    accepted = (int, float) if made is float else (made,)

    def make(value: Any, path: str, _unfit: object) -> Any:
        right = isinstance(value, accepted) and (made is bool or not isinstance(value, bool))
        return _require(right, value, path, made.__name__)

    return make


def _literal(shape: shapes.Shape) -> Make:
    def make(value: Any, path: str, _unfit: object) -> Any:
        for constant in shape.inner:
            plain = constant.value if isinstance(constant, enum.Enum) else constant
            if type(plain) is type(value) and plain == value:
                return constant
        return _require(False, value, path, f"one of {', '.join(map(repr, shape.inner))}")

    return make


def _of_class(shape: shapes.Shape) -> Make:
    """A class that can't be made of JSON is refused when its module is described. Here it gets the bare value."""
    build = builder_of(shape.made)
    return _as_it_is if build is None else lambda value, path, _: _called(lambda: build(value), path)


def _called(build: Callable[[], Any], path: str) -> Any:
    """Call an author's class. An error that it raises becomes a PayloadError with that path."""
    try:
        return build()
    except PayloadError:
        raise
    except Exception as error:
        raise PayloadError(f"{path}: {type(error).__name__}: {error}") from error


def _require(right: bool, value: Any, path: str, what: str) -> Any:
    if not right:
        raise PayloadError(f"{path}: is {json.dumps(value)[:60]}, not {what}")
    return value


def _int_key(key: str, path: str) -> int:
    try:
        return int(key)
    except ValueError:
        raise PayloadError(f"{path}: the key {key!r:.60} is no int") from None
