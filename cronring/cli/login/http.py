"""The few questions that a login asks an issuer: small JSON, in bounded time. Redirects could lead codes elsewhere."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from cronring.controller.identity.addresses import is_safe
from cronring.schema.address import is_loopback
from cronring.schema.duration import measured

TIMEOUT_S: Final = 15.0
BYTES_MAX: Final = 256 * 1024
_PIECE: Final = 16 * 1024


class IssuerSilent(Exception):
    """There was no answer that could be read. The message says what there was instead."""


class IssuerAnswer(NamedTuple):
    """A status, and an object of JSON. It is empty where a refusal has none."""

    status: int
    body: dict[str, Any]

    def text(self, name: str) -> str:
        value = self.body.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: float) -> float:
        value = self.body.get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else default


def ask_issuer(url: str, form: Mapping[str, str] | None = None) -> IssuerAnswer:
    """GET, or POST of a form. Raises IssuerSilent."""
    if not is_safe(url):
        raise IssuerSilent(f"{url!r:.200} is not https (http is only for this machine), so nothing is asked there")
    request = urllib.request.Request(  # noqa: S310 - is_safe has looked at the scheme
        url,
        data=urlencode(form).encode() if form is not None else None,
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "cronring"},
    )
    deadline_s = time.monotonic() + TIMEOUT_S
    try:
        status, raw = _exchanged(request, deadline_s)
    except (OSError, ValueError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", error)
        raise IssuerSilent(f"{url}: no answer: {reason}") from None
    try:
        body = json.loads(raw.decode())
    except (ValueError, RecursionError):
        body = None
    if status == 200 and not isinstance(body, dict):
        raise IssuerSilent(f"{url}: no answer: it is no object of JSON")
    return IssuerAnswer(status, body if isinstance(body, dict) else {})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _exchanged(request: urllib.request.Request, deadline_s: float) -> tuple[int, bytes]:
    here = is_loopback(urlsplit(request.full_url).hostname or "")
    proxies = urllib.request.ProxyHandler({}) if here else urllib.request.ProxyHandler()
    opener = urllib.request.build_opener(proxies, _NoRedirect)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, _read(answer, deadline_s)
    except urllib.error.HTTPError as refused:  # an issuer says what is wrong in JSON, with status 400
        with refused:
            return refused.code, _read(refused, deadline_s)


def _read(answer: IO[bytes], deadline_s: float) -> bytes:
    raw = bytearray()
    while piece := answer.read(_PIECE):
        raw += piece
        if len(raw) > BYTES_MAX:
            raise ValueError(f"more than {BYTES_MAX:,} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"nothing whole within {measured(TIMEOUT_S * 1_000)}")
    return bytes(raw)
