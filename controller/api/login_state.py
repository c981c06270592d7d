"""The state of a login that is under way. It is locked and kept by the browser, so that any controller can go on.

The state goes to the issuer and back in the URL, where nobody can read it. It is valid for ten minutes, in the browser
that has the matching cookie LOGIN.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from typing import Final, NamedTuple

from cronring.controller.api.cookies import LOGIN_S
from cronring.controller.api.token_box import StrangeTokenError, TokenBox

NEXT_MAX: Final = 500
HOME: Final = "/login"
_KIND: Final = "login at an issuer"
_FORM: Final = "form of a login"
_BROWSER: Final = re.compile(r"[A-Za-z0-9_-]{43}")
# A path of ours alone: not //host, and no backslash, which browsers read as a slash.
_LOCAL: Final = re.compile(rf"/(?:[!-.0-\[\]-~][!-\[\]-~]{{0,{NEXT_MAX - 2}}})?")
_LEEWAY_US: Final = 60_000_000  # by which controllers' clocks may differ
_LASTS_US: Final = LOGIN_S * 1_000_000


class LoginState(NamedTuple):
    """A login that a browser has begun. `verifier`: of PKCE. `begun_us`: by the wall clock of a controller."""

    issuer: str
    browser: str
    next_path: str
    nonce: str
    verifier: str
    begun_us: int

    @property
    def challenge(self) -> str:
        """S256 of the verifier (RFC 7636)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class NoSuchLoginError(Exception):
    """The answer belongs to no login that is under way in this browser. The message tells the person why."""


def begun(issuer: str, browser: str, next_path: str, now_us: int) -> LoginState:
    return LoginState(issuer, browser, next_path, secrets.token_urlsafe(32), secrets.token_urlsafe(32), now_us)


def locked(box: TokenBox, state: LoginState) -> str:
    return box.lock(_KIND, json.dumps(state).encode())


def opened(box: TokenBox, text: str, issuer: str, browser: str, now_us: int) -> LoginState:
    """Of the issuer that answers, in the browser that asks. Raises NoSuchLoginError."""
    try:
        state = LoginState._make(json.loads(box.open(_KIND, text)))
    except StrangeTokenError:
        raise NoSuchLoginError("it has no `state` that was given out here") from None
    if state.issuer != issuer:
        raise NoSuchLoginError("another issuer has answered than was asked")
    if not browser or not hmac.compare_digest(state.browser.encode(), browser.encode("utf-8", "surrogateescape")):
        raise NoSuchLoginError("this login was begun in another browser, or at another address; or it is over")
    if not -_LEEWAY_US <= now_us - state.begun_us < _LASTS_US:
        raise NoSuchLoginError("this login was begun more than ten minutes ago")
    return state


def browser_of(cookie: str | None) -> str:
    """What tells a browser from others: what its cookie says, or something new."""
    return cookie if cookie is not None and _BROWSER.fullmatch(cookie) else secrets.token_urlsafe(32)


def form_token(box: TokenBox, browser: str) -> str:
    """A token that the form of /login sends, so that no other page can send the form for that browser."""
    return box.lock(_FORM, browser.encode())


def is_form_token(box: TokenBox, text: str, cookie: str | None) -> bool:
    try:
        return cookie is not None and hmac.compare_digest(
            box.open(_FORM, text), cookie.encode("utf-8", "surrogateescape")
        )
    except StrangeTokenError:
        return False


def local_path(wanted: str | None) -> str:
    """Where a browser goes after its login: a path of ours, whatever was asked for."""
    return wanted if wanted is not None and _LOCAL.fullmatch(wanted) else HOME
