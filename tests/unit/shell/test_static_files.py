"""What a browser is told of a file: to keep it for ever where its path names what it is, or to ask again."""

import gzip
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from cronring.controller.api.rest.static_files import add_file, add_folder, made

OLD = {"main.mjs": made(b"old", ".mjs"), "pages/wall.mjs": made(b"wall", ".mjs")}
NEW = OLD | {"main.mjs": made(b"new", ".mjs")}


class Served:
    """`folder`: the path of the new release's files; `before`: as the release before had it."""

    def __init__(self, base: str, folder: str, before: str, session: ClientSession) -> None:
        self.base, self.folder, self.before, self._session = base, folder, before, session

    async def get(self, path: str, **headers: str) -> tuple[int, str, str]:
        """Status, Cache-Control and body, as it came over the wire."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.get(self.base + path, headers=sent) as answer:
            body = await answer.read()
            packed = answer.headers.get("Content-Encoding") == "gzip"
            told = gzip.decompress(body) if packed else body
            return answer.status, answer.headers.get("Cache-Control", ""), told.decode()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    app = web.Application()
    folder = add_folder(app.router, "/console", NEW)
    add_file(app.router, "/", made(b"<p>", ".html"))
    before = add_folder(web.UrlDispatcher(), "/console", OLD)
    async with TestServer(app) as server, ClientSession(auto_decompress=False) as session:
        yield Served(str(server.make_url("/")).rstrip("/"), folder, before, session)


async def test_a_file_is_kept_for_ever_where_its_path_names_its_release(served: Served) -> None:
    status, kept, body = await served.get(f"{served.folder}/main.mjs")
    assert (status, body) == (200, "new")
    assert {"immutable", "max-age=31536000"} <= set(kept.split(", "))


async def test_a_page_of_another_release_is_given_what_there_is_and_does_not_keep_it(served: Served) -> None:
    assert served.before != served.folder, "one changed file makes another version of all"
    assert await served.get(f"{served.before}/main.mjs") == (200, "no-cache", "new")


async def test_files_in_folders_have_their_paths_and_what_is_not_there_is_not_found(served: Served) -> None:
    assert (await served.get(f"{served.folder}/pages/wall.mjs"))[2] == "wall"
    for name in ("wall.mjs", "pages/", "../routes.py", "%2e%2e/routes.py"):
        assert (await served.get(f"{served.folder}/{name}"))[0] == 404, name


async def test_what_has_not_changed_is_not_sent_again(served: Served) -> None:
    assert await served.get("/") == (200, "no-cache", "<p>")
    etag = made(b"<p>", ".html").etag
    assert await served.get("/", If_None_Match=etag) == (304, "no-cache", "")
    assert await served.get("/", If_None_Match='"another"') == (200, "no-cache", "<p>")


async def test_who_takes_gzip_gets_it(served: Served) -> None:
    assert await served.get("/", Accept_Encoding="gzip") == (200, "no-cache", "<p>")
    async with served._session.get(served.base + "/", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
