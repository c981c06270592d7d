"""Links that log a browser in once: the way in by a click, and each way in which it must not work."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cronring.controller.api.cookies import LOGIN, SESSION
from cronring.controller.api.login_links import LASTS_MS, LINK_PATH
from cronring.controller.api.login_state import local_path
from tests.integration.identity.web import Offices, open_offices

USED = "this link was used already; `cronring console` makes another"


@pytest.fixture
async def offices(database_url: str, tmp_path: Path) -> AsyncIterator[Offices]:
    async with open_offices(database_url, tmp_path) as opened:
        yield opened


async def made(offices: Offices, token: str, base: str = "") -> str:
    """A link's path."""
    async with offices.browser() as terminal:
        answer = await terminal.post(f"{base or offices.base}{LINK_PATH}", authorization=f"Bearer {token}")
    assert answer.status == 200, answer.text
    assert answer.text.startswith(f'{{"path": "{LINK_PATH}/')
    return answer.text.split('"')[3]


async def test_a_click_logs_in_at_whichever_controller(offices: Offices) -> None:
    path = await made(offices, await offices.token("ci"))
    assert len(path) < 54, "with http://127.0.0.1:7480 it is one line of a terminal"
    async with offices.browser() as browser:
        entered = await browser.get(f"{offices.second.base}{path}?next=/jobs?q=status:failing", sec_fetch_site="none")
        assert (entered.status, entered.to) == (303, "/jobs?q=status:failing")
        for base in (offices.base, offices.second.base):
            who = await browser.who(base)
            assert (who["kind"], who["name"]) == ("token", "ci")
            assert who["grants"] == [{"role": "admin", "namespace": "*"}]
        again = await browser.get(f"{offices.base}{path}")
        assert (again.status, again.to) == (303, "/"), "who is in already clicks twice"
    async with offices.browser() as other:
        refused = await other.get(f"{offices.base}{path}")
        assert refused.status == 400
        assert USED in refused.text
        assert other.cookie == ""
    assert offices.first.refused == ["login"]


async def test_of_many_at_once_one_gets_in(offices: Offices) -> None:
    path = await made(offices, await offices.token())

    async def tries(base: str) -> int:
        async with offices.browser() as browser:
            return (await browser.get(f"{base}{path}")).status

    bases = [offices.base, offices.second.base] * 4
    assert sorted(await asyncio.gather(*map(tries, bases))) == [303, *[400] * 7]


async def test_the_session_cant_be_told_from_the_link_and_ends_with_its_token(offices: Offices) -> None:
    token = await offices.token("ci")
    first, second = await made(offices, token), await made(offices, token)
    assert first != second
    async with offices.browser() as browser:
        await browser.get(offices.base + first)
        assert browser.cookie.startswith("crs_")
        assert first.rpartition("/")[2] not in browser.cookie
        await offices.tokens.revoke_token((await offices.tokens.get_token("ci")).token_id, "me")
        refused = await browser.get(offices.base + second)
        assert (refused.status, "was revoked" in refused.text) == (400, True)
        await offices.token("ci")
        refused = await browser.get(offices.base + second)
        assert (refused.status, "was replaced since" in refused.text) == (400, True)


async def test_a_link_lasts_ten_minutes(offices: Offices) -> None:
    path = await made(offices, await offices.token())
    offices.clock.later_us = LASTS_MS * 1_000
    async with offices.browser() as browser:
        refused = await browser.get(offices.base + path)
        assert (refused.status, "more than ten minutes ago" in refused.text) == (400, True)
    offices.clock.later_us = 0


async def test_a_page_of_another_site_uses_no_link(offices: Offices) -> None:
    """It could log somebody in as another, who then reads what is done."""
    path = await made(offices, await offices.token())
    async with offices.browser() as browser:
        for site in ("cross-site", "same-site"):
            refused = await browser.get(offices.base + path, sec_fetch_site=site)
            assert (refused.status, browser.cookie) == (403, "")
        assert (await browser.get(offices.base + path)).status == 303, "and it is as good as before"


async def test_a_look_ahead_uses_no_link(offices: Offices) -> None:
    path = await made(offices, await offices.token())
    async with offices.browser() as browser:
        assert (await browser.head(offices.base + path)).status == 405
        assert (await browser.get(offices.base + path)).status == 303


async def test_who_gets_no_link(offices: Offices) -> None:
    """A session makes none, nor does an issuer's token: a session may last longer than that."""
    url = f"{offices.base}{LINK_PATH}"
    async with offices.browser() as browser:
        assert (await browser.post(url)).status == 401
        assert (await browser.post(url, authorization="Bearer crt_nonsense")).status == 401
        await browser.type_token(offices.base, await offices.token())
        csrf = (await browser.who(offices.base))["csrf_token"]
        refused = await browser.post(url, X_CSRF_Token=csrf)
        assert (refused.status, "a token of `cronring token create`" in refused.text) == (403, True)
        jwt = offices.corp.token()
        refused = await browser.post(url, authorization=f"Bearer {jwt}")
        assert refused.status == 403


@pytest.mark.parametrize("code", ["", "x", "a" * 40, "../session", "%00", "é" * 20])
async def test_what_is_no_link(offices: Offices, code: str) -> None:
    async with offices.browser() as browser:
        refused = await browser.get(f"{offices.base}{LINK_PATH}/{code}")
        assert refused.status in {400, 401, 404}
        assert browser.cookie == ""
        assert not [each for each in refused.cookies() if SESSION in each and LOGIN not in each]


def test_a_link_leads_to_our_own_pages_alone() -> None:
    assert [local_path(each) for each in ("//evil.example", "https://evil.example", "/\\evil")] == ["/login"] * 3
