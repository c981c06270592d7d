"""What the console is made of: files of others as they were published, few enough bytes, and a page for each link."""

import hashlib
import re
from pathlib import Path
from typing import Final

from aiohttp import web

from cronring.controller.api.rest.static_files import read
from cronring.controller.console import routes
from cronring.controller.console.routes import PAGES, ConsoleRoutes, needed

STATIC: Final = Path(routes.__file__).parent / "static"
# preact 11.2.0 and htm 3.1.1 of npm, without the name of their source maps. `hooks` imports its sibling by a path.
VENDORED: Final = {
    "hooks.mjs": "a8ee1fa1736b1f61500ccc8889a03961d9c47e00d9a0c9ebd9d8294835cbb93d",
    "htm.mjs": "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
    "preact.mjs": "86c693f569d3ec7b694002cc62d0aac3c00231cc0ab76e48f607b3c3df3f6217",
}
SCRIPT_BYTES_MAX: Final = 85_000  # of a page, compressed, as a browser loads them
STYLE_BYTES_MAX: Final = 25_000


def test_files_of_others_are_those_that_were_published() -> None:
    files = {path.name: path.read_bytes() for path in (STATIC / "vendor").glob("*.mjs")}
    assert {name: hashlib.sha256(body).hexdigest() for name, body in files.items()} == VENDORED
    for name in VENDORED:
        assert (STATIC / "vendor" / f"{'htm' if name == 'htm.mjs' else 'preact'}.LICENSE.txt").is_file()


def test_scripts_and_styles_are_small() -> None:
    files = {str(path.relative_to(STATIC)): read(path) for path in STATIC.rglob("*.*")}
    for script in PAGES.values():
        assert sum(len(files[name].packed) for name in needed(script, files)) < SCRIPT_BYTES_MAX, script
    assert sum(len(file.packed) for name, file in files.items() if name.endswith(".css")) < STYLE_BYTES_MAX


def test_each_page_has_its_script_and_no_script_is_nobodys() -> None:
    files = {str(path.relative_to(STATIC)): read(path) for path in STATIC.rglob("*.*")}
    text = (STATIC / "main.mjs").read_text()
    named = re.findall(r'\["(\w+)", "(\w+)"\]', text)
    assert {script for script, _ in named} == set(PAGES.values())
    for script, drawn in named:
        assert re.search(rf"export (function|const) {drawn}\b", (STATIC / f"pages/{script}.mjs").read_text()), script
    used = {name for script in PAGES.values() for name in needed(script, files)}
    assert used == {name for name in files if name.endswith(".mjs")}


def test_scripts_are_sent_without_their_comments_and_mean_the_same() -> None:
    for path in STATIC.rglob("*.mjs"):
        lines = path.read_text().splitlines()
        sent = read(path).body.decode().splitlines()
        assert len(sent) == len(lines)
        assert all(
            shown == line or (not shown and line.lstrip().startswith("//"))
            for shown, line in zip(sent, lines, strict=True)
        )
        # Inside a template such a line would be text.
        comments = [at for at, line in enumerate(lines) if line.lstrip().startswith("//")]
        assert all("\n".join(lines[:at]).replace("\\`", "").count("`") % 2 == 0 for at in comments), path


def test_nothing_is_loaded_from_elsewhere_or_written_into_a_page() -> None:
    """The policy of content would forbid it, in the browser of whoever sees it first."""
    for path in STATIC.rglob("*.*"):
        if path.suffix in {".mjs", ".css", ".html"} and path.parent.name != "vendor":
            text = path.read_text()
            assert not re.search(r"https?://(?!www\.w3\.org)", text), path
            assert not re.search(r"innerHTML|dangerouslySet|eval\(|new Function", text), path
    index = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|style=| on\w+=", index)


def test_each_import_and_each_page_is_there() -> None:
    for path in STATIC.rglob("*.mjs"):
        for name in re.findall(r"""from ?["'](\.[^"']+)["']""", path.read_text()):
            assert (path.parent / name).is_file(), f"{path.name} imports {name}"
    router = web.UrlDispatcher()
    ConsoleRoutes().add_to(router)
    served = {resource.canonical for resource in router.resources()}
    linked = set(re.findall(r'\["(/[a-z]*)", "', (STATIC / "main.mjs").read_text()))
    assert linked <= served
    assert len(linked) > 10
