"""The editor of a job: what a change comes to is said while one types, and nobody's change is lost."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Visitor
from tests.support.secured import SecuredCluster

KEY = "shop.prints:edited"
JOB_ITSELF = re.compile(r"/cron/jobs/shop\.prints(:|%3A)edited$")


@pytest.fixture
def job(cluster: SecuredCluster) -> Iterator[str]:
    cluster.cli("jobs", "create", "shop.prints", "--name", "edited", "--cron", "30 2 * * *", "--timezone",
                "Europe/Berlin", "--label", "team=ops")  # fmt: skip
    yield KEY
    cluster.cli("jobs", "delete", KEY)


def editor(page: Page) -> Locator:
    page.get_by_role("button", name="Edit", exact=True).click()
    found = page.get_by_role("region", name=re.compile("^Edit"))
    expect(found.get_by_label("Schedule", exact=True)).to_be_visible()
    return found


def test_a_change_is_seen_before_it_is_saved(visit: Callable[..., Visitor], cluster: SecuredCluster, job: str) -> None:
    page = visit("operator").page(f"/jobs/{job}")
    form = editor(page)
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    form.get_by_label(re.compile("^Schedule")).fill("0 4 * * *")
    expect(form).to_contain_text("It runs at 04:00 every day, Europe/Berlin time.")
    expect(form).to_contain_text("7 → 7 ticks")
    # Earlier, where today's tick of the old schedule is over and that of the new one is not.
    expect(form).to_contain_text(re.compile("All of them move (later|earlier) by the same time"))
    expect(form.locator("s")).to_have_text("30 2 * * *")
    expect(form.locator("tbody tr")).to_have_count(10)
    form.get_by_label(re.compile("^Labels")).fill("team=ops\ntier=gold")
    expect(form.locator("code", has_text="labels.tier")).to_be_visible()
    assert cluster.cli("jobs", "get", job)["schedule"] == "30 2 * * *", "nothing is changed before it is saved"
    form.get_by_label(re.compile("^Why")).fill("the report comes later")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name=re.compile("^Edit"))).to_have_count(0)
    expect(page.locator(".lead").first).to_contain_text("at 04:00 every day")
    expect(page.get_by_role("region", name="Who did what to it")).to_contain_text("the report comes later")
    saved = cluster.cli("jobs", "get", job)
    assert (saved["schedule"], saved["labels"]) == ("0 4 * * *", {"team": "ops", "tier": "gold"})
    assert saved["timezone"] == "Europe/Berlin"


def test_what_is_wrong_is_told_beside_its_field_and_what_is_odd_by_lint(
    visit: Callable[..., Visitor], job: str
) -> None:
    form = editor(visit("operator").page(f"/jobs/{job}"))
    form.get_by_label(re.compile("^Schedule")).fill("61 2 * * *")
    wrong = form.locator(".field", has_text="Schedule").first
    expect(wrong.locator(".fault")).to_contain_text("minute field, character 1")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    form.get_by_label(re.compile("^Schedule")).fill("15 2 * * *")
    expect(wrong.locator(".fault")).to_have_count(0)
    expect(form.locator(".remarks")).to_contain_text("02:15 does not exist")
    form.get_by_text("Policies", exact=True).click()
    form.get_by_label(re.compile("^overlap")).fill("sometimes")
    expect(form.locator(".field", has_text="overlap").locator(".fault").first).to_contain_text("buffer_one")
    form.get_by_label(re.compile("^overlap")).fill("buffer_one")
    form.get_by_label(re.compile("^retries")).fill("3")
    expect(form.locator("code", has_text="policy.retries")).to_be_visible()
    form.get_by_label(re.compile("^retries")).fill("1000")
    expect(form.locator(".field", has_text="retries").locator(".fault").first).to_contain_text("100")


def test_somebody_elses_change_is_shown_and_not_overwritten(
    visit: Callable[..., Visitor], cluster: SecuredCluster, job: str
) -> None:
    page = visit("operator").page(f"/jobs/{job}")
    form = editor(page)
    form.get_by_label(re.compile("^Schedule")).fill("0 4 * * *")
    expect(form).to_contain_text("It runs at 04:00")
    cluster.cli("jobs", "update", job, "--retries", "2")
    alert = form.get_by_role("alert")
    expect(alert).to_contain_text("Somebody else has changed it meanwhile")
    expect(alert).to_contain_text("policy.retries")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    alert.get_by_role("button").click()
    expect(form.get_by_label(re.compile("^Schedule"))).to_have_value("0 4 * * *")
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    form.get_by_role("button", name="Save").click()
    expect(page.locator(".lead").first).to_contain_text("at 04:00 every day")
    saved = cluster.cli("jobs", "get", job)
    assert (saved["schedule"], saved["policy"]["retries"]) == ("0 4 * * *", 2)


def test_a_save_that_comes_too_late_is_refused(
    visit: Callable[..., Visitor], cluster: SecuredCluster, job: str
) -> None:
    """The page hears of no change here: the API holds it to the job that it has seen."""
    visitor = visit("operator")
    page = visitor.page(f"/jobs/{job}")
    form = editor(page)
    form.get_by_label(re.compile("^Schedule")).fill("0 5 * * *")
    expect(form).to_contain_text("It runs at 05:00")
    # From here on its page shows the job as it was.
    seen = page.evaluate(f"fetch('/api/v1/cron/jobs/{job}').then((answer) => answer.text())")
    page.route(
        JOB_ITSELF,
        lambda route: (
            route.fulfill(body=seen, content_type="application/json")
            if route.request.method == "GET"
            else route.continue_()
        ),
    )
    cluster.cli("jobs", "update", job, "--cron", "0 6 * * *")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("changed since")
    assert cluster.cli("jobs", "get", job)["schedule"] == "0 6 * * *"
    page.unroute(JOB_ITSELF)
    form.get_by_role("button", name=re.compile("Go on from theirs")).first.click()
    expect(form.get_by_role("alert")).to_have_count(0)
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    expect(form.locator("s")).to_have_text("0 6 * * *")
    form.get_by_role("button", name="Save").click()
    expect(page.locator(".lead").first).to_contain_text("at 05:00 every day")


def test_what_its_module_or_a_set_declares_says_where_it_is_edited(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    page = visit("operator").page("/jobs/shop.prints")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.locator(".note")).to_contain_text("Its module declares it")
    expect(page.locator(".note")).to_contain_text("cronring deploy FILE")
    assert page.get_by_role("region", name=re.compile("^Edit")).count() == 0
