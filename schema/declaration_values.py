"""Values out of a child's dump, which is the author's process: nothing in it is taken on trust."""

from collections.abc import Callable
from typing import Any, Final

from cronring.schema.payload import canonical_json
from cronring.schema.types import ANY, UNIT, canonical_type
from cronring.schema.validate import LINE_LIMIT

_CONTEXT: Final = "Context"

Report = Callable[[int, str, str, str], None]  # line, verb, message, remedy


class Malformed(Exception):
    """The value is not what a child of this version says."""


def mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{what} is not an object")
    return value


def listed(fields: dict[str, Any], field: str) -> list[Any]:
    value = fields.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{field} is not a list")
    return value


def text(fields: dict[str, Any], field: str) -> str | None:
    value = fields.get(field)
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{field} is not a text")
    return value


def line(fields: dict[str, Any]) -> int:
    value = fields.get("line")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LINE_LIMIT:
        raise Malformed("line is no line number")
    return value


def json_text(fields: dict[str, Any], field: str) -> str:
    """The canonical JSON of a value that may be anything; "" when it is not there."""
    if field not in fields:
        return ""
    try:
        return canonical_json(fields[field])
    except ValueError as error:
        raise Malformed(f"{field} is no JSON: {error}") from None


def shown(value: str) -> str:
    return value if len(value) <= 80 else f"{value[:77]}…"


def type_text(annotation: str | None, absent: str) -> str:
    """The canonical type that an annotation stands for; `absent` for none, Any for what is no type of ours."""
    if annotation is None:
        return absent
    if is_none(annotation):
        return UNIT
    return canonical_type(unquoted(annotation)) or ANY


def is_context(annotation: str) -> bool:
    return unquoted(annotation).rpartition(".")[2] == _CONTEXT


def is_none(annotation: str) -> bool:
    return unquoted(annotation) in {"None", "NoneType"}


def unquoted(annotation: str) -> str:
    """An annotation that was written as text, without its quotes."""
    return annotation.strip().strip("'\"").strip()
