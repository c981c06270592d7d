"""Links to the console by which a browser is logged in at once: asked of a controller's HTTP, by a token."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.schema.address import is_loopback

TIMEOUT_S: Final = 10.0
BYTES_MAX: Final = 64 * 1024


class ConsoleLink(NamedTuple):
    """`once`: it logs a browser in, and only one."""

    url: str
    once: bool


def login_link(console_url: str, token: str, ca: Path | None, path: str = "/") -> ConsoleLink:
    """To that path of the console. Without a token, or with one of an issuer, it is the page itself.

    A token leaves this machine by TLS alone. Raises Failure: the console can't be asked.
    """
    plain = ConsoleLink(console_url + path, once=False)
    parts = urlsplit(console_url)
    if not token or (parts.scheme != "https" and not is_loopback(parts.hostname or "")):
        return plain
    request = urllib.request.Request(  # noqa: S310 - a controller has said it, and the scheme is looked at above
        f"{console_url}/login/link", data=b"", headers={"Authorization": f"Bearer {token}"}, method="POST"
    )
    try:
        said = _answer(request, ca)
    except urllib.error.HTTPError as refused:
        with refused:
            if refused.code in {403, 404}:  # no token of cronring's own; nobody logs in (--insecure)
                return plain
            detail = _object(refused.read(BYTES_MAX)).get("detail", refused.reason)
        raise Failure(f"the console at {console_url} makes no link: {detail}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Failure(f"the console at {console_url} can't be asked: {reason}", EXIT_UNREACHABLE) from None
    wanted = "" if path == "/" else f"?{urlencode({'next': path})}"
    return ConsoleLink(f"{console_url}{said['path']}{wanted}", once=True)


def _answer(request: urllib.request.Request, ca: Path | None) -> dict[str, Any]:
    context = ssl.create_default_context()
    if ca is not None:
        context.load_verify_locations(ca)
    here = is_loopback(urlsplit(request.full_url).hostname or "")
    proxies = urllib.request.ProxyHandler({}) if here else urllib.request.ProxyHandler()
    opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        return _object(answer.read(BYTES_MAX))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}
