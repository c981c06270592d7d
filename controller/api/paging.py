"""Pages: their size, and locked tokens that say where the next one begins."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from google.protobuf.message import Message

from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import number
from cronring.controller.api.token_box import StrangeTokenError, TokenBox
from cronring.controller.ports.reads import Cursor
from cronring.protos.cronring.v1 import lists_pb2

PAGE_SIZE_DEFAULT: Final = 100
PAGE_SIZE_MAX: Final = 1_000
PAGE_BYTES: Final = 8 * 1024 * 1024  # of what authors wrote; an answer has 32 MiB at most
_KIND: Final = "page"

Row = TypeVar("Row")


def page_size(request: Message) -> int:
    """Of a request with a `page_size`. Raises InvalidRequest."""
    return number(request, "page_size", PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)


async def total(request: Message, count: Callable[[], Awaitable[int]]) -> lists_pb2.Total | None:
    """How many there are on all pages, if the request asks for it."""
    return lists_pb2.Total(count=await count()) if getattr(request, "total") else None  # noqa: B009 - of any list


def fitting(rows: list[Row], size: int, weight: Callable[[Row], int]) -> list[Row]:
    """The rows of one page: `size` at most, up to the row with which they weigh PAGE_BYTES together."""
    weighed = 0
    for index, row in enumerate(rows[:size]):
        weighed += weight(row)
        if weighed > PAGE_BYTES:
            return rows[: index + 1]
    return rows[:size]


class Pages:
    """Tokens of one method with one filter: they are refused with any other, where they would silently skip rows."""

    def __init__(self, box: TokenBox, method: str, *query: object) -> None:
        self._box = box
        self._fingerprint = hashlib.blake2b(repr((method, query)).encode(), digest_size=6).hexdigest()

    def token(self, cursor: str | int | Cursor) -> str:
        """Where the next page begins: after `cursor`. "" for (): there is none."""
        if cursor == ():
            return ""
        return self._box.lock(_KIND, json.dumps([self._fingerprint, cursor]).encode())

    def text_cursor(self, token: str) -> str:
        """ "" for the first page. Raises InvalidRequest."""
        cursor = self._cursor(token) if token else ""
        assert isinstance(cursor, str), "the fingerprint is that of a method with texts"
        return cursor

    def number_cursor(self, token: str) -> int:
        """0 for the first page. Raises InvalidRequest."""
        cursor = self._cursor(token) if token else 0
        assert isinstance(cursor, int), "the fingerprint is that of a method with numbers"
        return cursor

    def place_cursor(self, token: str) -> Cursor:
        """() for the first page. Raises InvalidRequest."""
        cursor = self._cursor(token) if token else []
        assert isinstance(cursor, list), "the fingerprint is that of a method with places"
        return tuple(map(int, cursor))

    def _cursor(self, token: str) -> object:
        try:
            fingerprint, cursor = json.loads(self._box.open(_KIND, token))
        except StrangeTokenError:
            raise InvalidRequest([("page_token", "is none that this API gave out; begin anew without it")]) from None
        if fingerprint != self._fingerprint:
            raise InvalidRequest([("page_token", "belongs to a request with another filter; begin anew without it")])
        found: object = cursor
        return found
