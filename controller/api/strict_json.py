"""JSON from outside, read strictly: a text that two readers may understand differently is refused."""

import json
from typing import Any, Final

DEPTH_MAX: Final = 32  # as deep as a message may be


class NotStrictJsonError(ValueError):
    """The message says why, as what a body does: `is no JSON: ...`."""


def read_object(raw: bytes, depth_max: int = DEPTH_MAX) -> dict[str, Any]:
    """An object in UTF-8, no name twice, no NaN, no deeper nesting. Raises NotStrictJsonError."""
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError:
        raise _too_deep(depth_max) from None
    except UnicodeDecodeError as error:
        raise NotStrictJsonError(f"is no UTF-8: byte {error.start} can't be read") from None
    except NotStrictJsonError:
        raise
    except ValueError as error:
        raise NotStrictJsonError(f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotStrictJsonError("is no JSON object")
    if _is_deep(found, depth_max):
        raise _too_deep(depth_max)
    return found


def _too_deep(depth_max: int) -> NotStrictJsonError:
    return NotStrictJsonError(f"nests deeper than {depth_max} objects and lists")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise NotStrictJsonError(f"can't be taken: {name!r:.100} is given twice in one object")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise NotStrictJsonError(f"can't be taken: {text} is no number of JSON")


def _integer(text: str) -> int | float:
    """An integer. One with too many digits for any field becomes infinity, which the field then refuses."""
    return int(text) if len(text) <= 400 else float("inf")


def _is_deep(value: Any, depth_max: int) -> bool:
    level = [value]
    for _ in range(depth_max):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
