"""The two cookies that browsers get. `__Host-`: sent by TLS alone, to this very host, and set by nobody else for it.

SameSite is Lax, and not Strict: an issuer's page leads back to ours, and whoever follows a link is logged in as well.
What that leaves open is closed by same_site.py.
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
    """A browser takes it away only by the same attributes."""
    _set(response, name, "", 0)


def _set(response: web.StreamResponse, name: str, value: str, max_age_s: int | None) -> None:
    response.set_cookie(name, value, max_age=max_age_s, path="/", secure=True, httponly=True, samesite="Lax")
