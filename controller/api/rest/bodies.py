"""The body of a request, from bytes to JSON's values. Nothing is let in that grows, and nothing is guessed at."""

from typing import Any, Final

from cronring.controller.api.strict_json import NotStrictJsonError, read_object
from cronring.protos.admission import RefusedMessage

# How many times its message's bytes a body may have. An escaped text has up to three times its bytes (é, emoji), and
# names of fields stand where a message has numbers.
JSON_FACTOR: Final = 4
# Commas and brackets, those in texts among them. Each may be a value of some 70 bytes in memory, of two in the body.
VALUES_MAX: Final = 1_000_000


def read_body(raw: bytes) -> dict[str, Any]:
    """An empty body is an empty object. Raises RefusedMessage."""
    if not raw.strip():
        return {}
    if sum(raw.count(each) for each in (b",", b"[", b"{")) > VALUES_MAX:
        raise RefusedMessage(f"this body has more than {VALUES_MAX} values", too_large=True)
    try:
        return read_object(raw)
    except NotStrictJsonError as error:
        raise RefusedMessage(f"this body {error}") from None
