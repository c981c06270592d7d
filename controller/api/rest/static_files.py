"""Files that browsers are given: read and packed once, and sent again only when they have changed."""

import functools
import gzip
import hashlib
import mimetypes
import re
from collections.abc import Mapping
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
}
# A browser asks whether it has changed: a controller of another release may answer next.
_ASKED_AGAIN: Final = "no-cache"
# What its path names never changes: RFC 8246.
_FOREVER: Final = "public, max-age=31536000, immutable"
_HOST: Final = re.compile(r"[a-z0-9.-]+")  # a policy has no IPv6 literals
_COMMENT: Final = re.compile(rb"^ *//.*", re.MULTILINE)  # a line of its own
_SCRIPTS: Final = {".mjs": "text/javascript", ".js": "text/javascript"}  # not every machine's table knows .mjs


class StaticFile(NamedTuple):
    """It doesn't change while a controller lives."""

    body: bytes
    packed: bytes
    kind: str
    etag: str


@functools.cache
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

    async def serve(request: web.Request) -> web.Response:
        headers: dict[str, str] = {hdrs.CACHE_CONTROL: _ASKED_AGAIN}
        host = request.host.rpartition(":")[0] or request.host
        if asks_host and _HOST.fullmatch(host):
            policy = HEADERS["Content-Security-Policy"]
            headers["Content-Security-Policy"] = policy.replace(
                "connect-src 'self'", f"connect-src 'self' {request.scheme}://{host}:*"
            )
        return _answer(request, file, headers)

    router.add_get(path, serve)


def add_folder(router: web.UrlDispatcher, path: str, files: Mapping[str, StaticFile]) -> str:
    """All of them beneath `path`, by their names. Return the path that browsers are to be given for them.

    It has a version in it, which is the files' own, so a browser asks for each file once and keeps it. A page of
    another release has another version: it is given what there is, and asks again (docs/decisions/0120).
    """
    version = _version(files)

    async def serve(request: web.Request) -> web.Response:
        file = files.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound
        kept = request.match_info["version"] == version
        return _answer(request, file, {hdrs.CACHE_CONTROL: _FOREVER if kept else _ASKED_AGAIN})

    router.add_get(f"{path}/{{version}}/{{name:.+}}", serve)
    return f"{path}/{version}"


def _version(files: Mapping[str, StaticFile]) -> str:
    told = "".join(f"{name} {file.etag}\n" for name, file in sorted(files.items()))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _answer(request: web.Request, file: StaticFile, headers: Mapping[str, str]) -> web.Response:
    headers = {**HEADERS, **headers, hdrs.ETAG: file.etag}
    if file.etag in request.headers.get(hdrs.IF_NONE_MATCH, ""):
        return web.Response(status=304, headers=headers)
    if not takes_gzip(request):
        return web.Response(body=file.body, content_type=file.kind, charset="utf-8", headers=headers)
    headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=file.packed, content_type=file.kind, charset="utf-8", headers=headers)
