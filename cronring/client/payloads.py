"""Payloads: values that JSON has, or JSON that is text already."""

import json
from typing import Any

from cronring.client.errors import Invalid


class JsonText(str):
    """JSON that is text already: it is sent as it is. Payloads that clients return are such, and may be given back.

    Any other text is a value, as numbers, lists and dicts are: "a" is sent as the JSON text "a", with its quotes.
    """

    __slots__ = ()


def json_text(payload: Any) -> str:
    """As it is sent. "" for None: no payload. Raises Invalid for a value that JSON hasn't."""
    if payload is None:
        return ""
    if isinstance(payload, JsonText):
        return str(payload)
    try:
        return json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid("this payload can't be sent", [("payload", f"is no value that JSON has ({error})")]) from None
