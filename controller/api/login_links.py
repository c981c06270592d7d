"""Links that log a browser in once: for who has a token on a terminal, and would have to carry it to the browser.

A link names its token and when it was made, locked as TokenBox locks. The session that it makes follows from it, and
sessions are unique: so it works once, at whichever controller, and nobody keeps a list (docs/decisions/0114).
"""

import hashlib
from typing import Final, NamedTuple

from cronring.controller.api.login_state import NoSuchLoginError
from cronring.controller.api.token_box import StrangeTokenError, TokenBox

LINK_PATH: Final = "/login/link"
LASTS_MS: Final = 600_000
_LEEWAY_MS: Final = 60_000  # by which controllers' clocks may differ
_KIND: Final = "link to log in"
_SESSION: Final = "session of a link"
_TIME_BYTES: Final = 6  # milliseconds since 1970, for some thousand years
_ID_BYTES: Final = 5
_HEAD_BYTES: Final = _TIME_BYTES + _ID_BYTES


class LoginLink(NamedTuple):
    """Of the token of that name and id. `made_ms`: by the wall clock of the controller that made it."""

    token: str
    token_id: int
    made_ms: int


def code_of(box: TokenBox, link: LoginLink) -> str:
    """Short, as terminals break what is longer than a line."""
    head = link.made_ms.to_bytes(_TIME_BYTES) + link.token_id.to_bytes(_ID_BYTES)
    return box.lock(_KIND, head + link.token.encode())


def link_of(box: TokenBox, code: str, now_ms: int) -> LoginLink:
    """Raises NoSuchLoginError."""
    try:
        body = box.open(_KIND, code)
    except StrangeTokenError:
        raise NoSuchLoginError("this link was not made here; copy it as a whole") from None
    token_id = int.from_bytes(body[_TIME_BYTES:_HEAD_BYTES])
    link = LoginLink(body[_HEAD_BYTES:].decode(), token_id, int.from_bytes(body[:_TIME_BYTES]))
    if not -_LEEWAY_MS <= now_ms - link.made_ms < LASTS_MS:
        raise NoSuchLoginError("this link was made more than ten minutes ago; `cronring console` makes another")
    return link


def session_of(box: TokenBox, code: str) -> bytes:
    """What the session is known by: 32 bytes, which nobody can tell from the link."""
    return hashlib.sha256(box.lock(_SESSION, code.encode()).encode()).digest()
