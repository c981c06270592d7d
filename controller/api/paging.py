"""Pages: their size, and opaque tokens that say where the next one begins."""

import base64
import binascii
import hashlib
import json
from typing import Final

from controller.api.problems import InvalidRequest

PAGE_SIZE_DEFAULT: Final = 100
PAGE_SIZE_MAX: Final = 1_000
TOKEN_LENGTH_MAX: Final = 2_000


def page_size(asked: int) -> int:
    """0 means the default. Raises InvalidRequest."""
    if not 0 <= asked <= PAGE_SIZE_MAX:
        raise InvalidRequest([("page_size", f"is {asked}; it must be from 1 to {PAGE_SIZE_MAX}, or 0 for the default")])
    return asked or PAGE_SIZE_DEFAULT


class Pages:
    """Tokens of one method with one filter: they are refused with any other, where they would silently skip rows."""

    def __init__(self, method: str, *query: object) -> None:
        self._fingerprint = hashlib.blake2b(repr((method, query)).encode(), digest_size=6).hexdigest()

    def token(self, cursor: str | int) -> str:
        """Where the next page begins: after `cursor`."""
        return base64.urlsafe_b64encode(json.dumps([self._fingerprint, cursor]).encode()).decode().rstrip("=")

    def text_cursor(self, token: str) -> str:
        """ "" for the first page. Raises InvalidRequest."""
        if not token:
            return ""
        cursor = self._decode(token)
        if not isinstance(cursor, str):
            raise _not_given_out()
        return cursor

    def number_cursor(self, token: str) -> int:
        """0 for the first page. Raises InvalidRequest."""
        if not token:
            return 0
        cursor = self._decode(token)
        if not isinstance(cursor, int) or isinstance(cursor, bool) or not 0 < cursor < 2**63:
            raise _not_given_out()
        return cursor

    def _decode(self, token: str) -> object:
        if len(token) > TOKEN_LENGTH_MAX:
            raise _not_given_out()
        try:
            decoded = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
        except (ValueError, binascii.Error, RecursionError):
            raise _not_given_out() from None
        match decoded:
            case [self._fingerprint, cursor]:
                found: object = cursor
                return found
            case [str(), _]:
                raise InvalidRequest(
                    [("page_token", "belongs to a request with another filter; begin anew without it")]
                )
            case _:
                raise _not_given_out()


def _not_given_out() -> InvalidRequest:
    return InvalidRequest([("page_token", "is none that this API gave out; begin anew without it")])
