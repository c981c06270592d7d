"""A job is made by hand: of a verb or of a queue, with what it comes to before it is there."""

import re
import shlex
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Visitor
from tests.support.secured import SecuredCluster


def form_of(page: Page) -> Locator:
    form = page.locator("form.editor")
    expect(form.get_by_label("Schedule", exact=True)).to_be_visible()
    return form


def make(form: Locator, page: Page) -> str:
    """Makes it by its button. Gives the command that is shown beside it."""
    command = form.locator(".copied code").inner_text()
    expect(form.get_by_role("button", name="Make it")).to_be_enabled()
    form.get_by_role("button", name="Make it").click()
    page.wait_for_url(re.compile(r"/jobs/(?!new)"))
    return command


def repeated(cluster: SecuredCluster, command: str) -> str:
    """The job that the command asks for, if it is as it is there: another one is refused, or changed into it."""
    program, *words = shlex.split(command)
    assert program == "cronring"
    job = cluster.cli(*words)
    assert not job["updated"]
    return str(job["key"])


def test_a_verbs_job_is_seen_before_it_is_made(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/jobs")
    page.get_by_role("link", name="New job").click()
    form = form_of(page)
    expect(form.get_by_role("button", name="Make it")).to_be_disabled()
    form.get_by_role("combobox", name="Verb").select_option("prints")
    expect(form).to_contain_text("When it is told to.")
    form.get_by_label(re.compile("^Name")).fill("berlin")
    form.get_by_label("Schedule", exact=True).fill("30 2 * * *")
    form.get_by_label("Time zone").fill("Europe/Berlin")
    expect(form).to_contain_text("It runs at 02:30 every day, Europe/Berlin time.")
    expect(form.locator("tbody tr")).to_have_count(10)
    expect(form.locator(".key")).to_have_text("shop.prints:berlin")
    expect(form).to_contain_text("prints takes no payload")
    form.get_by_text("Policies", exact=True).click()
    form.get_by_label(re.compile("^retries")).fill("3")
    form.get_by_label(re.compile("^Timeout")).fill("90000")
    form.get_by_label(re.compile("^Labels")).fill("team=ops\ntier=gold")
    form.get_by_label(re.compile("^Why")).fill("the new branch")
    assert not cluster.cli("jobs", "list", "--label", "team=ops"), "nothing is made before it is saved"
    command = make(form, page)
    expect(page.locator(".lead").first).to_contain_text("at 02:30 every day")
    expect(page.get_by_role("region", name="Who did what to it")).to_contain_text("the new branch")
    made = cluster.cli("jobs", "get", "shop.prints:berlin")
    assert (made["schedule"], made["timezone"], made["labels"]) == (
        "30 2 * * *",
        "Europe/Berlin",
        {"team": "ops", "tier": "gold"},
    )
    assert (made["policy"]["retries"], made["timeout_ms"]) == (3, 90_000)
    assert repeated(cluster, command) == "shop.prints:berlin"


def test_a_queues_job_is_made_and_runs_at_once(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/jobs/new")
    form = form_of(page)
    form.get_by_role("combobox", name="Of", exact=True).select_option("a queue")
    form.get_by_label("Queue", exact=True).fill("reports")
    form.get_by_label(re.compile("^Workspace")).fill("ws_3")
    form.get_by_label("Schedule", exact=True).fill("every 6h")
    form.get_by_label(re.compile("^Payload")).fill('{"kind": "daily"')
    wrong = form.locator(".payload .fault")
    expect(wrong.first).to_be_visible()
    expect(form.get_by_role("button", name="Make it")).to_be_disabled()
    form.get_by_label(re.compile("^Payload")).fill('{"kind": "it\'s daily"}')
    expect(wrong).to_have_count(0)
    expect(form).to_contain_text("It runs every 6 hours")
    form.get_by_label(re.compile("^Run it once")).check()
    command = make(form, page)
    made = cluster.cli("jobs", "get", "@reports.ws_3:default")
    assert made["payload"] == '{"kind":"it\'s daily"}'
    assert cluster.cli("queues", "messages", "reports"), "it ran at once"
    assert repeated(cluster, command) == "@reports.ws_3:default"


def test_what_is_wrong_is_told_beside_its_field(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    cluster.cli("template", "set", "nightly", "--cron", "0 3 * * *", "--retries", "2")
    page = visit("operator").page("/jobs/new")
    form = form_of(page)
    form.get_by_role("combobox", name="Verb").select_option("prints")
    form.get_by_label(re.compile("^Name")).fill("odd")
    form.get_by_label("Schedule", exact=True).fill("61 2 * * *")
    expect(form.locator(".field", has_text="Schedule").first.locator(".fault")).to_contain_text("minute field")
    form.get_by_label("Schedule", exact=True).fill("")
    form.get_by_role("combobox", name="Template").select_option("nightly")
    named = form.locator(".field", has_text="Name").first
    form.get_by_label(re.compile("^Name")).fill("by template")
    expect(named.locator(".fault")).to_be_visible()
    form.get_by_label(re.compile("^Name")).fill("by-template")
    expect(named.locator(".fault")).to_have_count(0)
    expect(form).to_contain_text("It runs at 03:00 every day")
    assert repeated(cluster, make(form, page)) == "shop.prints:by-template"
    assert cluster.cli("jobs", "get", "shop.prints:by-template")["policy"]["retries"] == 2


def test_who_only_views_is_offered_no_form(visit: Callable[..., Visitor]) -> None:
    page = visit("viewer").page("/jobs")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    expect(page.get_by_role("link", name="New job")).to_have_count(0)
    page.goto(page.url + "/new")
    expect(page.locator("main")).to_contain_text("Your role makes no jobs")
    expect(page.locator("form")).to_have_count(0)
