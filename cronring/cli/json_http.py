"""Small questions over HTTP, answered by an object of JSON in bounded time. No redirect is followed.

A redirect could lead codes and tokens elsewhere.
"""

import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import urlsplit

from cronring.schema.address import is_loopback
from cronring.schema.duration import measured

TIMEOUT_S: Final = 15.0
BYTES_MAX: Final = 256 * 1024
_PIECE: Final = 16 * 1024


class JsonAnswer(NamedTuple):
    """A status, and an object of JSON. None: what came is no such object."""

    status: int
    said: dict[str, Any] | None

    def text(self, name: str) -> str:
        value = (self.said or {}).get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: float) -> float:
        value = (self.said or {}).get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else default


def exchanged(request: urllib.request.Request, ca: Path | None = None) -> JsonAnswer:
    """Of any status. `ca`: whose certificates hold beside the machine's own.

    Raises OSError or ValueError: there is no answer, or it is too large or too slow.
    """
    deadline_s = time.monotonic() + TIMEOUT_S
    here = is_loopback(urlsplit(request.full_url).hostname or "")
    proxies = urllib.request.ProxyHandler({}) if here else urllib.request.ProxyHandler()
    opener = urllib.request.build_opener(proxies, _NoRedirect, *_trusting(ca))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return JsonAnswer(answer.status, _object(_read(answer, deadline_s)))
    except urllib.error.HTTPError as refused:  # what is wrong is said in JSON, too
        with refused:
            return JsonAnswer(refused.code, _object(_read(refused, deadline_s)))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _trusting(ca: Path | None) -> list[urllib.request.HTTPSHandler]:
    if ca is None:
        return []
    context = ssl.create_default_context()
    context.load_verify_locations(ca)
    return [urllib.request.HTTPSHandler(context=context)]


def _read(answer: IO[bytes], deadline_s: float) -> bytes:
    raw = bytearray()
    while piece := answer.read(_PIECE):
        raw += piece
        if len(raw) > BYTES_MAX:
            raise ValueError(f"more than {BYTES_MAX:,} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"nothing whole within {measured(TIMEOUT_S * 1_000)}")
    return bytes(raw)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
