"""Whether our own pages made a browser's request: by its headers, and by the session's CSRF token.

A browser sends our cookies with requests of any page. So a request that changes something has to show the CSRF token,
which only our pages know.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER: Final = "X-CSRF-Token"
_OURS: Final = frozenset({"same-origin", "none"})  # none: somebody typed it


def csrf_token(cookie: str) -> str:
    """Of the session with that cookie. Nothing of the cookie can be told from it."""
    digest = hmac.digest(cookie.encode("utf-8", "surrogateescape"), b"csrf of cronring", hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_csrf_token(shown: str, cookie: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), csrf_token(cookie).encode())


def foreign(headers: Mapping[str, str]) -> str:
    """Why it can't have been made by our own pages; "": it can.

    Today's browsers send Sec-Fetch-Site, which no page can change. Older ones send Origin with requests that change
    something. A request with neither is from no browser, or from a very old one. Then only the CSRF token protects.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return "" if site in _OURS else f"a page of another site sent it (Sec-Fetch-Site: {site!r:.40})"
    origin = headers.get("Origin")
    if origin is None or _host(origin) == headers.get("Host", "").lower():
        return ""
    return f"a page of another site sent it (Origin: {origin!r:.200})"


def _host(origin: str) -> str | None:
    """With its port, as Host has it. None: it is hidden, or none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
