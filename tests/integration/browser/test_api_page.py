"""The page to try REST, `/api/`, in Chromium: it is made without an error, and a request from it does what it says."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Locator, expect

from tests.integration.api.conftest import CALLERS, Scene, scene
from tests.support.browsing import Browsed, browsing
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import Rested, rested
from tests.support.waiting import TIMEOUT_S

__all__ = ["scene"]
FOUND_MS = TIMEOUT_S * 1_000


@pytest.fixture
async def rest(scene: Scene) -> AsyncIterator[Rested]:
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as found:
        yield found


@pytest.fixture
async def browsed(rest: Rested) -> AsyncIterator[Browsed]:
    """At the page, made."""
    async with browsing() as found:
        await found.page.goto(f"{rest.url}/api/")
        await expect(found.page.locator("#who")).not_to_be_empty(timeout=FOUND_MS)
        yield found


async def entry(browsed: Browsed, title: str) -> Locator:
    """The entry of this method and path, opened."""
    found = browsed.page.locator("details").filter(has=browsed.page.get_by_text(title, exact=True))
    await found.locator("summary").click()
    return found


async def sent(opened: Locator) -> tuple[int, Any]:
    """Status and body of what the page shows of an answer."""
    await opened.get_by_role("button", name="Send").click()
    output = opened.locator("pre").last
    await expect(output).to_contain_text("content-type", timeout=FOUND_MS)
    head, _, body = (await output.inner_text()).partition("\n\n")
    return int(head.split()[0]), json.loads(body)


async def test_every_method_is_there_and_nothing_is_wrong(browsed: Browsed, rest: Rested) -> None:
    for path, status in (("/session", 401), ("/session?optional", 204)):  # a browser logs an error for each 401
        async with rest.session.get(path) as answer:
            assert answer.status == status
    async with rest.session.get("/api/openapi.json") as answer:
        paths = (await answer.json())["paths"]
    titles = await browsed.page.locator("summary b").all_inner_texts()
    assert sorted(titles) == sorted(f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs)
    await expect(browsed.page.locator("#who")).to_have_text("Nobody is logged in: give a token, or log in at /login.")
    for details in await browsed.page.locator("details").all():
        await details.evaluate("each => { each.open = true; }")
    await expect(browsed.page.get_by_role("button", name="Send")).to_have_count(len(titles), timeout=FOUND_MS)
    assert browsed.problems == []


async def test_what_is_looked_for_is_all_that_is_shown(browsed: Browsed) -> None:
    await browsed.page.locator("#find").fill("get suggest")
    shown = browsed.page.locator("summary:visible b")
    await expect(shown).to_have_text(["GET /api/v1/cron/filters:suggest"], timeout=FOUND_MS)
    assert browsed.problems == []


async def test_a_request_from_the_page_works_with_a_token(browsed: Browsed) -> None:
    await browsed.page.locator("#token").fill("test-operator")
    jobs = await entry(browsed, "GET /api/v1/cron/jobs")
    await jobs.locator("input[name='filter.text']").fill("paused module:xm")
    await jobs.locator("input[name=total]").fill("true")
    status, found = await sent(jobs)
    assert (status, [each["key"] for each in found["jobs"]], found["total"]["count"]) == (200, ["billing/xm.xc"], "1")
    paused = await entry(browsed, "POST /api/v1/cron/jobs/{key}/pause")
    await paused.locator("input[name=key]").fill("billing/xm.xa")
    await paused.locator("textarea").fill('{"note": "<img src=x onerror=alert(1)> by a page"}')
    status, job = await sent(paused)
    assert (status, job["status"], job["paused"]["by"]) == (200, "paused", "token:operator")
    assert job["paused"]["note"].startswith("<img"), "it is shown as text"
    triggered = await entry(browsed, "POST /api/v1/cron/jobs/{key}/trigger")
    await triggered.locator("input[name=key]").fill("billing/xm.xc")
    await triggered.locator("input[name=Idempotency-Key]").fill("by-the-page")
    status, run = await sent(triggered)
    assert (status, await sent(triggered)) == (200, (200, run)), "by its key it is done once"
    assert browsed.problems == []


async def test_who_has_no_token_is_told_what_to_do(browsed: Browsed) -> None:
    jobs = await entry(browsed, "GET /api/v1/cron/jobs")
    status, problem = await sent(jobs)
    assert (status, problem["reason"]) == (401, "UNAUTHENTICATED")
    # Chromium itself notes each answer of 400 and more; nothing else is wrong.
    assert all("the server responded with a status of 401" in each for each in browsed.problems)
