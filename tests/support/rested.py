"""REST on real HTTP and PostgreSQL, behind its door, without a controller's life."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp

from cronring.controller.api.calls import Calls
from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Judge, Verdicts
from cronring.controller.api.keyed import keyed
from cronring.controller.api.web_identity import KnownWeb, LocalWeb
from cronring.controller.interval_jobs.settings import interval_settings
from cronring.controller.ports.identity import Verifier
from cronring.controller.store.pool import Database
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.controller.web import Web
from tests.support.callers import counting, unlimited
from tests.support.guarded import Around, api_on

CRON = "/api/v1/cron"


class Answer(NamedTuple):
    status: int
    headers: Any
    body: Any


class Rested:
    """A client; `refused`: what was counted. `ask` is by a named caller, "" by nobody."""

    def __init__(self, url: str, session: aiohttp.ClientSession, refused: list[str]) -> None:
        self.url = url
        self.session = session
        self.refused = refused

    async def ask(
        self, method: str, path: str, body: Any = None, *, by: str = "root", headers: dict[str, str] | None = None
    ) -> Answer:
        shown = {"Authorization": f"Bearer test-{by}"} if by else {}
        given = {"json": body} if body is not None else {}
        async with self.session.request(method, CRON + path, headers=shown | (headers or {}), **given) as answer:
            is_json = answer.content_type in {"application/json", "application/problem+json"}
            return Answer(answer.status, answer.headers, await answer.json() if is_json else await answer.read())

    async def send(self, method: str, path: str, raw: bytes, kind: str = "application/json") -> Answer:
        shown = {"Authorization": "Bearer test-root", "Content-Type": kind}
        async with self.session.request(method, CRON + path, data=raw, headers=shown) as answer:
            return Answer(answer.status, answer.headers, await answer.json())


@contextlib.asynccontextmanager
async def rested(
    database: Database, judge: Judge | None, sessions: tuple[Verifier, ...] = (), cors_origins: tuple[str, ...] = ()
) -> AsyncIterator[Rested]:
    """`judge`: of tokens, beside whom `sessions` verify cookies; None: as with --insecure."""
    web, refused = Web(cors_origins, interval_settings("")), list[str]()
    web.door.judge = LocalWeb() if judge is None else KnownWeb(judge, Verdicts(sessions, unlimited()))
    http = HttpServer(lambda: None, lambda: b"", counting(refused), web.door, *web.routes, cors=web.cors)
    port = await http.start("127.0.0.1", 0)
    api = api_on(database)
    calls = Calls(Around(), counting(refused), lambda: None)
    web.rest.open(keyed(api.registrations(), PostgresRequestKeys(database)), calls, counting(refused))
    web.serve(api.parts)
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(url, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Rested(url, session, refused)
    await api.close()
    await web.rest.close(0)
    await http.stop()
