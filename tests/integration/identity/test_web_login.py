"""People log in by a browser, at an issuer or by a token: the whole way, and each way in which it must not work."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from cronring.controller.api import login
from cronring.controller.api.cookies import LOGIN, SESSION
from cronring.controller.api.login_attempts import ATTEMPTS
from cronring.schema.identity import Role
from tests.integration.identity.web import Offices, open_offices
from tests.support.issuer import CLIENT_ID
from tests.support.waiting import TIMEOUT_S

OPERATOR = [{"role": "operator", "namespace": "*"}]


@pytest.fixture
async def offices(database_url: str, tmp_path: Path) -> AsyncIterator[Offices]:
    async with open_offices(database_url, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("issuer", ["corp", "other"])
async def test_somebody_logs_in_at_an_issuer_and_is_known_to_all_controllers(offices: Offices, issuer: str) -> None:
    async with offices.browser() as browser:
        page = await browser.get(f"{offices.base}/login?next=/session")
        assert f'href="{offices.base}/login/{issuer}?next=%2Fsession"' in page.text
        entered = await browser.log_in(offices.base, issuer, "?next=/session")
        assert (entered.status, entered.to) == (303, "/session")
        for base in (offices.base, offices.second.base):
            who = await browser.who(base)
            assert (who["kind"], who["name"], who["grants"]) == ("user", f"{issuer}/ada@example.org", OPERATOR)
            assert who["csrf_token"]
        assert (
            f"You are user:{issuer}/ada@example.org, and may: operator@*"
            in (await browser.get(f"{offices.base}/login")).text
        )
    assert offices.first.told == [("logged_in", {"principal": f"user:{issuer}/ada@example.org", "origin": "127.0.0.1"})]


async def test_what_a_browser_is_sent_to_the_issuer_with(offices: Offices) -> None:
    async with offices.browser() as browser:
        begun = await browser.get(f"{offices.base}/login/corp")
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.to).query).items()}
        assert begun.to.startswith(f"{offices.corp.url}/authorize?")
        assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", CLIENT_ID, "openid")
        assert (asked["code_challenge_method"], len(asked["code_challenge"])) == ("S256", 43)
        assert asked["redirect_uri"] == f"{offices.base}/login/callback/corp"
        again = parse_qs(urlsplit((await browser.get(f"{offices.base}/login/corp")).to).query)
        for once in ("state", "nonce", "code_challenge"):
            assert again[once][0] != asked[once]


async def test_any_controller_takes_the_answer(offices: Offices) -> None:
    async with offices.browser() as browser:
        back = await browser.come_back(offices.base, "corp")
        entered = await browser.get(back.replace(offices.base, offices.second.base))
        assert entered.status == 303
        assert (await browser.who(offices.base))["status"] == 200


async def test_cookies_are_for_this_host_alone_and_no_scripts(offices: Offices) -> None:
    async with offices.browser() as browser:
        first = await browser.get(f"{offices.base}/login")
        entered = await browser.type_token(offices.base, await offices.token())
        begun, session, over = *first.cookies(), *entered.cookies()
        assert begun.startswith(f"{LOGIN}=")
        assert session.startswith(f"{SESSION}=crs_")
        assert "Max-Age" not in session, "it ends with the browser"
        assert over.startswith(f'{LOGIN}="";')
        assert "Max-Age=0" in over
        for cookie in (begun, session, over):
            assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
            assert "Domain" not in cookie


async def test_a_login_makes_a_new_session_and_ends_the_one_before(offices: Offices) -> None:
    async with offices.browser() as browser, offices.browser() as thief:
        await browser.type_token(offices.base, await offices.token())
        stolen = browser.cookie
        await browser.log_in(offices.base, "corp")
        assert browser.cookie not in {"", stolen}
        shown = await thief.get(f"{offices.second.base}/session", Cookie=f"{SESSION}={stolen}")
        assert (shown.status, "replaced by a later login" in shown.text) == (401, True)
        assert 'Bearer realm="cronring"' in shown.headers["WWW-Authenticate"]


async def test_a_cookie_that_was_planted_makes_no_session(offices: Offices) -> None:
    async with offices.browser() as browser:
        for planted in ("crs_x", "x" * 9_000, "", '"'):
            shown = await browser.get(f"{offices.base}/session", Cookie=f"{SESSION}={planted}")
            assert shown.status in {400, 401}, shown.text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "another"}, "`nonce` is not that of this login"),
    ({"nonce": None}, "`nonce` is not that of this login"),
    ({"aud": "cronring"}, "it is for 'cronring' (its `aud`), and not for 'cronring-cli'"),
    ({"aud": [CLIENT_ID, "more"]}, "doesn't say for which client it was made"),
    ({"azp": "more"}, "it is for the client 'more'"),
    ({"exp": 1_000_000}, "it expired"),
    ({"exp": None}, "it has no `exp`"),
    ({"iss": "https://elsewhere.example"}, "its `iss` is 'https://elsewhere.example'"),
    ({"sub": None}, "its `sub` is missing"),
]


async def test_an_id_token_that_is_not_for_this_login_is_refused(offices: Offices) -> None:
    async with offices.browser() as browser:
        for claims, says in REFUSED:
            offices.corp.id_claims = claims
            shown = await browser.log_in(offices.base, "corp")
            assert shown.status == 403
            assert says in unescaped(shown.text)
            assert browser.cookie == ""
    assert offices.first.refused == ["login"] * len(REFUSED)
    assert {event for event, _ in offices.first.told} == {"login_refused"}


async def test_an_id_token_of_another_issuer_or_key_is_refused(offices: Offices) -> None:
    now = int(time.time())
    offices.corp.id_token = offices.other.token(aud=CLIENT_ID, iat=now)
    async with offices.browser() as browser:
        assert "it is of issuer 'other', and 'corp' was asked" in unescaped(
            (await browser.log_in(offices.base, "corp")).text
        )
        offices.corp.id_token = offices.other.token(aud=CLIENT_ID, iss=offices.corp.url)
        assert "its signature is wrong" in unescaped((await browser.log_in(offices.base, "corp")).text)
        offices.corp.id_token = "x.y.z"
        assert "can't be decoded" in unescaped((await browser.log_in(offices.base, "corp")).text)
        assert browser.cookie == ""


async def test_an_answer_counts_once_for_its_browser_its_issuer_and_ten_minutes(offices: Offices) -> None:
    async with offices.browser() as browser, offices.browser() as victim:
        back = await browser.come_back(offices.base, "corp")
        assert (await victim.get(back)).status == 400, "the code of an attacker logs nobody else in"
        await victim.get(f"{offices.base}/login")
        assert "begun in another browser" in (await victim.get(back)).text
        crossed = back.replace("/callback/corp", "/callback/other")
        assert "another issuer has answered" in (await browser.get(crossed)).text
        for wrong in ("", "x", "A" * 400, back_state(back).swapcase()):
            forged = f"{offices.base}/login/callback/corp?{urlencode({'state': wrong, 'code': 'c'})}"
            assert "no `state` that was given out here" in unescaped((await browser.get(forged)).text)
        assert offices.corp.asked["/token"] == offices.other.asked["/token"] == 0
        offices.clock.later_us = 600_000_000
        assert "more than ten minutes ago" in (await browser.get(back)).text
        offices.clock.later_us = 0
        assert (await browser.get(back)).status == 303
        assert (await browser.get(back)).status == 400, "a page that is loaded anew"
        await browser.get(f"{offices.base}/login/corp")
        assert browser.cookie


async def test_a_code_that_was_used_is_refused(offices: Offices) -> None:
    async with offices.browser() as browser:
        first = await browser.come_back(offices.base, "corp")
        second = await browser.come_back(offices.base, "corp")
        code = parse_qs(urlsplit(first).query)["code"][0]
        said = urlencode({"state": back_state(second), "code": code, "iss": offices.corp.url})
        stolen = f"{second.partition('?')[0]}?{said}"
        assert "invalid_grant" in (await browser.get(stolen)).text, "it is of another challenge"
        shown = await browser.get(first)
        assert (shown.status, "invalid_grant" in shown.text) == (403, True)
        assert browser.cookie == ""


async def test_issuers_are_not_mixed_up(offices: Offices) -> None:
    """An issuer that is hostile has codes of an honest one sent to it, unless the answer is bound to who was asked."""
    async with offices.browser() as browser:
        back = await browser.come_back(offices.base, "corp")
        query = parse_qs(urlsplit(back).query)
        for wrong in ({"iss": offices.other.url}, {"iss": ""}):
            said = {name: values[0] for name, values in query.items()} | wrong
            mixed = f"{back.partition('?')[0]}?{urlencode(said)}"
            assert "another issuer has answered than was asked" in (await browser.get(mixed)).text
        assert offices.corp.asked["/token"] == 0
        offices.other.says_who = False
        assert (await browser.log_in(offices.base, "other")).status == 303, "one that never says who it is"


async def test_somebody_who_is_not_let_in_there_is_not_let_in_here(offices: Offices) -> None:
    offices.corp.approves = False
    async with offices.browser() as browser:
        shown = await browser.log_in(offices.base, "corp")
        assert (shown.status, "'corp' has not logged you in: 'access_denied'" in unescaped(shown.text)) == (403, True)
        offices.corp.approves, offices.corp.client_secret = True, "changed"
        assert "invalid_client" in (await browser.log_in(offices.base, "corp")).text
        assert browser.cookie == ""


async def test_an_issuer_that_is_away_or_speaks_of_another_is_said_to_be(offices: Offices) -> None:
    async with offices.browser() as browser:
        offices.other.configured = {"issuer": "https://elsewhere.example"}
        shown = await browser.get(f"{offices.base}/login/other")
        assert (shown.status, "it says that it is" in shown.text) == (503, True)
        offices.other.configured = {"token_endpoint": "http://elsewhere.example/token"}
        assert "which is not https" in (await browser.get(f"{offices.base}/login/other")).text
        await offices.corp.stop()
        shown = await browser.get(f"{offices.base}/login/corp")
        assert (shown.status, shown.headers["Retry-After"]) == (503, "5")
        assert "nobody can log in by issuer" in shown.text
        assert (await browser.type_token(offices.base, await offices.token())).status == 303, "tokens don't need it"


async def test_whoever_is_named_and_granted_nothing_is_known_and_may_nothing(offices: Offices) -> None:
    offices.corp.claims = {"sub": "eve", "groups": ["guests"]}
    async with offices.browser() as browser:
        await browser.log_in(offices.base, "corp")
        assert (await browser.who(offices.base))["grants"] == []


async def test_a_session_of_a_token_is_its_holder_and_ends_with_it(offices: Offices) -> None:
    token = await offices.token("me", Role.VIEWER)
    async with offices.browser() as browser, offices.browser() as other:
        assert (await browser.type_token(offices.base, f" {token} ")).to == "/login"
        who = await browser.who(offices.base)
        assert (who["kind"], who["name"], who["grants"]) == ("token", "me", [{"role": "viewer", "namespace": "*"}])
        assert who["may"] == {
            "view": ["*"], "outputs": [], "operate": [], "deploy": [], "consume": [], "admin": [],
        }  # fmt: skip
        assert (await other.who(offices.base))["status"] == 401
        await offices.tokens.revoke_token((await offices.tokens.get_token("me")).token_id, "ann")
        # The second controller hasn't seen it yet; the first one may go on for the second that the door keeps.
        gone = await browser.who(offices.second.base)
        assert (gone["status"], gone["title"]) == (401, "Unauthorized")
        assert "the token that you logged in by was revoked" in gone["detail"]
        page = await browser.get(f"{offices.second.base}/login")
        assert "was revoked" in page.text
        assert page.fields()["form"]


async def test_a_browser_logs_out_by_its_own_page_alone(offices: Offices) -> None:
    async with offices.browser() as browser, offices.browser() as other:
        await browser.type_token(offices.base, await offices.token())
        await other.log_in(offices.base, "corp")
        kept, logout = browser.cookie, f"{offices.second.base}/logout"
        ours = (await browser.get(f"{offices.base}/login")).fields()
        theirs = (await other.get(f"{offices.base}/login")).fields()
        assert ours["csrf"] == (await browser.who(offices.base))["csrf_token"] != theirs["csrf"]
        for form, headers in (
            ({}, {}), (theirs, {}), ({}, {"X-CSRF-Token": theirs["csrf"]}), (ours, {"Sec-Fetch-Site": "cross-site"}),
            (ours, {"Sec-Fetch-Site": "same-site"}), (ours, {"Sec-Fetch-Site": "", "Origin": "null"}),
        ):  # fmt: skip
            assert (await browser.post(logout, form, **headers)).status == 403
        assert (await browser.get(logout)).status == 405
        assert (await browser.who(offices.base))["status"] == 200
        left = await browser.post(logout, ours)
        assert (left.status, left.to, browser.cookie) == (303, "/login", "")
        shown = await browser.get(f"{offices.second.base}/session", Cookie=f"{SESSION}={kept}")
        assert (shown.status, "you logged out" in shown.text) == (401, True)
        assert (await other.post(logout, {}, **{"X-CSRF-Token": theirs["csrf"]})).status == 303, "as a program does"
        assert (await other.post(logout)).status == 303, "whoever isn't logged in"


async def test_a_token_that_is_none_is_told_why_and_never_shown(offices: Offices) -> None:
    token = await offices.token()
    async with offices.browser() as browser:
        for wrong, says in (("", "begin with crt_"), (token[:40], "40 characters"), (offices.corp.token(), "begin")):
            shown = await browser.type_token(offices.base, wrong)
            assert shown.status == 401
            assert says in unescaped(shown.text)
            assert not wrong or wrong not in shown.text
        await offices.tokens.revoke_token((await offices.tokens.get_token("me")).token_id, "ann")
        shown = await browser.type_token(offices.base, token)
        assert "the token 'me' was revoked" in unescaped(shown.text)
        assert "authorization" not in shown.text, "that is what programs are told"
        assert browser.cookie == ""
    assert offices.first.refused == ["login"] * 4
    assert token not in repr(offices.first.told)


async def test_no_other_page_logs_a_browser_in(offices: Offices) -> None:
    """Somebody would work in an account of the attacker's."""
    token = await offices.token()
    async with offices.browser() as browser, offices.browser() as attacker:
        theirs = (await attacker.get(f"{offices.base}/login")).fields()
        mine = (await browser.get(f"{offices.base}/login")).fields()
        shown = await browser.post(f"{offices.base}/login", theirs | {"token": token})
        assert (shown.status, "too old" in shown.text) == (403, True)
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "", "Origin": "https://evil.example"}):
            shown = await browser.post(f"{offices.base}/login", mine | {"token": token}, **headers)
            assert (shown.status, "a page of another site" in shown.text) == (403, True)
        browser.forget(LOGIN)
        assert (await browser.post(f"{offices.base}/login", mine | {"token": token})).status == 403
        assert browser.cookie == ""


EVIL = ("https://evil.example", "//evil.example", "/\\evil.example", "/%0d%0aX:y", "javascript:x", "/a\tb", "x", "/ x")


async def test_nobody_is_led_elsewhere(offices: Offices) -> None:
    token = await offices.token()
    for evil in EVIL:
        wanted = f"?{urlencode({'next': evil})}"
        async with offices.browser() as browser, offices.browser() as other:
            led = {
                (await browser.log_in(offices.base, "corp", wanted)).to,
                (await other.type_token(offices.base, token, f"/login{wanted}")).to,
            }
            assert led == {evil if evil == "/%0d%0aX:y" else "/login"}, "a path of ours, as it was written"


async def test_headers_of_pages(offices: Offices) -> None:
    async with offices.browser() as browser:
        pages = [
            await browser.get(f"{offices.base}/login"),
            await browser.get(f"{offices.base}/login/callback/corp"),
            await browser.get(f"{offices.base}/login/nobody"),
            await browser.type_token(offices.base, await offices.token()),
            await browser.get(f"{offices.base}/session"),
        ]
        for page in pages:
            policy = page.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert page.headers["Cache-Control"] == "no-store"
            assert page.headers["Referrer-Policy"] == "same-origin"
            assert page.headers["X-Content-Type-Options"] == "nosniff"
            assert "<script" not in page.text
            assert "style=" not in page.text
        style = await browser.get(f"{offices.base}/login.css")
        assert style.headers["Content-Type"].startswith("text/css")


async def test_names_are_shown_and_never_obeyed(offices: Offices) -> None:
    offices.corp.claims = {"sub": '<img src=x onerror="alert(1)">&amp;', "groups": ["sre"]}
    async with offices.browser() as browser:
        await browser.log_in(offices.base, "corp")
        page = await browser.get(f"{offices.base}/login")
        assert "<img" not in page.text
        assert 'corp/<img src=x onerror="alert(1)">&amp;' in unescaped(page.text)
        said = urlencode({"state": "x", "error": "<script>alert(1)</script>"})
        assert "<script" not in (await browser.get(f"{offices.base}/login/callback/corp?{said}")).text
        back = await browser.come_back(offices.base, "corp")
        said = urlencode({"state": back_state(back), "error_description": "<script>alert(1)</script>"})
        assert "&lt;script&gt;" in (await browser.get(f"{offices.base}/login/callback/corp?{said}")).text


async def test_nobody_tries_too_often(offices: Offices) -> None:
    async with offices.browser() as browser:
        for _ in range(ATTEMPTS):
            assert (await browser.get(f"{offices.base}/login/corp")).status == 303
        shown = await browser.get(f"{offices.base}/login/corp")
        assert (shown.status, shown.headers["Retry-After"]) == (429, "60")
        page = await browser.get(f"{offices.base}/login")
        assert page.status == 200
        assert (await browser.post(f"{offices.base}/login", page.fields() | {"token": "x"})).status == 429


async def test_what_is_no_form_is_refused(offices: Offices) -> None:
    async with offices.browser() as browser:
        page = await browser.get(f"{offices.base}/login")
        large = await browser.post(f"{offices.base}/login", {"x": "y" * 20_000})
        assert (large.status, "the 16384 bytes that /login takes; send less" in large.text) == (413, True)
        many = await browser.post(f"{offices.base}/login", {str(n): "" for n in range(99)})
        assert (many.status, "send it as the page of it" in many.text) == (400, True)
        assert (await browser.post(f"{offices.base}/login", page.fields(), Content_Type="text/plain")).status == 403


async def test_a_form_that_dribbles_is_given_up(offices: Offices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "FORM_S", 0.05)
    address = urlsplit(offices.base)
    tls = ssl.create_default_context(cafile=offices.pki.ca)
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port, ssl=tls)
    head = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    writer.write(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=".encode())
    async with asyncio.timeout(TIMEOUT_S):
        said = (await reader.readuntil(b"}")).decode()
    assert said.startswith("HTTP/1.1 408 ")
    for words in ("send the request once more", '"code": "DEADLINE_EXCEEDED"', '"reason": "TOO_SLOW"'):
        assert words in said
    writer.close()


def back_state(url: str) -> str:
    return parse_qs(urlsplit(url).query)["state"][0]


def unescaped(page: str) -> str:
    return unescape(page)
