"""/login, /logout and /session: how a browser gets a session, loses it, and learns whose it is.

docs/identity.md tells people of it; docs/decisions/0076 says why it is so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from aiohttp import web

from cronring.controller.api import login_pages as pages
from cronring.controller.api.cookies import LOGIN, SESSION, clear, set_login, set_session
from cronring.controller.api.judging import TO_DO as SEND_TOKEN
from cronring.controller.api.judging import Judge
from cronring.controller.api.login_attempts import Attempts
from cronring.controller.api.login_links import LASTS_MS, LINK_PATH, LoginLink, code_of, link_of, session_of
from cronring.controller.api.login_state import (
    NoSuchLoginError,
    begun,
    browser_of,
    form_token,
    is_form_token,
    local_path,
    locked,
    opened,
)
from cronring.controller.api.same_site import CSRF_HEADER, foreign, is_csrf_token
from cronring.controller.api.shown import RequestShown
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.web_identity import web_caller
from cronring.controller.api.web_problems import headers_of, status_of
from cronring.controller.errors import Conflict, CronringError, Forbidden, NotFound, Unauthenticated
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.log import OperatorLog
from cronring.controller.ports.login import LoginAnswered, LoginAsked, LoginIssuer, LoginRefused
from cronring.controller.ports.tokens import TokenStore
from cronring.controller.ports.web_sessions import WebSessionStore
from cronring.controller.services.web_sessions import MadeBy, end_session, make_session
from cronring.protos.instants import timestamp
from cronring.schema.identity import EVERYWHERE, LOCAL, Kind, Permission, Principal
from cronring.schema.tokens import SecretKind, secret_fault, secret_hash

FORM_S: Final = 10.0  # for a form to arrive, once its head has
FIELDS_MAX: Final = 8
WORDS_MAX: Final = 200
_NAME: Final = "{issuer:[a-z0-9][a-z0-9-]{0,30}}"
_TITLES: Final = {401: "Not logged in", 403: "Refused", 404: "Not there", 429: "Too many tries", 503: "Not now"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoginParts(NamedTuple):
    """What logging in stands on. `public_url`: where browsers find the controllers. `now_us`: a wall clock.

    `known`: tokens by their names. `refused` counts those who were not let in.
    """

    tokens: Judge
    known: TokenStore
    sessions: WebSessionStore
    issuers: Mapping[str, LoginIssuer]
    box: TokenBox
    public_url: str
    attempts: Attempts
    now_us: Callable[[], int]
    log: OperatorLog
    refused: OnRefusal


def _as_page(handler: Handler) -> Handler:
    """What a handler fails with, for people."""

    @wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except NoSuchLoginError as error:
            return pages.shown(pages.error_page("Not logged in", f"This can't be gone on with: {error}."), 400)
        except LoginRefused as error:
            return pages.shown(pages.error_page("Not logged in", f"{error}"), 403)
        except CronringError as error:
            status = status_of(error)
            response = pages.shown(pages.error_page(_TITLES.get(status, "It failed"), f"{error}"), status)
            response.headers.update(headers_of(error, request))
            return response

    return answer


class Login:
    """The routes. `parts` None: there is no database, or nobody logs in here; the door knows which."""

    def __init__(self) -> None:
        self.parts: LoginParts | None = None

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get("/login", _as_page(self._page))
        router.add_post("/login", _as_page(self._by_token))
        router.add_get(pages.STYLE_PATH, _style)
        router.add_post(LINK_PATH, self._make_link)
        router.add_get(f"{LINK_PATH}/{{code}}", _as_page(self._by_link), allow_head=False)  # a look uses nothing up
        router.add_get(f"/login/{_NAME}", _as_page(self._begin))
        router.add_get(f"/login/callback/{_NAME}", _as_page(self._come_back))
        router.add_post("/logout", _as_page(self._log_out))
        router.add_get("/session", _session)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        try:
            caller = await web_caller(request)
        except Unauthenticated as error:
            ended = str(error) if SESSION in request.cookies else ""
            return self._form(await self._opened(request), request, request.query.get("next"), ended)
        if caller.principal == LOCAL:
            return pages.shown(pages.local_page())
        return pages.shown(pages.session_page(caller.principal, caller.csrf_token))

    async def _by_token(self, request: web.Request) -> web.StreamResponse:
        parts = await self._opened(request)
        _check_ours(request)
        parts.attempts.one_more(_origin(request))
        form = await _form_of(request)
        if not is_form_token(parts.box, form.get("form", ""), request.cookies.get(LOGIN)):
            return self._form(parts, request, form.get("next"), "This page was too old. Try once more.", 403)
        token = form.get("token", "").strip()
        try:
            principal = await _holder(parts, request, token)
        except Unauthenticated as error:
            why = str(error).removesuffix(f"; {SEND_TOKEN}")
            self._turned_away(parts, request, why)
            return self._form(parts, request, form.get("next"), f"Not logged in: {why}.", 401)
        made_by = MadeBy(token_hash=secret_hash(SecretKind.TOKEN, token))
        return await self._let_in(parts, request, principal, made_by, form.get("next"))

    async def _make_link(self, request: web.Request) -> web.StreamResponse:
        """Make a link for a caller with a token of ours. A browser can open it once, within ten minutes."""
        parts = await self._opened(request)
        parts.attempts.one_more(_origin(request))
        caller = await web_caller(request)
        if caller.csrf_token is not None or caller.principal.kind is not Kind.TOKEN:
            raise Forbidden("links are made for a token of `cronring token create`; others log in at /login")
        token = await parts.known.get_token(caller.principal.name)
        code = code_of(parts.box, LoginLink(token.name, token.token_id, parts.now_us() // 1_000))
        said = {"path": f"{LINK_PATH}/{code}", "lasts_ms": LASTS_MS}
        return web.json_response(said, headers=pages.HEADERS)

    async def _by_link(self, request: web.Request) -> web.StreamResponse:
        parts = await self._opened(request)
        _check_ours(request)  # else a page elsewhere could log somebody in as another
        parts.attempts.one_more(_origin(request))
        wanted, code = local_path(request.query.get("next", "/")), request.match_info["code"]
        try:
            link = link_of(parts.box, code, parts.now_us() // 1_000)
            principal = await _of_link(parts, link)
            if await _is_logged_in(request, principal):  # a second click
                return _see_other(wanted)
            made_by = MadeBy(token_id=link.token_id, random=session_of(parts.box, code))
            return await self._let_in(parts, request, principal, made_by, wanted)
        except Conflict:
            why = "this link was used already; `cronring console` makes another"
        except NoSuchLoginError as error:
            why = str(error)
        self._turned_away(parts, request, why)
        raise NoSuchLoginError(why)

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        parts = await self._opened(request)
        issuer = _issuer(parts, request)
        parts.attempts.one_more(_origin(request))
        browser = browser_of(request.cookies.get(LOGIN))
        state = begun(issuer.name, browser, local_path(request.query.get("next")), parts.now_us())
        asked = LoginAsked(_back_to(parts, issuer), locked(parts.box, state), state.nonce, state.challenge)
        response = _see_other(await issuer.url(asked))
        set_login(response, browser)
        return response

    async def _come_back(self, request: web.Request) -> web.StreamResponse:
        parts = await self._opened(request)
        issuer = _issuer(parts, request)
        parts.attempts.one_more(_origin(request))
        try:
            state = opened(
                parts.box, request.query.get("state", ""), issuer.name, request.cookies.get(LOGIN, ""), parts.now_us()
            )
            answered = LoginAnswered(
                _back_to(parts, issuer), _code(issuer.name, request), request.query.get("iss", ""), state.nonce,
                state.verifier,
            )  # fmt: skip
            principal = await issuer.principal(answered)
        except (NoSuchLoginError, LoginRefused) as error:
            self._turned_away(parts, request, str(error))
            raise
        return await self._let_in(parts, request, principal, MadeBy(issuer=issuer.name), state.next_path)

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        parts = await self._opened(request)
        _check_ours(request)
        if cookie := request.cookies.get(SESSION):
            shown = request.headers.get(CSRF_HEADER) or (await _form_of(request)).get("csrf", "")
            if not is_csrf_token(shown, cookie):
                raise Forbidden(f"to log out takes the CSRF token of this session, in a form or as {CSRF_HEADER}")
            await end_session(parts.sessions, cookie)
            parts.log.info("logged_out", origin=_origin(request))
        response = _see_other("/login")
        clear(response, SESSION)
        return response

    async def _opened(self, request: web.Request) -> LoginParts:
        """Raises StoreUnavailable, NotFound."""
        if self.parts is None:
            await web_caller(request)  # which says whether there is no database yet
            raise NotFound("nobody logs in here: with --insecure whoever is on this machine may do everything")
        return self.parts

    def _form(
        self, parts: LoginParts, request: web.Request, wanted: str | None, refused: str, status: int = 200
    ) -> web.Response:
        """The login page, with the cookie that its form needs."""
        browser, next_path = browser_of(request.cookies.get(LOGIN)), local_path(wanted)
        # Links to issuers use the public URL: issuers send browsers back there, and the cookie is only sent there.
        urls = {name: pages.with_next(f"{parts.public_url}/login/{name}", next_path) for name in parts.issuers}
        response = pages.shown(
            pages.login_page(pages.LoginForm(urls, form_token(parts.box, browser), next_path, refused)), status
        )
        set_login(response, browser)
        return response

    async def _let_in(
        self, parts: LoginParts, request: web.Request, principal: Principal, made_by: MadeBy, wanted: str | None
    ) -> web.Response:
        former = request.cookies.get(SESSION)
        cookie = await make_session(parts.sessions, principal, made_by, _origin(request), former)
        parts.log.info("logged_in", principal=str(principal), origin=_origin(request))
        response = _see_other(local_path(wanted))
        set_session(response, cookie)
        clear(response, LOGIN)
        return response

    def _turned_away(self, parts: LoginParts, request: web.Request, why: str) -> None:
        parts.refused("login", why=why)
        parts.log.warning("login_refused", reason=why, origin=_origin(request))


async def _of_link(parts: LoginParts, link: LoginLink) -> Principal:
    """Raises NoSuchLoginError: its token is gone, though another may have its name by now."""
    try:
        row = await parts.known.get_token(link.token)
    except NotFound:
        raise NoSuchLoginError(f"the token {link.token!r} was revoked") from None
    if row.token_id != link.token_id:
        raise NoSuchLoginError(f"the token {link.token!r} was replaced since")
    return Principal(Kind.TOKEN, row.name, row.grants, row.expires_at)


async def _is_logged_in(request: web.Request, principal: Principal) -> bool:
    try:
        return str((await web_caller(request)).principal) == str(principal)
    except Unauthenticated:
        return False


async def _style(_: web.Request) -> web.Response:
    headers = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=pages.STYLE, content_type="text/css", charset="utf-8", headers=headers)


async def _session(request: web.Request) -> web.Response:
    """Who asks, as `cronring whoami` says it, and the CSRF token that unsafe requests of this session must show.

    With `?optional` it answers even if nobody is logged in: a page may only want to know, and browsers log each 401.
    """
    try:
        caller = await web_caller(request)
    except Unauthenticated:
        if "optional" not in request.query:
            raise
        return web.Response(status=204, headers=pages.HEADERS)
    who = caller.principal
    expires = None if who.expires_us is None else timestamp(who.expires_us)
    said = {
        "kind": who.kind,
        "name": who.name,
        "grants": [grant._asdict() for grant in who.grants],
        "may": {permission: _where(who, permission) for permission in Permission},
        "expires_at": None if expires is None else expires.ToJsonString(),
        "csrf_token": caller.csrf_token,
    }
    return web.json_response(said, headers=pages.HEADERS)


def _where(who: Principal, permission: Permission) -> list[str]:
    """The namespaces in which somebody has it; EVERYWHERE stands for all of them."""
    found = who.namespaces(permission)
    return [EVERYWHERE] if found is None else sorted(found)


async def _holder(parts: LoginParts, request: web.Request, token: str) -> Principal:
    """The owner of a token of ours. JWTs won't do: a session must end with its token. As Judge.holder."""
    if fault := secret_fault(SecretKind.TOKEN, token):
        raise Unauthenticated(f"this is no token of cronring: {fault}")
    return await parts.tokens.holder(RequestShown(request, [f"Bearer {token}"]))


def _issuer(parts: LoginParts, request: web.Request) -> LoginIssuer:
    """Raises NotFound."""
    name = request.match_info["issuer"]
    if name not in parts.issuers:
        raise NotFound(f"nobody logs in by an issuer {name!r}; /login has those that there are")
    return parts.issuers[name]


def _back_to(parts: LoginParts, issuer: LoginIssuer) -> str:
    """Each issuer has its own redirect URI, so that no answer is taken for another issuer's (RFC 9700, 4.4)."""
    return f"{parts.public_url}/login/callback/{issuer.name}"


def _code(name: str, request: web.Request) -> str:
    """Raises LoginRefused."""
    code = request.query.get("code")
    if not code:
        said = request.query.get("error_description") or request.query.get("error") or "it gives no reason"
        raise LoginRefused(f"issuer {name!r} has not logged you in: {said!r:.{WORDS_MAX}}")
    return code


def _check_ours(request: web.Request) -> None:
    """Raises Forbidden."""
    if why := foreign(request.headers):
        raise Forbidden(f"this request is refused: {why}")


async def _form_of(request: web.Request) -> dict[str, str]:
    """The fields of a form, as our own pages send it; empty for other content types. Raises web.HTTPException."""
    if request.content_type != "application/x-www-form-urlencoded":
        return {}
    try:
        async with asyncio.timeout(FORM_S):
            body = await request.read()
        return dict(parse_qsl(body.decode(), max_num_fields=FIELDS_MAX))
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except ValueError:
        raise web.HTTPBadRequest from None


def _see_other(location: str) -> web.Response:
    return web.Response(status=303, headers={**pages.HEADERS, "Location": location})


def _origin(request: web.Request) -> str:
    """The client's address. Headers of proxies are not read, as anybody could send them."""
    return request.remote or ""
