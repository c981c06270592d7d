"""/api/openapi.json, and the page to try it: they tell of the API what its source tells, so whoever asks has them."""

import gzip
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.packing import takes_gzip

_HERE: Final = Path(__file__).parent
_HEADERS: Final = {
    "Cache-Control": "public, max-age=300",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding",
    "X-Frame-Options": "DENY",
}
_FILES: Final = {
    "/api/openapi.json": ("openapi.json", "application/json"),
    "/api/": ("page/index.html", "text/html"),
    "/api/page.js": ("page/page.js", "text/javascript"),
    "/api/page.css": ("page/page.css", "text/css"),
}


def add_pages(router: web.UrlDispatcher) -> None:
    """Read once, as they don't change."""
    for path, (name, kind) in _FILES.items():
        body = (_HERE / name).read_bytes()
        router.add_get(path, partial(_page, body, gzip.compress(body, mtime=0), kind))


async def _page(body: bytes, packed: bytes, kind: str, request: web.Request) -> web.Response:
    if not takes_gzip(request):
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=_HEADERS)
    headers = {**_HEADERS, "Content-Encoding": "gzip"}
    return web.Response(body=packed, content_type=kind, charset="utf-8", headers=headers)
