"""/api/openapi.json, and the page to try it: they tell of the API what its source tells, so whoever asks has them."""

from pathlib import Path
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.static_files import add_file, read

_HERE: Final = Path(__file__).parent
_FILES: Final = {
    "/api/openapi.json": "openapi.json",
    "/api/": "page/index.html",
    "/api/page.js": "page/page.js",
    "/api/page.css": "page/page.css",
    "/api/icon.svg": "page/icon.svg",
}


def add_pages(router: web.UrlDispatcher) -> None:
    """Read once, as they don't change."""
    for path, name in _FILES.items():
        add_file(router, path, read(_HERE / name))
