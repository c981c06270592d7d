"""A controller's death moves the page to another one, with all that its address says."""

import re
import signal
from collections.abc import Callable

from playwright.sync_api import expect

from tests.console.conftest import Visitor
from tests.support.secured import SecuredCluster

SOON_MS = 40_000


def test_a_page_goes_on_at_another_controller(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    """What it had stays to be seen, and is grey, until it has moved. Nobody logs in again, and no letter is lost."""
    visitor = visit(at=1)
    page = visitor.page("/jobs?q=module:shop&sort=failures")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    page.wait_for_function("window.performance.getEntriesByName(location.origin + '/api/v1/cron/cluster').length > 0")
    cluster.controllers[1].kill()
    expect(page.locator(".verdict")).to_contain_text("As it was", ignore_case=True, timeout=SOON_MS)
    assert page.locator("tr[data-row]").count() > 0
    elsewhere = re.compile(
        rf"https://(?!{re.escape(cluster.controllers[1].http)})127\.0\.0\.1:\d+/jobs\?q=module:shop&"
    )
    expect(page).to_have_url(elsewhere, timeout=SOON_MS)
    assert page.url.endswith("/jobs?q=module:shop&sort=failures")
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    expect(page.locator("#search")).to_have_value("module:shop")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    cluster.restart_controller(cluster.controllers[1])


def test_who_fills_in_a_form_is_left_alone(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    visitor = visit("operator", at=2)
    page = visitor.page("/jobs/shop.sells")
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    page.get_by_role("button", name="Pause", exact=True).first.click()
    page.get_by_role("dialog").get_by_label(re.compile("Why")).fill("half a reason")
    cluster.controllers[2].send(signal.SIGSTOP)
    try:
        expect(page.locator(".signal")).to_contain_text("no signal", timeout=SOON_MS)
        page.wait_for_timeout(8_000)  # longer than it takes to move
        expect(page.get_by_role("dialog").get_by_label(re.compile("Why"))).to_have_value("half a reason")
        page.keyboard.press("Escape")
        expect(page).not_to_have_url(re.compile(re.escape(visitor.base)), timeout=SOON_MS)
        assert page.url.endswith("/jobs/shop.sells")
    finally:
        cluster.controllers[2].send(signal.SIGCONT)
