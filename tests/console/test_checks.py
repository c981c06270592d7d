"""The page that proves it: every tick is accounted for, a hole in the books is found, and the cluster's health."""

from collections.abc import Callable
from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.console.test_pages import RULES
from tests.support.databases import run_coroutine
from tests.support.looking import look
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

SOON_MS: Final = 60_000
# One tick among others, so that no count at an end of the books hides it.
TAKE_ONE: Final = """
WITH runs AS (
    SELECT e.id, e.tick, row_number() OVER (ORDER BY e.tick DESC) AS number
    FROM cronring.cron_executions e JOIN cronring.cron_jobs j ON j.id = e.job_id
    WHERE j.key = 'shop.sells' AND e.outcome = 'completed'
)
DELETE FROM cronring.cron_executions e USING runs r WHERE r.number = 3 AND e.id = r.id AND e.tick = r.tick
RETURNING e.tick"""


def proof(page: Page) -> str:
    said = page.locator("section:has(#proof) .lead")
    expect(said).to_be_visible(timeout=SOON_MS)
    return said.inner_text()


def test_all_is_accounted_for_until_a_run_is_taken_from_the_books(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    page = visit("viewer").page("/jobs/shop.sells")
    page.get_by_role("link", name="Is every tick accounted for?").click()
    page.wait_for_url("**/checks?job=shop.sells")
    assert " of 1 job are accounted for." in proof(page)
    run_coroutine(wait_until(lambda: _took_one(cluster.database_url), "it has not run three times"))
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("section:has(#proof) .lead")).to_contain_text("Not as it must be: unaccounted 1.")
    row = page.locator("section:has(#proof) tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("unaccounted")
    expect(row.get_by_role("link", name="shop.sells")).to_have_attribute("href", "/jobs/shop.sells")
    page.get_by_label("Job. Empty: all.").fill("shop.nothing")
    page.get_by_label("Job. Empty: all.").press("Enter")
    expect(page.locator("section:has(#proof) [role=alert]")).to_contain_text("there is no job 'shop.nothing'")


def test_what_the_doctor_finds_is_there_the_worst_first(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/checks")
    assert "accounted for" in proof(page) or "unaccounted" in proof(page)
    base = page.locator("section:has(#database)")
    expect(base.locator("summary")).to_contain_text("checks are well", timeout=SOON_MS)
    own = page.locator("section:has(#controller)")
    expect(own).to_contain_text("May claim", timeout=SOON_MS)
    expect(own).to_contain_text("all are reached")
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
    cluster.controllers[2].kill()
    expect(base.locator("tbody tr").first).to_contain_text("problem", timeout=SOON_MS)
    expect(own).to_contain_text("✕")


async def _took_one(url: str) -> bool:
    connection = await look(url)
    try:
        return await connection.fetchval(TAKE_ONE) is not None
    finally:
        await connection.close()
