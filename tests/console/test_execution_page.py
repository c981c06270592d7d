"""A run's page: output as it comes, searched over colours, attempts side by side, and what may be done."""

import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import TRACES, Visitor
from tests.console.test_doing import do
from tests.support.secured import SecuredCluster

SOON_MS: Final = 60_000


def run_of(page: Page, job: str, outcome: str) -> str:
    """The path of the newest such run."""
    page.goto(f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}/executions?q=job:{job} {outcome}")
    link = page.locator("tr[data-row] td a").first
    expect(link).to_be_visible(timeout=SOON_MS)
    return str(link.get_attribute("href"))


def test_output_is_followed_and_searched(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page("/jobs/shop.lasts")
    do(page, "Run now")
    page.wait_for_url(re.compile(r"/executions/\d+"))
    output = page.locator(".output").first
    expect(output).to_contain_text("part 3", timeout=SOON_MS)
    told = page.locator(".lead").inner_text()
    expect(page.locator(".lead")).not_to_have_text(told)  # its time goes on, also between answers
    page.keyboard.press("/")
    page.keyboard.type("PART")
    expect(page.locator("#output").locator("xpath=..")).to_contain_text(re.compile(r"1 of \d+"))
    page.keyboard.press("Enter")
    expect(page.locator("mark.here")).to_have_count(1)
    expect(page.locator("#output").locator("xpath=..")).to_contain_text(re.compile(r"2 of \d+"))
    page.keyboard.press("Shift+Enter")
    page.locator("#search").fill("nowhere")
    expect(page.locator("#output").locator("xpath=..")).to_contain_text("not found")
    do(page, "Cancel", Why="seen enough")
    expect(page.locator(".note")).to_contain_text("Cancelled by token:operator")
    expect(page.locator(".note")).to_contain_text("seen enough")


def test_what_is_found_may_have_several_colours(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page("/jobs/shop.prints")
    do(page, "Run now")
    page.wait_for_url(re.compile(r"/executions/\d+"))
    expect(page.locator(".output").first).to_contain_text("the last line", timeout=SOON_MS)
    page.locator("#search").fill("</script>red")
    expect(page.locator("mark")).to_have_text(["</script>", "red"])
    expect(page.locator("mark.ansi1")).to_have_text("red")


def test_attempts_at_a_tick_stand_side_by_side(visit: Callable[..., Visitor]) -> None:
    """A retry by hand is a further attempt at the same tick."""
    page = visit("operator").page()
    page.goto(page.url.rstrip("/") + run_of(page, "shop.fails_as_well", "failed"))
    expect(page.locator("h1")).to_contain_text("failed")
    expect(page.locator("main")).to_contain_text("nobody listens there")
    expect(page.locator("main")).to_contain_text("Traceback")
    first = page.url
    page.get_by_role("button", name="Retry", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("Why")).fill("once more")
    dialog.locator("button.act").click()
    page.wait_for_function("url => location.href !== url || !document.querySelector('dialog form')", arg=first)
    page.goto(first)
    table = page.locator("section:has(#attempts) table")
    expect(table.locator("thead th")).to_have_count(2, timeout=SOON_MS)
    expect(table).to_contain_text("this one")
    expect(table.get_by_role("row", name=re.compile("Error"))).to_contain_text("nobody listens there")


def test_what_was_used_is_said(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page()
    page.goto(page.url.rstrip("/") + run_of(page, "shop.sells", "completed"))
    expect(page.locator("section:has(#used)")).to_contain_text("Memory")
    expect(page.locator("section:has(#used)")).to_contain_text("% of its time")


def test_its_trace_is_a_link_where_controllers_know_the_place(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer", at=2).page()
    path = run_of(page, "shop.sells", "completed")
    page.goto(page.url.split("/executions")[0] + path)
    link = page.locator("section:has(#about) dl > div:has(dt:text-is('Trace')) a")
    expect(link).to_have_text(re.compile("^[0-9a-f]{32}$"))
    trace = link.inner_text()
    expect(link).to_have_attribute("href", TRACES.replace("{trace_id}", trace))
    expect(link).to_have_attribute("rel", "noopener")
    elsewhere = visit("viewer").page(path).locator("section:has(#about) dl > div:has(dt:text-is('Trace'))")
    expect(elsewhere.get_by_role("button", name=f"Copy {trace}")).to_be_visible()
    expect(elsewhere.locator("a")).to_have_count(0)
    for each in (page, elsewhere.page):
        each.set_viewport_size({"width": 320, "height": 640})
        assert each.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("role", ["viewer", "outputs-viewer"])
def test_output_and_payload_are_shown_by_role(
    visit: Callable[..., Visitor], cluster: SecuredCluster, role: str
) -> None:
    page = visit(role).page()
    page.goto(page.url.rstrip("/") + run_of(page, "shop.fails_as_well", "failed"))
    expect(page.locator("h1")).to_contain_text("failed")
    if role == "viewer":
        expect(page.locator("main")).to_contain_text("Your role doesn't show what runs print")
        expect(page.locator("main")).to_contain_text("Your role doesn't show payloads")
        assert page.get_by_text("nobody listens there").count() == 0
    else:
        expect(page.locator("section:has(#output)")).to_contain_text("It has printed nothing")
        expect(page.locator(".problem")).to_contain_text("nobody listens there")
    assert page.get_by_role("button", name=re.compile("^(Cancel|Retry)")).count() == 0
