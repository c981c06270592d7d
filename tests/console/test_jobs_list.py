"""The list of jobs: found as one types, kept as views, changed by the hundred, and smooth at ten thousand."""

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.support.secured import SecuredCluster

MANY: Final = 10_000
SEARCH_MS: Final = 200  # of issue 20, at that many jobs
DRAWN_MOST: Final = 150  # rows of a table that are elements, however many it has
SOON_MS: Final = 60_000


def rows(page: Page) -> Any:
    return page.locator("tr[data-row]")


def made(cluster: SecuredCluster, name: str, *options: str) -> None:
    cluster.cli("jobs", "create", "shop.prints", "--name", name, "--manual", *options)


def status_of(cluster: SecuredCluster, key: str) -> str:
    return str(cluster.cli("jobs", "get", key)["status"])


def test_a_part_of_a_name_finds_jobs_while_one_types(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page("/jobs")
    expect(rows(page)).to_have_count(5)
    page.locator("#search").press_sequentially("AILS")
    expect(rows(page)).to_have_count(2)
    page.wait_for_url(re.compile(r"/jobs\?q=AILS"))
    page.locator("#search").fill("ails contains:well")
    expect(rows(page)).to_have_count(1)
    page.locator("#search").fill("no_such_thing")
    expect(page.locator("main")).to_contain_text("No job fits this filter")


def test_words_are_completed_by_the_keyboard(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page("/jobs")
    field = page.locator("#search")
    field.press_sequentially("verb:pri")
    expect(page.get_by_role("option", name="verb:prints")).to_be_visible()
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value("verb:prints ")
    expect(rows(page)).to_have_count(1)
    field.press_sequentially("mod")
    page.get_by_role("option", name="module:").click()
    expect(field).to_have_value("verb:prints module:")


def test_a_view_is_an_address_and_has_a_name_in_this_browser(visit: Callable[..., Visitor]) -> None:
    visitor = visit("viewer")
    page = visitor.page("/jobs?q=ails&sort=failures")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_role("dialog").get_by_label("Name").fill("trouble")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.goto(visitor.base + "/jobs")
    expect(rows(page)).to_have_count(5)
    page.get_by_role("link", name="trouble").click()
    page.wait_for_url(re.compile(r"q=ails&sort=failures"))
    expect(rows(page)).to_have_count(2)
    expect(page.get_by_label("Order by")).to_have_value("failures")
    page.get_by_role("button", name="Remove the view trouble").click()
    expect(page.get_by_role("link", name="trouble")).to_have_count(0)


def test_columns_are_chosen_and_kept(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    made(cluster, "labelled", "--label", "team=core")
    page = visit("viewer").page("/jobs?q=labelled")
    expect(page.get_by_role("columnheader", name="Labels")).to_have_count(0)
    page.locator("summary", has_text="Columns").click()
    page.get_by_label("Labels").check()
    expect(page.get_by_role("link", name="team=core")).to_be_visible()
    page.reload()
    expect(page.get_by_role("columnheader", name="Labels")).to_be_visible()
    page.get_by_role("link", name="team=core").click()
    page.wait_for_url(re.compile("label%3Ateam"))
    cluster.cli("jobs", "delete", "shop.prints:labelled")


def test_selected_jobs_are_tried_paused_and_resumed_by_undo(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    made(cluster, "one")
    made(cluster, "two")
    page = visit("operator").page("/jobs?q=contains:prints:")
    for key in ("shop.prints:one", "shop.prints:two"):
        page.get_by_label(f"Select {key}").click()
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It would change 2 jobs of 2 jobs")
    assert status_of(cluster, "shop.prints:one") == "pending", "it was only tried"
    dialog.get_by_label(re.compile("Why")).fill("the printer burns")
    expect(dialog).to_contain_text("cronring jobs pause shop.prints:one")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("Done to 2 jobs of 2 jobs")
    dialog.get_by_role("button", name="Close").click()
    paused = cluster.cli("jobs", "get", "shop.prints:two")
    assert (paused["status"], paused["paused"]["note"]) == ("paused", "the printer burns")
    page.get_by_role("button", name="Undo").click()
    expect(dialog).to_contain_text("It would change 2 jobs")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("Done to 2 jobs")
    dialog.get_by_role("button", name="Close").click()
    assert {status_of(cluster, f"shop.prints:{name}") for name in ("one", "two")} == {"pending"}


def test_all_that_match_are_labelled_and_deleted_by_one_order(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    for name in ("old1", "old2", "old3"):
        made(cluster, name)
    page = visit("operator").page("/jobs?q=shop.prints:old")
    page.get_by_label("Select shop.prints:old1").click()
    page.get_by_role("button", name="Select all 3 that match").click()
    expect(page.get_by_role("region", name="Selected jobs")).to_contain_text("3 jobs selected: all that match")
    page.get_by_role("button", name="Label", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Label", exact=True).fill("age")
    dialog.get_by_label(re.compile("Value")).fill("old")
    expect(dialog).to_contain_text("cronring jobs update --filter shop.prints:old --set-label age=old")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("Done to 3 jobs")
    dialog.get_by_role("button", name="Close").click()
    assert len(cluster.cli("jobs", "list", "--label", "age=old")) == 3
    page.get_by_label("Select shop.prints:old2").click()
    page.get_by_role("button", name="Select all 3 that match").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.locator("button.act")).to_be_disabled()
    expect(dialog).to_contain_text("It would change 3 jobs")
    dialog.get_by_label(re.compile("Type")).fill("delete 3")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("Done to 3 jobs")
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#filter-says")).to_contain_text("3 no longer fit", timeout=SOON_MS)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("No job fits this filter")
    assert cluster.cli("jobs", "list", "--label", "age=old") == []


def test_what_a_module_declares_is_not_deleted_and_says_so(visit: Callable[..., Visitor]) -> None:
    page = visit("operator").page("/jobs?q=verb:lasts")
    page.get_by_label("Select shop.lasts").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("1 refused:")
    expect(page.get_by_role("dialog")).to_contain_text("shop.lasts")


def test_new_jobs_wait_until_somebody_wants_to_see_them(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("viewer").page("/jobs?q=shop.prints:late")
    expect(page.locator("main")).to_contain_text("No job fits this filter")
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    made(cluster, "late")
    expect(page.locator("#filter-says")).to_contain_text("1 new", timeout=SOON_MS)
    expect(rows(page)).to_have_count(0)
    page.get_by_role("button", name="Show").click()
    expect(rows(page)).to_have_count(1)
    cluster.cli("jobs", "delete", "shop.prints:late")
    expect(page.locator("#filter-says")).to_contain_text("1 no longer fit", timeout=SOON_MS)
    expect(rows(page)).to_have_count(1)


def test_ten_thousand_jobs_scroll_and_are_searched(
    visit: Callable[..., Visitor], cluster: SecuredCluster, tmp_path: Path
) -> None:
    """Prints what it measured. The fastest of some searches has to be in time: the machine is shared."""
    lines = [{"verb": "shop.prints", "name": f"n{number:05}", "manual": True} for number in range(MANY)]
    file = tmp_path / "many.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = cluster.ask("jobs", "import", "--stream", str(file))
    assert done.returncode == 0, done.stderr
    page = visit("viewer").page("/jobs")
    expect(page.locator("h1")).to_contain_text("10,0", timeout=SOON_MS)
    reached = 0
    for _ in range(40):  # each wheel is some screens; pages are asked for as they come near
        page.mouse.wheel(0, 8_000)
        page.wait_for_timeout(50)
        drawn = rows(page).count()
        assert drawn <= DRAWN_MOST
        reached = max(reached, int(page.locator("tr[data-row]").last.get_attribute("aria-rowindex") or 0))
    assert reached > 1_000, f"forty wheels came to row {reached}"
    page.evaluate("scrollTo(0, 0)")
    took = [_searched(page, f"n0{number}77") for number in range(10, 17)]
    print(f"search among {MANY:,} jobs: fastest {min(took):.0f} ms, median {statistics.median(took):.0f} ms")
    assert min(took) < SEARCH_MS


def _searched(page: Page, text: str) -> float:
    """Milliseconds of one answer of the list, asked as the page asks."""
    found: dict[str, float] = page.evaluate(
        """async (text) => {
          const begun = performance.now();
          const answer = await fetch(`/api/v1/cron/jobs?page_size=200&filter=${text}`);
          const jobs = (await answer.json()).jobs.length;
          return { jobs, took: performance.now() - begun };
        }""",
        text,
    )
    assert found["jobs"] == 1
    return found["took"]
