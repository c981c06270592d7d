"""From JSON, a path and a query to a message: what is wrong is named by its field, all of it at once.

It is protobuf's JSON with one spelling for each thing. Names are those of the .proto files, and so are the paths of a
mask. Instants are RFC 3339, bytes base64. int64 may be a number or a text. null is as good as absent.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.rest.bindings import is_map
from cronring.protos.caps import Fault

FAULTS_MAX: Final = 20
NAMED_MAX: Final = 200
MASK: Final = FieldMask.DESCRIPTOR.full_name
STAMP: Final = Timestamp.DESCRIPTOR.full_name
_RFC3339: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_BOUNDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class WrongValueError(Exception):
    """The message says what the value must be."""


class JsonReading:
    """Into messages. `faults`: what was wrong until now. `texts`: values come from a URL, where all are texts."""

    def __init__(self, *, texts: bool) -> None:
        self.faults: list[Fault] = []
        self._texts = texts

    def fill(self, message: Message, values: Mapping[str, object], path: str = "") -> None:
        for name, value in values.items():
            if len(self.faults) >= FAULTS_MAX:
                return
            at, field = shown(f"{path}{name}"), field_of(message.DESCRIPTOR, name)
            if field is None:
                self.faults.append((at, f"is no field here; there are {_names(message.DESCRIPTOR)}"))
            elif value is not None:
                try:
                    self._set(message, field, value, at)
                except WrongValueError as error:
                    self.faults.append((at, str(error)))

    def _set(self, message: Any, field: Any, value: Any, at: str) -> None:
        """Raises WrongValueError."""
        if is_map(field):
            self._map(message, field, _of(dict, value, "an object"), at)
        elif field.is_repeated:
            self._list(getattr(message, field.name), field, _of(list, value, "a list"), at)
        elif field.message_type is not None:
            made = getattr(message, field.name)
            made.SetInParent()
            self._message(made, value, at)
        else:
            setattr(message, field.name, self._scalar(field, value))

    def _list(self, into: Any, field: FieldDescriptor, values: list[Any], at: str) -> None:
        for number, value in enumerate(values):
            if len(self.faults) >= FAULTS_MAX:
                return
            try:
                if field.message_type is not None:
                    self._message(into.add(), value, f"{at}[{number}]")
                else:
                    into.append(self._scalar(field, value))
            except WrongValueError as error:
                self.faults.append((f"{at}[{number}]", str(error)))

    def _map(self, message: Any, field: FieldDescriptor, values: dict[str, Any], at: str) -> None:
        entry = field.message_type
        assert entry is not None, "maps have entries"
        into, value_field = getattr(message, field.name), entry.fields_by_name["value"]
        for key, value in values.items():
            try:
                into[_text(key)] = self._scalar(value_field, value)
            except WrongValueError as error:
                self.faults.append((shown(f"{at}.{key}"), str(error)))

    def _message(self, into: Any, value: Any, at: str) -> None:
        """Raises WrongValueError."""
        kind = into.DESCRIPTOR.full_name
        if kind == STAMP:
            _stamp(into, value)
        elif kind == MASK:
            into.paths.extend(path for path in _text(value).split(",") if path)
        else:
            self.fill(into, _of(dict, value, "an object"), f"{at}.")

    def _scalar(self, field: FieldDescriptor, value: Any) -> Any:
        """Raises WrongValueError."""
        read: Callable[[FieldDescriptor, Any], Any] = _SCALARS[field.cpp_type]
        if self._texts and isinstance(value, str):
            value = _from_text(field, value)
        return _bytes(value) if field.type == FieldDescriptor.TYPE_BYTES else read(field, value)


def nested(descriptor: Any, query: Iterable[tuple[str, str]], faults: list[Fault]) -> dict[str, Any]:
    """`filter.status=paused&filter.labels.team=core` as the object that a body would have."""
    found: dict[str, Any] = {}
    for key, value in query:
        parts, at, kind = key.split("."), found, descriptor
        while True:
            field = field_of(kind, parts[0])
            if field is None or field.message_type is None or field.message_type.full_name in {STAMP, MASK}:
                break
            at = at.setdefault(parts.pop(0), {})
            if is_map(field):
                parts, field = [".".join(parts)], None
                break
            kind = field.message_type
            if not parts and kind.fields_by_name.get("text") is not None:
                parts, field = ["text"], kind.fields_by_name["text"]  # a filter in words
                break
            if not parts:
                faults.append((shown(key), f"has fields, each given by its own name: {_names(kind)}"))
                return found
        name = ".".join(parts)
        if field is not None and field.is_repeated:
            at.setdefault(name, []).append(value)
        elif name in at:
            faults.append((shown(key), "is given twice"))
        else:
            at[name] = value
    return found


def field_of(descriptor: Any, name: str) -> Any:
    """None: there is none. protobuf itself breaks at half a surrogate pair."""
    return descriptor.fields_by_name.get(name) if name.isascii() else None


def shown(path: str) -> str:
    """A path of the caller's as a text that can be sent back."""
    return path[:NAMED_MAX].encode("utf-8", "backslashreplace").decode()


def _of(kind: type[Any], value: Any, words: str) -> Any:
    if not isinstance(value, kind):
        raise WrongValueError(f"must be {words}")
    return value


def _text(value: Any) -> str:
    text: str = _of(str, value, "a text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise WrongValueError("has half of a surrogate pair, which is no character") from None
    return text


def _bytes(value: Any) -> bytes:
    text = _text(value)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set("-_") & set(text) else None,
                                validate=True)  # fmt: skip
    except (ValueError, binascii.Error):
        raise WrongValueError("must be base64") from None


def _integer(field: FieldDescriptor, value: Any) -> int:
    lowest, highest = _BOUNDS[field.cpp_type]
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError("must be a whole number")
    if not lowest <= value <= highest:
        raise WrongValueError(f"must be from {lowest} to {highest}")
    return value


def _number(_: FieldDescriptor, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongValueError("must be a number, and a finite one")
    return number


def _enum(field: FieldDescriptor, value: Any) -> int:
    enum = field.enum_type
    assert enum is not None, "an enum's field has one"
    found = enum.values_by_name.get(value) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(f"must be one of {', '.join(enum.values_by_name)}")
    return int(found.number)


_SCALARS: Final[Mapping[int, Callable[[FieldDescriptor, Any], Any]]] = {
    **dict.fromkeys(_BOUNDS, _integer),
    FieldDescriptor.CPPTYPE_DOUBLE: _number,
    FieldDescriptor.CPPTYPE_FLOAT: _number,
    FieldDescriptor.CPPTYPE_BOOL: lambda _, value: _of(bool, value, "true or false"),
    FieldDescriptor.CPPTYPE_ENUM: _enum,
    FieldDescriptor.CPPTYPE_STRING: lambda _, value: _text(value),
}


def _from_text(field: FieldDescriptor, value: str) -> Any:
    """What stands in a URL as the value that it would be in JSON; as it is where it is none, to be refused."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"true": True, "false": False}.get(value, value)
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _stamp(into: Timestamp, value: Any) -> None:
    words = "must be an instant of RFC 3339, as 2026-03-01T08:00:00Z"
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise WrongValueError(words)
    try:
        into.FromJsonString(value)
    except (ValueError, OverflowError):
        raise WrongValueError(words) from None


def _names(descriptor: Any) -> str:
    return ", ".join(field.name for field in descriptor.fields) or "none"
