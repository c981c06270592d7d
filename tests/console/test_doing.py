"""Actions by their dialogs, the keyboard, and what strangers wrote."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.support.secured import SecuredCluster
from tests.support.spent_keys import keys_spent


def do(page: Page, button: str, **fields: str) -> None:
    """Open the dialog of a button, fill it in, and do it."""
    page.get_by_role("button", name=button, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    for label, text in fields.items():
        dialog.get_by_label(re.compile(label)).fill(text)
    dialog.locator("button.act").click()
    expect(dialog).to_have_count(0)


def test_a_job_is_paused_and_resumed_with_a_reason(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/jobs/shop.sells")
    do(page, "Pause", Why="the shop is closed")
    expect(page.locator(".note")).to_contain_text("the shop is closed")
    expect(page.locator("h1")).to_contain_text("paused")
    job = cluster.cli("jobs", "get", "shop.sells")
    assert (job["status"], job["paused"]["note"]) == ("paused", "the shop is closed")
    assert job["paused"]["by"] == "token:operator"
    do(page, "Resume")
    expect(page.locator("h1")).not_to_contain_text("paused")
    page.locator(".gaps li", has_text="paused").first.get_by_role("button").click()
    expect(page.locator(".sentences")).to_contain_text("paused")


def test_who_has_no_key_left_changes_things_without(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/jobs/shop.sells")
    do(page, "Pause", Why="by a key")
    with keys_spent(cluster.database_url):
        do(page, "Resume")
        expect(page.locator("h1")).not_to_contain_text("paused")
    assert cluster.cli("jobs", "get", "shop.sells")["paused"] is None


def test_a_pause_may_end_by_itself(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/jobs/shop.lasts")
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Until")).fill("2099-01-01T08:00")
    expect(dialog).to_contain_text("cronring jobs pause shop.lasts --until 2099-01-01T")
    dialog.locator("button.act").click()
    expect(page.locator(".note")).to_contain_text("until")
    assert cluster.cli("jobs", "get", "shop.lasts")["paused"]["until"].startswith("2099-01-01T")
    for button in ("Run now", "Backfill", "Resume"):
        page.get_by_role("button", name=button, exact=True).click()
        expect(dialog).to_contain_text("It is paused by token:operator")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    do(page, "Resume")


def test_a_job_is_cancelled_and_restored(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    """Meanwhile nothing is offered that would be refused."""
    page = visit("operator").page("/jobs/shop.lasts")
    do(page, "Cancel job", Why="they asked us to stop")
    expect(page.locator(".note")).to_contain_text("they asked us to stop")
    assert cluster.cli("jobs", "get", "shop.lasts")["cancelled"]["note"] == "they asked us to stop"
    expect(page.get_by_role("button", name="Run now", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    do(page, "Restore")
    expect(page.get_by_role("button", name="Run now")).to_be_visible()
    assert cluster.cli("jobs", "get", "shop.lasts")["cancelled"] is None


def test_a_run_is_followed_and_cancelled(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page("/jobs/shop.lasts")
    do(page, "Run now", Why="to see it")
    page.wait_for_url(re.compile(r"/executions/\d+"))
    expect(page.locator(".output")).to_contain_text("part 2")
    do(page, "Cancel", Why="seen")
    expect(page.locator("h1")).to_contain_text("cancelled")
    expect(page.locator("body")).to_contain_text("token:operator: seen")


def test_what_strangers_wrote_stays_text(visit: Callable[..., Visitor]) -> None:
    """Its error and its output are markup, sequences for a terminal, and text that turns the direction round."""
    page = visit().page("/jobs/shop.prints")
    page.on("dialog", lambda dialog: dialog.dismiss())
    do(page, "Run now")
    page.wait_for_url(re.compile(r"/executions/\d+"))
    output = page.locator(".output").first
    expect(output).to_contain_text("the last line")
    text = output.inner_text()
    assert "<script>alert(2)</script>" in text
    assert "\x1b" not in text
    assert "http://x/" not in text, "a link of a terminal is hidden by what it looks like"
    assert "⟨U+202E⟩gnp.exe" in text
    expect(output.locator(".ansi1")).to_have_text("red")
    expect(output.locator(".ansi2.bold")).to_have_text("green and bold")
    page.goto(page.url.split("/executions")[0] + "/jobs/shop.fails")
    expect(page.locator("table.rows")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("img, main script").count() == 0


def test_a_filter_is_judged_by_the_api_and_the_palette_knows_jobs(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page("/jobs?q=verb:prints")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.locator("#search").fill("colour:red")
    expect(page.locator("#filter-says")).to_contain_text("colour")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("shop.pri")
    page.get_by_role("option", name="shop.prints").click()
    page.wait_for_url(re.compile("/jobs/shop.prints"))
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("rint")
    expect(page.get_by_role("option", name="shop.prints")).to_be_visible()
    page.get_by_role("dialog").get_by_role("combobox").fill("no such thing")
    expect(page.get_by_role("dialog")).to_contain_text("Nothing is called so")
    page.get_by_role("dialog").get_by_role("combobox").fill("#1")
    page.get_by_role("option", name="Run 1").click()
    page.wait_for_url(re.compile("/executions/1$"))


def test_the_keyboard_alone_finds_a_job_and_pauses_it(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page("/")
    expect(page.locator("body")).to_contain_text("Latest runs")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("module:shop")
    page.wait_for_url(re.compile("q=module"))
    expect(page.locator('tr[data-row="shop.fails"]')).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/jobs/shop.fails"))
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("dialog")).to_contain_text("cronring jobs pause shop.fails")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next, previous row")
