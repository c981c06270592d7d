"""Serves the console: its files, and the one page that is at the address of each of its pages.

docs/decisions/0104: why it is files
"""

from pathlib import Path
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.static_files import add_file, read

_STATIC: Final = Path(__file__).parent / "static"
FILES_PATH: Final = "/console"
# Nothing of the API or the login begins so.
PAGES: Final = (
    "/", "/jobs", "/jobs/{key}", "/executions", "/executions/{id}", "/upcoming", "/cluster", "/deployments",
    "/limits", "/queues", "/sets", "/templates", "/workspaces", "/webhooks", "/access", "/actions", "/audit", "/wall",
)  # fmt: skip


class ConsoleRoutes:
    """A Routed. Its pages tell nobody anything: what they show they ask of REST, by whoever is logged in."""

    def add_to(self, router: web.UrlDispatcher) -> None:
        index = read(_STATIC / "index.html")
        for path in PAGES:
            add_file(router, path, index)
        for file in sorted(_STATIC.rglob("*.*")):
            add_file(router, f"{FILES_PATH}/{file.relative_to(_STATIC)}", read(file))
