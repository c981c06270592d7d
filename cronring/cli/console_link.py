"""Links to the console by which a browser is logged in at once: asked of a controller's HTTP, by a token."""

import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.cli.json_http import exchanged
from cronring.controller.identity.addresses import is_safe


class ConsoleLink(NamedTuple):
    """`once`: it logs a browser in, and only one."""

    url: str
    once: bool


def login_link(console_url: str, token: str, ca: Path | None, path: str = "/") -> ConsoleLink:
    """To that path of the console. Without a token, or with one of an issuer, it is the page itself.

    A token leaves this machine by TLS alone. Raises Failure: the console can't be asked.
    """
    plain = ConsoleLink(console_url + path, once=False)
    if not token or not is_safe(console_url):
        return plain
    request = urllib.request.Request(  # noqa: S310 - is_safe has looked at the scheme
        f"{console_url}/login/link", data=b"", headers={"Authorization": f"Bearer {token}"}, method="POST"
    )
    try:
        answer = exchanged(request, ca)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Failure(f"the console at {console_url} can't be asked: {reason}", EXIT_UNREACHABLE) from None
    if answer.status in {403, 404}:  # no token of cronring's own; nobody logs in (--insecure)
        return plain
    link = answer.text("path")
    if answer.status != 200 or not link:
        said = answer.text("detail") or f"HTTP {answer.status}"
        raise Failure(f"the console at {console_url} makes no link: {said}")
    wanted = "" if path == "/" else f"?{urlencode({'next': path})}"
    return ConsoleLink(f"{console_url}{link}{wanted}", once=True)
