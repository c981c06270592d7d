"""Who asks by HTTP: by a bearer token as in gRPC, else by a session's cookie. With --insecure: any local caller.

principal = await web_principal(request)
"""

import contextlib
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from cronring.controller.api.cookies import SESSION
from cronring.controller.api.judging import Judge, Verdicts, check_still
from cronring.controller.api.policy import Access
from cronring.controller.api.same_site import CSRF_HEADER, SAFE_METHODS, csrf_token, foreign, is_csrf_token
from cronring.controller.api.shown import RequestShown, Shown
from cronring.controller.errors import Forbidden, StoreUnavailable, Unauthenticated
from cronring.schema.address import is_loopback, site_of
from cronring.schema.identity import LOCAL, Principal

TO_DO: Final = "log in at /login, or send `authorization: Bearer TOKEN`"


class WebCaller(NamedTuple):
    """Who asks. `cookie`: of the session that proves it; "": something else proves it."""

    principal: Principal
    cookie: str = ""

    @property
    def csrf_token(self) -> str | None:
        """What unsafe requests of this session have to show; None: nothing."""
        return csrf_token(self.cookie) if self.cookie else None


class WebJudge(Protocol):
    """Tells who asks, before more than a request's head is read."""

    async def judged(self, request: web.Request) -> WebCaller:
        """Raises Unauthenticated, Forbidden; StoreUnavailable, StoreError, IssuerAway where it can't be told now."""
        ...

    async def still(self, principal: Principal, access: Access, request: web.Request) -> None:
        """Whether what was judged of a request that goes on is true yet. Raises as `judged`."""
        ...

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        """Around an answer that may last. Entering it raises TooManyStreams."""
        ...


class NobodyYet:
    """A WebJudge without a database: HTTP is served before there is one, and after."""

    async def judged(self, request: web.Request) -> WebCaller:
        raise StoreUnavailable("this controller has no connection to PostgreSQL, and can't tell who asks; try later")

    async def still(self, principal: Principal, access: Access, request: web.Request) -> None:
        """Nobody can tell, so nothing is taken back."""

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class LocalWeb:
    """A WebJudge for --insecure: programs on this machine may do everything. Pages of other sites may not.

    A page of another site could use a browser on this machine, or point its own name to 127.0.0.1. So requests that
    change something have to come from our own pages, and only names of this machine are accepted.
    """

    async def judged(self, request: web.Request) -> WebCaller:
        _check_local(request)
        if request.method not in SAFE_METHODS and (why := foreign(request.headers)):
            raise Forbidden(f"this request is refused: {why}")
        return WebCaller(LOCAL)

    async def still(self, principal: Principal, access: Access, request: web.Request) -> None:
        """Always."""

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class KnownWeb:
    """A WebJudge of tokens and sessions. `local`: without TLS, so by names of this machine alone."""

    def __init__(self, tokens: Judge, sessions: Verdicts, *, local: bool = False) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._local = local

    async def judged(self, request: web.Request) -> WebCaller:
        if self._local:
            _check_local(request)
        shown = RequestShown(request)
        if hdrs.AUTHORIZATION in request.headers:
            return WebCaller(await self._tokens.holder(shown))
        cookie = request.cookies.get(SESSION)
        if not cookie:
            raise Unauthenticated(f"nobody is logged in; {TO_DO}")
        unsafe = request.method not in SAFE_METHODS
        if unsafe and (why := foreign(request.headers)):
            raise Forbidden(f"this request is refused: {why}")
        principal = await self._sessions.holder(cookie, site_of(shown.peer()))
        if unsafe and not is_csrf_token(request.headers.get(CSRF_HEADER, ""), cookie):
            raise Forbidden(
                f"this request has no {CSRF_HEADER} of its session; GET /session tells it, and it changes at each login"
            )
        return WebCaller(principal, cookie)

    async def still(self, principal: Principal, access: Access, request: web.Request) -> None:
        if hdrs.AUTHORIZATION in request.headers:
            return await self._tokens.still(principal, access, RequestShown(request))
        now = await self._sessions.holder(request.cookies.get(SESSION, ""), None)
        return check_still(now, principal, access)

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        return self._tokens.streaming(principal, access, shown)


class WebDoor:
    """Holds the present judge of HTTP requests, which is replaced when the database comes."""

    def __init__(self) -> None:
        self.judge: WebJudge = NobodyYet()


DOOR: Final = web.AppKey("door", WebDoor)


async def web_caller(request: web.Request) -> WebCaller:
    """As web_principal, with what a session's pages need."""
    return await request.config_dict[DOOR].judge.judged(request)


async def web_principal(request: web.Request) -> Principal:
    """Who asks. Raises Unauthenticated, Forbidden; StoreUnavailable, StoreError, IssuerAway: it can't be told now.

    A request by a cookie may change something (not GET, HEAD, OPTIONS) if it comes from our own pages. It also has to
    show the session's CSRF token. Else it is Forbidden.
    """
    return (await web_caller(request)).principal


def _check_local(request: web.Request) -> None:
    """Raises Forbidden for other names: a site could point its own name to this address (DNS rebinding)."""
    host = _host_of(request)
    if host != "localhost" and not is_loopback(host):
        raise Forbidden(f"it was asked for as {host!r:.100}; without TLS it is only reached as localhost")


def _host_of(request: web.Request) -> str:
    """Without its port; "": there is none that could be read."""
    try:
        return urlsplit(f"//{request.headers.get(hdrs.HOST, '')}").hostname or ""
    except ValueError:
        return ""
