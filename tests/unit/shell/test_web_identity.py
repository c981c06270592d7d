"""Who asks by HTTP, by what a request shows: one table, on real HTTP. And the parts of a login that are pure."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Final

import aiohttp
import pytest
from aiohttp import web

from cronring.controller.api import login_state
from cronring.controller.api.cookies import SESSION
from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Verdicts
from cronring.controller.api.login_attempts import ATTEMPTS, ORIGINS_MAX, PERIOD_NS, Attempts
from cronring.controller.api.login_pages import LoginForm, error_page, login_page, shown
from cronring.controller.api.login_state import NoSuchLoginError, local_path
from cronring.controller.api.same_site import csrf_token, foreign
from cronring.controller.api.web_identity import DOOR, KnownWeb, LocalWeb, WebDoor, WebJudge, web_principal
from cronring.controller.api.web_problems import problem
from cronring.controller.errors import CronringError, TooMany
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.web import Web
from cronring.protos.problems import Fate
from cronring.schema.identity import Kind, Principal
from tests.support.boxes import BOX
from tests.support.callers import NamedCallers, counting, judge_of, unlimited

COOKIE, OTHERS = "crs_mine", "crs_another"
CSRF: Final = csrf_token(COOKIE)
BEARER: Final = {"Authorization": "Bearer test-ann"}
MINE: Final = {"Cookie": f"{SESSION}={COOKIE}"}
OURS: Final = {"Sec-Fetch-Site": "same-origin"}
TOLD: Final = {"X-CSRF-Token": CSRF}
NOW_US: Final = 1_790_000_000_000_000


class Cookies:
    """A Verifier of the two above."""

    def knows(self, token: str) -> bool:
        return token.startswith("crs_")

    async def principal(self, token: str) -> Principal:
        if token not in {COOKIE, OTHERS}:
            raise TokenRefused("this session has ended")
        return Principal(Kind.USER, token)


class Reading(HTMLParser):
    """What a browser would see in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.said += data


async def _who(request: web.Request) -> web.Response:
    try:
        return web.Response(text=str(await web_principal(request)))
    except CronringError as error:
        return problem(error, request, Fate.NOT_DONE)


@pytest.fixture
async def asked(request: pytest.FixtureRequest) -> AsyncIterator[aiohttp.ClientSession]:
    """Whoever asks for anything is told who they are."""
    judge: WebJudge = KnownWeb(judge_of(NamedCallers(ann=())), Verdicts([Cookies()], unlimited(), to_do="log in"))
    application, door = web.Application(), WebDoor()
    door.judge = getattr(request, "param", judge)
    application[DOOR] = door
    application.router.add_route("*", "/who", _who)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    async with aiohttp.ClientSession(f"http://{host}:{port}", cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session
    await runner.cleanup()


TABLE: Final = [
    # Who asks by what, how, and what they are told.
    ("nothing", "GET", {}, 401, "log in at /login"),
    ("a token", "GET", BEARER, 200, "token:ann"),
    ("a token, to change", "POST", BEARER, 200, "token:ann"),
    ("a token, from another site", "POST", BEARER | {"Sec-Fetch-Site": "cross-site"}, 200, "token:ann"),
    ("a token that is none", "GET", {"Authorization": "Bearer test-eve"}, 401, "was revoked"),
    ("a bad token beside a good cookie", "GET", {"Authorization": "Bearer test-eve"} | MINE, 401, "was revoked"),
    ("another scheme", "GET", {"Authorization": "Basic test-ann"} | MINE, 401, "no bearer token"),
    ("a cookie", "GET", MINE, 200, f"user:{COOKIE}"),
    ("a cookie, from a link elsewhere", "GET", MINE | {"Sec-Fetch-Site": "cross-site"}, 200, f"user:{COOKIE}"),
    ("a cookie, HEAD", "HEAD", MINE, 200, ""),
    ("a cookie, OPTIONS", "OPTIONS", MINE, 200, f"user:{COOKIE}"),
    ("a cookie that is none", "GET", {"Cookie": f"{SESSION}=crs_old"}, 401, "this session has ended; log in"),
    ("a token as a cookie", "GET", {"Cookie": f"{SESSION}=test-ann"}, 401, "of no kind"),
    ("a cookie as a token", "GET", {"Authorization": f"Bearer {COOKIE}"}, 401, "of no kind"),
    ("another cookie", "GET", {"Cookie": f"cronring={COOKIE}"}, 401, "nobody is logged in"),
    *[
        (f"{method} without CSRF token", method, MINE | OURS, 403, "has no X-CSRF-Token of its session")
        for method in ("POST", "PUT", "PATCH", "DELETE")
    ],
    ("a wrong one", "POST", MINE | OURS | {"X-CSRF-Token": "x"}, 403, "has no X-CSRF-Token of its session"),
    ("an empty one", "POST", MINE | OURS | {"X-CSRF-Token": ""}, 403, "has no X-CSRF-Token of its session"),
    ("another session's", "POST", MINE | OURS | {"X-CSRF-Token": csrf_token(OTHERS)}, 403, "has no X-CSRF-Token"),
    ("its own", "POST", MINE | OURS | TOLD, 200, f"user:{COOKIE}"),
    ("its own, DELETE", "DELETE", MINE | OURS | TOLD, 200, f"user:{COOKIE}"),
    ("its own, by no browser", "POST", MINE | TOLD, 200, f"user:{COOKIE}"),
    ("its own, from another site", "POST", MINE | TOLD | {"Sec-Fetch-Site": "cross-site"}, 403, "another site"),
    ("its own, from a host beside", "POST", MINE | TOLD | {"Sec-Fetch-Site": "same-site"}, 403, "another site"),
    ("its own, of an old browser", "POST", MINE | TOLD | {"Origin": "https://evil.example"}, 403, "another site"),
    ("its own, hidden", "POST", MINE | TOLD | {"Origin": "null"}, 403, "another site"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "method", "headers", "status", "says"), TABLE, ids=[row[0] for row in TABLE])
async def test_who_asks_is_known_by_what_they_show(
    asked: aiohttp.ClientSession, _: str, method: str, headers: dict[str, str], status: int, says: str
) -> None:
    async with asked.request(method, "/who", headers=headers) as answer:
        assert (answer.status, says in await answer.text()) == (status, True)


async def test_two_tokens_are_none(asked: aiohttp.ClientSession) -> None:
    twice = [("Authorization", "Bearer test-ann")] * 2
    async with asked.get("/who", headers=twice) as answer:
        assert answer.status == 401


LOCAL_TABLE: Final = [
    ("GET", {}, 200), ("POST", {}, 200), ("POST", OURS, 200),
    ("POST", {"Sec-Fetch-Site": "cross-site"}, 403), ("DELETE", {"Origin": "https://evil.example"}, 403),
    ("GET", {"Host": "evil.example"}, 403), ("GET", {"Host": "localhost:7480"}, 200), ("GET", {"Host": "[::1]:9"}, 200),
    ("GET", {"Host": "127.0.0.1.evil.example"}, 403), ("GET", {"Host": "["}, 403),
]  # fmt: skip


@pytest.mark.parametrize("asked", [LocalWeb()], indirect=True)
async def test_whoever_is_local_may_do_everything_and_pages_of_others_nothing(asked: aiohttp.ClientSession) -> None:
    for method, headers, status in LOCAL_TABLE:
        async with asked.request(method, "/who", headers=headers) as answer:
            assert answer.status == status, (method, headers)


async def test_without_a_database_nobody_is_known_and_told_so() -> None:
    composed = Web()
    server = HttpServer(lambda: None, lambda: b"", counting([]), composed.door, composed.login)
    port = await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            for path in ("/login", "/login/corp", "/login/callback/corp", "/session"):
                async with session.get(path) as answer:
                    assert answer.status == 503, path
                    assert "has no connection to PostgreSQL" in await answer.text()
                    assert answer.headers["Retry-After"] == "5"
            composed.open_to_all()
            async with session.get("/login") as answer:
                assert "runs with --insecure" in await answer.text()
            async with session.get("/session") as answer:
                assert (await answer.json())["kind"] == "local"
            async with session.post("/login", data={"token": "x"}) as answer:
                assert (answer.status, "nobody logs in here" in await answer.text()) == (404, True)
            composed.close()
            async with session.get("/session") as answer:
                assert answer.status == 503
    finally:
        await server.stop()


def test_pages_of_others_are_told_by_what_browsers_say() -> None:
    host = {"Host": "c1.example:7480"}
    for headers in (
        {}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "https://c1.example:7480"},
        {"Origin": "https://C1.example:7480"}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://proxied.example"},
    ):  # fmt: skip
        assert foreign(host | headers) == ""
    for headers in (
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "SAME-ORIGIN"}, {"Origin": "https://c1.example"}, {"Origin": "https://c1.example:7481"},
        {"Origin": "null"}, {"Origin": ""}, {"Origin": "https://["}, {"Origin": "https://c1.example:7480.evil.example"},
    ):  # fmt: skip
        assert foreign(host | headers), headers
    assert foreign({"Origin": "https://c1.example"}), "without a Host"


@pytest.mark.parametrize("wanted", ["/", "/jobs", "/jobs/a%2Fb?x=1#y", "/session", "/" + "x" * 499])
def test_paths_of_ours_are_gone_on_to(wanted: str) -> None:
    assert local_path(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    [None, "", "jobs", "//evil.example", "///x", "/\\evil.example", "/x\\y", "https://evil.example", "/\tx", "/x y",
     "/x\r\nSet-Cookie: y", "/\u0430", " /x", "/x\n", "/" + "x" * 500, "\\\\evil.example", "javascript:alert(1)"],
)  # fmt: skip
def test_others_are_not(wanted: str | None) -> None:
    assert local_path(wanted) == "/login"


def test_a_login_under_way_is_known_to_whoever_has_the_key_and_to_nobody_else() -> None:
    browser = login_state.browser_of(None)
    state = login_state.begun("corp", browser, "/jobs", NOW_US)
    text = login_state.locked(BOX, state)
    assert login_state.opened(BOX, text, "corp", browser, NOW_US + 599_999_999) == state
    for part in state[:5]:
        assert str(part) not in text
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", state.challenge)
    assert len({state.nonce, state.verifier, state.challenge, browser}) == 4
    for issuer, shown_by, now_us, says in (
        ("other", browser, NOW_US, "another issuer"), ("corp", "x" * 43, NOW_US, "another browser"),
        ("corp", "", NOW_US, "another browser"), ("corp", "\udcff", NOW_US, "another browser"),
        ("corp", browser, NOW_US + 600_000_000, "ten minutes"), ("corp", browser, NOW_US - 61_000_000, "ten minutes"),
    ):  # fmt: skip
        with pytest.raises(NoSuchLoginError, match=says):
            login_state.opened(BOX, text, issuer, shown_by, now_us)
    with pytest.raises(NoSuchLoginError, match="no `state`"):
        login_state.opened(BOX, login_state.form_token(BOX, browser), "corp", browser, NOW_US)


def test_a_form_is_of_one_browser() -> None:
    browser = login_state.browser_of(None)
    text = login_state.form_token(BOX, browser)
    assert login_state.browser_of(browser) == browser
    assert login_state.browser_of("short") != "short"
    assert login_state.is_form_token(BOX, text, browser)
    for wrong, cookie in ((text, None), (text, "x" * 43), ("", browser), ("x", browser), (text[:-1], browser)):
        assert not login_state.is_form_token(BOX, wrong, cookie)


def test_each_address_has_so_many_tries_a_minute_and_so_many_addresses_are_remembered() -> None:
    now_ns = [0]
    attempts = Attempts(lambda: now_ns[0])
    for _ in range(ATTEMPTS):
        attempts.one_more("192.0.2.1")
    with pytest.raises(TooMany, match=r"from 192\.0\.2\.1"):
        attempts.one_more("192.0.2.1")
    attempts.one_more("192.0.2.2")
    now_ns[0] = PERIOD_NS
    attempts.one_more("192.0.2.1")
    for number in range(ATTEMPTS):
        attempts.one_more(f"2001:db8::{number:x}")
    with pytest.raises(TooMany, match="from 2001:db8::/64"):
        attempts.one_more("2001:db8::ffff%eth0")
    for number in range(ORIGINS_MAX + 100):
        attempts.one_more(f"10.0.{number // 256}.{number % 256}")
    attempts.one_more("no address")
    assert len(attempts) == ORIGINS_MAX


def test_what_is_put_into_pages_is_text() -> None:
    evil = "\"'><script>alert(1)</script><a href='javascript:x'>"
    form = LoginForm({evil: f"https://c1.example/login/{evil}"}, evil, evil, evil)
    for page in (login_page(form), error_page(evil, evil)):
        read = Reading()
        read.feed(shown(page).text or "")
        assert "script" not in read.tags
        assert read.tags.count("a") == 1
        assert evil in read.said
        assert read.names <= {
            "lang", "charset", "name", "content", "rel", "href", "role", "class", "method", "action", "for", "id",
            "type", "required", "autocomplete", "spellcheck", "value",
        }  # fmt: skip
