"""Serves the console: its files, and the one page that is at the address of each of its pages.

docs/decisions/0104: why it is files
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import dirname, normpath
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.static_files import StaticFile, add_file, add_folder, made, read

_STATIC: Final = Path(__file__).parent / "static"
FILES_PATH: Final = "/console"
MAIN: Final = "main.mjs"
# The script of each page, as in main.mjs. Nothing of the API or the login begins so.
PAGES: Final = {
    "/": "overview", "/jobs": "jobs", "/jobs/new": "job_new", "/jobs/{key}": "job", "/executions": "executions",
    "/executions/{id}": "execution", "/upcoming": "upcoming", "/checks": "checks", "/cluster": "cluster",
    "/timeline": "timeline", "/deployments": "deployments", "/limits": "limits", "/queues": "queues", "/sets": "sets",
    "/templates": "templates", "/workspaces": "workspaces", "/webhooks": "webhooks", "/access": "access",
    "/actions": "actions", "/audit": "audit", "/wall": "wall",
}  # fmt: skip
_IMPORT: Final = re.compile(r'from "(\.[^"]+)"')


class ConsoleRoutes:
    """A Routed. Its pages tell nobody anything: what they show they ask of REST, by whoever is logged in."""

    def add_to(self, router: web.UrlDispatcher) -> None:
        folder = add_folder(router, FILES_PATH, _files())
        for path, script in PAGES.items():
            add_file(router, path, _index(folder, script), asks_host=True)  # docs/decisions/0115


@functools.cache
def _files() -> Mapping[str, StaticFile]:
    return {str(file.relative_to(_STATIC)): read(file) for file in sorted(_STATIC.rglob("*.*"))}


def needed(script: str, files: Mapping[str, StaticFile]) -> list[str]:
    """The scripts that a page takes, with all that they import."""
    found: list[str] = []
    wanted = [MAIN, f"pages/{script}.mjs"]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.append(name)
            imports = _IMPORT.findall(files[name].body.decode())
            wanted += [normpath(f"{dirname(name)}/{each}" if dirname(name) else each) for each in imports]
    return sorted(found)


@functools.cache
def _index(folder: str, script: str) -> StaticFile:
    """It names all scripts, so that a browser asks for them at once, and not for each when it has read another."""
    scripts = needed(script, _files())
    links = "\n".join(f'<link rel="modulepreload" href="{FILES_PATH}/{name}">' for name in scripts)
    text = (_STATIC / "index.html").read_text().replace("</head>", f"{links}\n</head>")
    return made(text.replace(f"{FILES_PATH}/", f"{folder}/").encode(), ".html")
