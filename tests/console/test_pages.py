"""Each page as each role: what it shows, what it lets one do, and that everybody can read it."""

from collections.abc import Callable
from typing import Any, Final, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.conftest import LAPTOP, Visitor

# Path of a page, and what stands on it once it is there.
PAGES: Final = {
    "/": "Latest runs", "/jobs": "shop.sells", "/jobs/new": "takes no payload",
    "/jobs/shop.fails": "History", "/executions": "shop.sells",
    "/upcoming": "shop.sells", "/cluster": "Runners", "/timeline": "shop.fails", "/checks": "accounted for",
    "/deployments": "shop@", "/limits": "Nothing is limited",
    "/webhooks": "Nobody is told", "/templates": "There is no template", "/access": "Runner grants",
    "/actions": "deploy", "/audit": "What", "/wall": "next",
}  # fmt: skip
# Files that were sent for this page: those that the browser had have no size.
ASKED_FOR: Final = """performance.getEntriesByType("resource")
    .filter((each) => each.name.includes("/console/") && each.transferSize).map((each) => each.name)"""
# WCAG 2.2 AA, which has the contrast of text.
RULES: Final = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS: Final = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}

# By night nothing but colours is another.
SCHEMES: Final[dict[Literal["light", "dark"], dict[str, Any]]] = {"light": RULES, "dark": COLOURS}


def settled(page: Page, text: str) -> None:
    expect(page.locator("body")).to_contain_text(text)
    expect(page.locator("body")).not_to_contain_text("Loading …")


# What reaches beyond 320 px and stands in nothing that scrolls.
BEYOND: Final = """[...document.querySelectorAll("#main *")]
    .filter((each) => each.getBoundingClientRect().right > 320 && !each.closest(".scroll, .output, .hidden"))
    .map((each) => each.outerHTML.slice(0, 200))"""


def test_every_page_is_there_and_everybody_can_read_it(visit: Callable[..., Visitor]) -> None:
    """By day and by night; and a phone scrolls one way only."""
    visitor = visit()
    page = visitor.page()
    for path, text in PAGES.items():
        page.set_viewport_size(LAPTOP)
        page.goto(visitor.base + path)
        settled(page, text)
        for scheme, rules in SCHEMES.items():
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page, options=rules)
            assert found.violations_count == 0, f"{path}, {scheme}: {found.generate_report()}"
        page.set_viewport_size({"width": 320, "height": 640})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{path} is {wide} wide, by {page.evaluate(BEYOND)}"


@pytest.mark.parametrize("width", [320, 1280])
def test_all_pages_are_in_a_menu_and_the_current_one_beside_it(visit: Callable[..., Visitor], width: int) -> None:
    page = visit().page("/audit")
    page.set_viewport_size({"width": width, "height": 800})
    pages = page.get_by_role("navigation", name="Pages")
    menu = pages.get_by_text("All pages")
    expect(pages.get_by_role("link", name="Audit log")).to_have_attribute("aria-current", "page")
    expect(pages.get_by_role("link", name="Webhooks")).to_have_count(0)
    menu.press("Enter")
    expect(pages.get_by_role("link", name="Webhooks")).to_be_visible()
    page.keyboard.press("Escape")
    expect(pages.get_by_role("link", name="Webhooks")).to_have_count(0)
    expect(menu).to_be_focused()
    menu.click()
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
    page.mouse.click(width / 2, 780)  # beside it
    expect(pages.get_by_role("link", name="Webhooks")).to_have_count(0)
    menu.click()
    pages.get_by_role("link", name="Templates").click()
    page.wait_for_url("**/templates")
    expect(pages.get_by_role("link", name="Webhooks")).to_have_count(0)


def test_a_browser_asks_for_scripts_and_styles_once(visit: Callable[..., Visitor]) -> None:
    """Thirty files are thirty questions at each page, over a line from afar. Another page brings its own."""
    visitor = visit()
    page = visitor.page()
    settled(page, PAGES["/"])
    first = page.evaluate(ASKED_FOR)
    assert len(first) > 20, first
    page.goto(visitor.base + "/jobs")
    settled(page, PAGES["/jobs"])
    more = page.evaluate(ASKED_FOR)
    assert not {*first} & {*more}
    assert any(name.endswith("/pages/jobs.mjs") for name in more)
    page.goto(visitor.base)
    settled(page, PAGES["/"])
    assert page.evaluate(ASKED_FOR) == []


def test_without_a_session_one_is_sent_to_log_in_and_back(visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    visitor.context.clear_cookies()
    page = visitor.page("/jobs?q=module:shop")
    page.wait_for_url("**/login?next=*")
    assert "%2Fjobs%3Fq%3Dmodule%3Ashop" in page.url
