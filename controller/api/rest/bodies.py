"""The body of a request, from bytes to JSON's values. Nothing is let in that grows, and nothing is guessed at."""

import json
from typing import Any, Final

from cronring.protos.admission import RefusedMessage

# How many times its message's bytes a body may have. An escaped text has up to three times its bytes (é, emoji), and
# names of fields stand where a message has numbers.
JSON_FACTOR: Final = 4
DEPTH_MAX: Final = 32  # as deep as a message may be
# Commas and brackets, those in texts among them. Each may be a value of some 70 bytes in memory, of two in the body.
VALUES_MAX: Final = 1_000_000


class _NotJsonError(ValueError):
    """The message says why."""


def read_body(raw: bytes) -> dict[str, Any]:
    """An empty body is an empty object. Raises RefusedMessage."""
    if not raw.strip():
        return {}
    if sum(raw.count(each) for each in (b",", b"[", b"{")) > VALUES_MAX:
        raise RefusedMessage(f"this body has more than {VALUES_MAX} values", too_large=True)
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError:
        raise RefusedMessage(f"this body nests deeper than {DEPTH_MAX} objects and lists") from None
    except UnicodeDecodeError as error:
        raise RefusedMessage(f"this body is no UTF-8: byte {error.start} can't be read") from None
    except _NotJsonError as error:
        raise RefusedMessage(f"this body can't be taken: {error}") from None
    except ValueError as error:
        raise RefusedMessage(f"this body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise RefusedMessage("this body is no JSON object")
    if _is_deep(found):
        raise RefusedMessage(f"this body nests deeper than {DEPTH_MAX} objects and lists")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _NotJsonError(f"{name!r:.100} is given twice in one object")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise _NotJsonError(f"{text} is no number of JSON")


def _integer(text: str) -> int | float:
    """One that no field can have is read as what is refused in the field's name."""
    return int(text) if len(text) <= 400 else float("inf")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
