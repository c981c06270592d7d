"""The two cookies that browsers get. `__Host-`: sent by TLS alone, to this very host, and set by nobody else for it.

SameSite is Lax, and not Strict: an issuer's page leads back to ours, and people who follow a link to us must be logged
in as well. same_site.py closes what Lax leaves open.
"""

from typing import Final

from aiohttp import web

SESSION: Final = "__Host-cronring"
LOGIN: Final = "__Host-cronring-login"  # ties a login that is under way to the browser that began it
LOGIN_S: Final = 600


def set_session(response: web.StreamResponse, value: str) -> None:
    """Until the browser ends, or the session does."""
    _set(response, SESSION, value, None)


def set_login(response: web.StreamResponse, value: str) -> None:
    _set(response, LOGIN, value, LOGIN_S)


def clear(response: web.StreamResponse, name: str) -> None:
    """Delete a cookie. A browser does so only if the attributes are the same."""
    _set(response, name, "", 0)


def _set(response: web.StreamResponse, name: str, value: str, max_age_s: int | None) -> None:
    response.set_cookie(name, value, max_age=max_age_s, path="/", secure=True, httponly=True, samesite="Lax")
