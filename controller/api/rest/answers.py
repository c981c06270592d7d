"""From a message to JSON: protobuf's own mapping, with the names of the .proto files, and nothing left out.

int64 is a text there, as in all of protobuf's JSON: a number of JSON is a double to many, and rounds beyond 2^53.
docs/decisions/0077
"""

import json
from concurrent.futures import Executor
from typing import Any, Final

from aiohttp import web
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

JSON: Final = "application/json"
ASIDE: Final = web.AppKey("aside", Executor)  # of all of HTTP: where what is large is read, made and packed
ASIDE_FROM: Final = 16 * 1024  # bytes of a message; making JSON of more would keep the loop, which ticks wait for


def values_of(message: Message) -> dict[str, Any]:
    """As JSON's values. Fields that are empty are there, so that clients find what the page of the API names."""
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def json_of(message: Message) -> bytes:
    """Of equal messages it is the same, whatever order maps come in."""
    return json.dumps(values_of(message), ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
