"""Serves the console: its files, and the one page that is at the address of each of its pages.

docs/decisions/0104: why it is files
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.static_files import StaticFile, add_file, add_folder, made, read

_STATIC: Final = Path(__file__).parent / "static"
FILES_PATH: Final = "/console"
# Nothing of the API or the login begins so.
PAGES: Final = (
    "/", "/jobs", "/jobs/{key}", "/executions", "/executions/{id}", "/upcoming", "/checks", "/cluster", "/timeline",
    "/deployments", "/limits", "/queues", "/sets", "/templates", "/workspaces", "/webhooks", "/access", "/actions",
    "/audit", "/wall",
)  # fmt: skip


class ConsoleRoutes:
    """A Routed. Its pages tell nobody anything: what they show they ask of REST, by whoever is logged in."""

    def add_to(self, router: web.UrlDispatcher) -> None:
        files = {str(file.relative_to(_STATIC)): read(file) for file in sorted(_STATIC.rglob("*.*"))}
        index = _index(add_folder(router, FILES_PATH, files), [name for name in files if name.endswith(".mjs")])
        for path in PAGES:
            add_file(router, path, index, asks_host=True)  # docs/decisions/0115


def _index(folder: str, modules: Sequence[str]) -> StaticFile:
    """It names all modules, so that a browser asks for them at once, and not for each when it has read another."""
    links = "\n".join(f'<link rel="modulepreload" href="{FILES_PATH}/{name}">' for name in modules)
    text = (_STATIC / "index.html").read_text().replace("</head>", f"{links}\n</head>")
    return made(text.replace(f"{FILES_PATH}/", f"{folder}/").encode(), ".html")
