"""Links that log a browser in once, so that a person with a token on a terminal needn't carry it to the browser.

A link holds its token's name and when it was made, locked by TokenBox. The session's secret is computed from the link,
and sessions are unique. So a link works once in the whole cluster, and nobody keeps a list (docs/decisions/0114).
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
    """The session's secret: 32 bytes. Nobody can compute them from the link without the cluster's key."""
    return hashlib.sha256(box.lock(_SESSION, code.encode()).encode()).digest()
