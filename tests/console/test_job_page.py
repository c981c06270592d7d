"""The page of a job: when it runs, how it went, who runs it, and what is done there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import SHOP, Visitor, token_of
from tests.console.hosted import until_hosted
from tests.console.test_pages import RULES
from tests.support.databases import run_coroutine
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

SHIPPING = SHOP.with_name("shipping.py")
BERLIN = "shipping.ships"
ABROAD = "shipping.ships:abroad"
SOON_MS = 60_000


@pytest.fixture(scope="module")
def shipping(cluster: SecuredCluster) -> SecuredCluster:
    """With its module hosted, and a job of it that was made by hand."""
    cluster.start_runner(SHIPPING)
    until_hosted(cluster, "shipping")
    payload = '{"name": "ink", "amount": 2, "to": {"city": "Oslo"}}'
    cluster.cli("jobs", "create", BERLIN, "--name", "abroad", "--cron", "0 12 * * *", "--payload", payload)
    return cluster


def panel(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=re.compile(title))


@pytest.mark.usefixtures("shipping")
def test_its_ticks_are_on_both_clocks_and_the_year_says_what_the_clocks_do(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page(f"/jobs/{BERLIN}?year=2027")
    ticks = panel(page, "Next ten ticks")
    expect(ticks.locator("tbody tr")).to_have_count(10)
    expect(ticks).to_contain_text("On its clocks, Europe/Berlin")
    expect(ticks.locator("tbody tr").first).to_contain_text("02:30")
    year = panel(page, "The days of 2027")
    expect(year).to_contain_text("365 ticks on 365 days")
    expect(year).to_contain_text("02:30 does not exist; it runs at 03:00")
    expect(year.locator('td[title^="2027-03-28: 1 tick. 2027-03-28, 1 hour forward"]')).to_have_count(1)
    year.get_by_role("button", name="2028").click()
    expect(panel(page, "The days of 2028")).to_contain_text("366 ticks on 366 days")
    assert "year=2028" in page.url


def test_a_gap_of_the_books_is_named_and_says_why(visit: Callable[..., Visitor], shipping: SecuredCluster) -> None:
    """The page is open while the job is paused, and its books grow in front of the reader."""
    shipping.cli("jobs", "pause", "shop.fails", "--note", "the supplier is away")
    page = visit("viewer").page("/jobs/shop.fails")
    books = panel(page, "What the books have")
    gap = books.locator(".gaps li", has_text="paused").first
    expect(gap).to_be_visible(timeout=SOON_MS)
    shipping.cli("jobs", "resume", "shop.fails")
    gap.get_by_role("button").click()
    expect(page.locator(".sentences")).to_contain_text("paused")
    assert "why=" in page.url
    expect(books.locator(".asked")).to_have_count(1)
    books.get_by_role("button", name="Zoom out").click()
    expect(books.get_by_role("combobox")).to_have_value("an hour")


def test_days_are_charts_with_a_table_beside_them(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page("/jobs/shop.sells")
    days = panel(page, "Day by day")
    expect(days.get_by_role("img", name=re.compile("How long runs took. On .* 99 of 100 within"))).to_be_visible()
    expect(days.get_by_role("img", name=re.compile("How late they began"))).to_be_visible()
    days.get_by_text("As a table").click()
    expect(days.locator("tbody tr").first).to_contain_text("run")
    days.locator(".day").last.click()
    assert "span=a+day" in page.url


@pytest.mark.parametrize("role", ["viewer", "outputs-viewer"])
def test_a_payload_that_was_changed_is_shown_by_role(
    visit: Callable[..., Visitor], shipping: SecuredCluster, role: str
) -> None:
    """On the page, and by the command line."""
    key = f"{BERLIN}:{role}"
    made = ("--cron", "0 12 * * *", "--payload", '{"name": "glue", "amount": 2, "to": {"city": "Oslo"}}')
    shipping.cli("jobs", "create", BERLIN, "--name", role, *made)
    shipping.cli("jobs", "update", key, "--payload", '{"name": "gum", "amount": 2, "to": {"city": "Oslo"}}')
    sees = role == "outputs-viewer"
    told = panel(visit(role).page(f"/jobs/{key}"), "Who did what to it").locator("details")
    expect(told).to_contain_text('"gum"' if sees else "bytes; its text is for roles that see payloads")
    said = shipping.ask("jobs", "actions", key, token=token_of(shipping, role))
    assert (said.returncode, "sha256" in said.stdout) == (0, not sees), said.stderr
    listed = shipping.ask("jobs", "actions", key, "-o", "json", token=token_of(shipping, role)).stdout
    for text in (told.text_content() or "", said.stdout, listed):
        assert ("glue" in text, "gum" in text) == (sees, sees)


def test_of_jobs_that_were_changed_at_once_it_says_that_no_text_is_kept(
    visit: Callable[..., Visitor], shipping: SecuredCluster, tmp_path: Path
) -> None:
    file = tmp_path / "both.yaml"
    for thing in ("glue", "gum"):
        payload = f"{{name: {thing}, amount: 2, to: {{city: Oslo}}}}"
        jobs = [f"  - {{verb: {BERLIN}, name: {name}, cron: '0 9 * * *', payload: {payload}}}" for name in ("x", "y")]
        file.write_text("\n".join(["set: both", "jobs:", *jobs, ""]))
        shipping.cli("apply", str(file))
    told = panel(visit("operator").page(f"/jobs/{BERLIN}:x"), "Who did what to it").locator("details")
    expect(told).to_contain_text("kept only of a job that was changed alone")


@pytest.mark.usefixtures("shipping")
def test_a_payload_is_filled_in_as_a_form_and_a_wrong_field_is_named(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page(f"/jobs/{BERLIN}")
    page.get_by_role("button", name="Run now").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(re.compile("^name"))).to_have_value("tea")
    dialog.get_by_label(re.compile("^amount")).fill("many")
    dialog.locator("button.act").click()
    expect(dialog.locator(".field", has_text="amount").locator(".fault")).to_contain_text("$.amount")
    dialog.get_by_label(re.compile("^amount")).fill("3")
    dialog.get_by_label(re.compile("^city")).fill("Łódź")
    dialog.get_by_label(re.compile("^speed")).select_option(label="fast")
    dialog.get_by_role("button", name="As JSON").click()
    written = dialog.get_by_label(re.compile("as JSON"))
    expect(written).to_have_value('{"name":"tea","amount":3,"to":{"city":"Łódź"},"speed":"fast"}')
    dialog.locator("button.act").click()
    page.wait_for_url(re.compile(r"/executions/\d+"))
    expect(page.locator(".output").first).to_contain_text("3 x tea to Łódź, fast, gift False")


@pytest.mark.usefixtures("shipping")
def test_a_backfill_is_previewed_and_then_done(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page(f"/jobs/{ABROAD}")
    page.get_by_role("button", name="Backfill").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^From")).fill("2026-03-01T00:00")
    dialog.get_by_label(re.compile("^Until")).fill("2026-03-03T23:00")
    expect(dialog.locator(".preview")).to_contain_text("3 ticks")
    expect(dialog.locator(".preview")).to_contain_text("0 completed already")
    expect(dialog).to_contain_text(f"cronring jobs backfill {ABROAD} --from 2026-03-01T")
    dialog.get_by_label(re.compile("^Until")).fill("2026-02-01T00:00")
    expect(dialog.locator(".problem")).to_contain_text("until_at")
    dialog.get_by_label(re.compile("^Until")).fill("2026-03-03T23:00")
    expect(dialog.locator(".preview")).to_contain_text("3 ticks")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("3 ticks of the span")
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("table.rows tr", has_text="backfill")).to_have_count(3)
    runs = cluster.cli("executions", "list", "--job", ABROAD)
    assert len(runs) == 3
    page.get_by_role("button", name="Backfill").click()
    dialog.get_by_label(re.compile("^From")).fill("2026-03-01T00:00")
    dialog.get_by_label(re.compile("^Until")).fill("2026-03-03T23:00")
    expect(dialog.locator(".preview")).to_contain_text("3 completed already, and would be left out")


def test_a_drill_is_held_at_its_first_owner_and_the_backup_takes_over(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    """Each controller serves a console: by one that isn't the owner, the page says where to begin it."""
    offered = []
    for place in range(3):
        page = visit(at=place).page("/jobs/shop.sells")
        owners = panel(page, "Who runs it")
        expect(owners).to_contain_text("Third")
        expect(owners.get_by_text(re.compile("Drill: let the backup|A drill is begun at"))).to_be_visible(
            timeout=SOON_MS
        )
        button = owners.get_by_role("button", name=re.compile("Drill"))
        if not button.count():
            expect(owners.get_by_role("link", name=re.compile("the console of"))).to_be_visible()
            continue
        offered.append(place)
        button.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("claims nothing for 10 s")
        dialog.locator("button.act").click()
        expect(owners).to_contain_text("takes its ticks")
        run_coroutine(
            wait_until(lambda: "in_drill" in str(cluster.cli("cluster", "members")), "no member is in a drill")
        )
        owners.get_by_role("button", name="End it now").click()
        expect(owners).to_contain_text("The drill is over: you ended it")
    assert len(offered) == 1


@pytest.mark.usefixtures("shipping")
def test_who_may_only_look_finds_nothing_to_do(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page(f"/jobs/{ABROAD}?edit=yes")
    expect(panel(page, "Who did what")).to_contain_text("create")
    expect(panel(page, "Versions")).to_contain_text("active")
    deeds = re.compile("Run now|Pause|Resume|Skip|Backfill|Edit|Delete|Cancel|Drill|Save")
    assert page.get_by_role("button", name=deeds).count() == 0
    assert page.get_by_role("region", name=re.compile("^Edit")).count() == 0


@pytest.mark.usefixtures("shipping")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it_with_its_editor_and_its_dialogs(visit: Callable[..., Visitor], scheme: str) -> None:
    page = visit(scheme=scheme).page(f"/jobs/{ABROAD}?edit=yes")
    expect(panel(page, "The days of")).to_contain_text("ticks on")
    expect(panel(page, "Edit")).to_contain_text("Save")
    panel(page, "Edit").get_by_text("Policies", exact=True).click()
    readable(page)
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("dialog").get_by_label(re.compile("^amount"))).to_be_visible()
    readable(page)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 320, "height": 640})
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def readable(page: Page) -> None:
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
