"""Files that browsers are given: read and packed once, and sent again only when they have changed."""

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from cronring.controller.api.rest.packing import takes_gzip

# Scripts and styles are files of ours alone, and none is written into a page.
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Vary": "Accept-Encoding",
    # A browser asks whether it has changed: a controller of another release may answer next.
    "Cache-Control": "no-cache",
}
_HOST: Final = re.compile(r"[a-z0-9.-]+")  # a policy has no IPv6 literals
_COMMENT: Final = re.compile(rb"^ *//.*", re.MULTILINE)  # a line of its own
_SCRIPTS: Final = {".mjs": "text/javascript", ".js": "text/javascript"}  # not every machine's table knows .mjs


class StaticFile(NamedTuple):
    """It doesn't change while a controller lives."""

    body: bytes
    packed: bytes
    kind: str
    etag: str


def read(path: Path) -> StaticFile:
    """Comments of scripts are for readers of the source: browsers get an empty line for each, so that lines keep their
    numbers. Raises OSError, KeyError: the kind of its name isn't known.
    """
    body = path.read_bytes()
    return made(_COMMENT.sub(b"", body) if path.suffix in _SCRIPTS else body, path.suffix)


def made(body: bytes, suffix: str) -> StaticFile:
    """As a file with that suffix has it. Raises KeyError."""
    kind = _SCRIPTS.get(suffix) or mimetypes.types_map[suffix]
    return StaticFile(body, gzip.compress(body, mtime=0), kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def add_file(router: web.UrlDispatcher, path: str, file: StaticFile, *, asks_host: bool = False) -> None:
    """At that path, which may have parameters. `asks_host`: its scripts may ask other ports of its own host as well."""
    router.add_get(path, partial(_served, file, asks_host))


async def _served(file: StaticFile, asks_host: bool, request: web.Request) -> web.Response:
    headers = {**HEADERS, hdrs.ETAG: file.etag}
    host = request.host.rpartition(":")[0] or request.host
    if asks_host and _HOST.fullmatch(host):
        policy = headers["Content-Security-Policy"]
        headers["Content-Security-Policy"] = policy.replace(
            "connect-src 'self'", f"connect-src 'self' {request.scheme}://{host}:*"
        )
    if file.etag in request.headers.get(hdrs.IF_NONE_MATCH, ""):
        return web.Response(status=304, headers=headers)
    if not takes_gzip(request):
        return web.Response(body=file.body, content_type=file.kind, charset="utf-8", headers=headers)
    headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=file.packed, content_type=file.kind, charset="utf-8", headers=headers)
