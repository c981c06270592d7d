"""The cluster as it was: who held a lease, whose a job was, and what happened, after a controller was killed."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.console.test_pages import RULES
from tests.support.secured import SecuredCluster

SOON_MS: Final = 60_000


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_death_is_seen_live_and_stays_in_the_past(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/cluster")
    expect(page.locator(".ring .big")).to_have_text("3", timeout=SOON_MS)
    page.evaluate("window.stays = true")  # gone if the page were loaded anew
    arcs = page.locator(".ring circle.arc")
    expect(arcs).to_have_count(6)
    before = now()
    cluster.controllers[2].kill()
    expect(page.locator(".ring .big")).to_have_text("2", timeout=SOON_MS)
    gone = page.locator(".ring tr").filter(has_text="0.0 %").first
    expect(gone).to_contain_text("✕")
    for share in page.locator(".ring circle.arc.dead").all():
        expect(share).to_have_attribute("stroke-dasharray", re.compile("^0 "))
    assert page.evaluate("window.stays") is True
    the_past_is_there(page, before)
    what_happened_is_told(page)


def the_past_is_there(page: Page, before: str) -> None:
    page.goto(page.url.split("/cluster")[0] + f"/cluster?at={before}")
    expect(page.locator(".past")).to_contain_text("As it was at")
    expect(page.locator("body")).to_have_class(re.compile("historic"))
    expect(page.locator(".ring .big")).to_have_text("3", timeout=SOON_MS)
    ends = page.locator("section:has(#controllers) td[data-name='And then']")
    expect(ends.filter(has_text="lost")).to_have_count(1, timeout=SOON_MS)
    expect(ends.filter(has_text="still there")).to_have_count(2)
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator("body")).not_to_have_class(re.compile("historic"))
    expect(page.locator(".ring .big")).to_have_text("2")


def what_happened_is_told(page: Page) -> None:
    page.goto(page.url.split("/cluster")[0] + "/timeline")
    lost = page.locator(".timeline li").filter(has_text="controller lost")
    expect(lost).to_have_count(1, timeout=SOON_MS)
    expect(lost).to_contain_text("was lost: its lease ran out.")
    expect(page.locator(".timeline li").filter(has_text="shop.fails")).not_to_have_count(0)


def test_a_time_that_has_just_been_is_asked_for_once(visit: Callable[..., Visitor]) -> None:
    """What happened around it goes on for another ten minutes: that end must not move with each answer."""
    page = visit().page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "until=" in request.url else None)
    page.goto(f"{page.url}cluster?at={now()}")
    expect(page.locator("section:has(#around) .timeline li").first).to_be_visible(timeout=SOON_MS)
    page.wait_for_timeout(3_000)
    assert 1 <= len(asked) <= 3, asked
    page.locator("section:has(#around) .timeline a").first.click()
    page.wait_for_url(re.compile(r"/cluster\?at="))
    expect(page.locator(".past")).to_contain_text("As it was at")
    page.goto(page.url.split("/cluster")[0] + "/?at=00:00:01")
    expect(page.locator(".past")).to_contain_text("00:00:01")


def test_a_job_is_shown_as_it_was(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/jobs/shop.sells")
    expect(page.locator("section:has(#history) tbody tr").nth(4)).to_be_visible(timeout=SOON_MS)
    ran = cluster.cli("executions", "list", "--job", "shop.sells", "--limit", "5")
    at, last = ran[2]["tick"], ran[0]["tick"]
    page.goto(f"{page.url}?at={at}")
    expect(page.locator(".past")).to_contain_text("As it was at")
    expect(page.locator("body")).to_have_class(re.compile("historic"))
    ticks = page.locator("section:has(#history) td[data-name='Tick'] time")
    expect(ticks.first).to_have_attribute("datetime", at)
    assert last not in [tick.get_attribute("datetime") for tick in ticks.all()]
    expect(page.get_by_role("region", name="Who ran it")).to_contain_text(re.compile(r"Firstc\d-.+Backupc\d-"))
    expect(page.get_by_role("region", name="Why?")).to_contain_text(f"--at {at}")
    expect(page.get_by_role("region", name="What the books have").locator(".asked")).to_be_visible()
    expect(page.get_by_role("button", name="Run now")).to_have_count(0)
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
    page.goto(page.url.split("/jobs")[0] + f"/timeline?at={at}")
    expect(page.locator("body")).to_have_class(re.compile("historic"))
    told = page.locator(".timeline time")
    expect(told.first).to_be_visible()
    assert max(each.get_attribute("datetime") or "" for each in told.all()) <= at.replace("Z", ".999Z")
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator("body")).not_to_have_class(re.compile("historic"))


def test_the_slider_goes_to_the_past_by_the_keyboard(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/cluster")
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "now")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/cluster?at=*")
    expect(page.locator(".past")).to_contain_text("As it was at")
    page.keyboard.press("End")
    page.wait_for_url(re.compile("/cluster$"))
    expect(page.locator(".past")).to_have_count(0)


def test_a_time_that_is_none_is_said_so(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/?at=soon")
    expect(page.locator(".past")).to_contain_text("soon is no instant that has been")
    page.goto(page.url.split("/?")[0] + "/jobs?at=2026-01-01T00:00:00Z")
    expect(page.locator(".past")).to_contain_text("This page only shows now")


def test_before_anything_is_known_the_page_says_so(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/cluster?at=2020-01-01T00:00:00Z")
    expect(page.locator("main")).to_contain_text("No controller held a lease", timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text("Members are known since")


def test_the_timeline_is_copied_as_markdown(visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.page("/timeline")
    expect(page.locator(".timeline li").first).to_be_visible(timeout=SOON_MS)
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.get_by_text("copied", exact=True)).to_be_visible()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert all(re.match(r"- \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ? \*\*", line) for line in lines)
    assert lines == sorted(lines, key=lambda line: line[:21]), "as a report is read"
    assert any("controller joined" in line for line in lines)
