"""What list pages do: each change by its dialog, seen on the page, and read back by the command line."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import SHOP, Visitor
from tests.console.receiving import Receiver, receiving
from tests.support.secured import SecuredCluster

SOON_MS: Final = 60_000


def ask(page: Page, button: str, **fields: str) -> Locator:
    """The dialog of a button, filled in."""
    page.get_by_role("button", name=button, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    for label, text in fields.items():
        dialog.get_by_label(re.compile(label)).first.fill(text)
    return dialog


def do(page: Page, button: str, says: str = "", **fields: str) -> None:
    """Fill the dialog in, and do it. `says`: what it tells then."""
    dialog = ask(page, button, **fields)
    dialog.locator("button.act").click()
    if says:
        expect(dialog).to_contain_text(says)
        dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_versions_are_compared_in_ticks_and_rolled_back(
    visit: Callable[..., Visitor], cluster: SecuredCluster, tmp_path: Path
) -> None:
    expect(visit("viewer").page("/deployments").locator("main")).to_contain_text("shop@", timeout=SOON_MS)
    first = cluster.cli("deployments", "list", "--module", "shop")[0]["key"]
    other = tmp_path / "shop.py"
    other.write_text(SHOP.read_text().replace('@every("2s")\nasync def fails()', '@every("10s")\nasync def fails()'))
    second = cluster.cli("deploy", str(other), "--yes", "--note", "fail less")["deployment"]["key"]
    page = visit("deployer").page(f"/deployments?of={first}")
    table = page.locator("table.difference")
    expect(table).to_contain_text("every 10s")
    expect(table).to_contain_text("every 2s")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(page.locator("section:has(#difference)")).to_contain_text("4 jobs stay as they are")
    told = cluster.cli("deployments", "compare", first)
    assert [(verb["verb"], verb["change"]) for verb in told["verbs"]] == [("fails", "changed")]
    assert (told["from_key"], told["same"]) == (second, 4)
    expect(page.locator("section:has(#schema)")).to_contain_text("fails")
    dialog = ask(page, "Activate", Why="too seldom")
    expect(dialog).to_contain_text(f"It takes the place of {second}")
    expect(dialog).to_contain_text("cronring rollback shop --to")
    dialog.locator("button.act").click()
    expect(page.locator("h1")).to_contain_text("active")
    expect(page.get_by_role("button", name="End", exact=True)).to_be_visible()
    assert cluster.cli("deployments", "get", first)["active"] is True
    expect(page.locator("section:has(#orders)")).to_contain_text("deployer", timeout=SOON_MS)


def test_limits_are_set_changed_and_removed(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/limits")
    do(page, "Set a limit", Module="shop", **{"At most so many": "7"}, Why="the database")
    expect(page.locator("table")).to_contain_text("default/shop")
    (limit,) = cluster.cli("limits", "list")
    assert (limit["module"], limit["max_concurrent"], limit["note"]) == ("shop", 7, "the database")
    do(page, "Change", **{"At most so many": "9"})
    expect(page.locator("table")).to_contain_text("9")
    do(page, "Set a limit", Label="workspace", **{"At most so many": "1"})
    expect(page.locator("table")).to_contain_text("workspace")
    assert {limit["max_concurrent"] for limit in cluster.cli("limits", "list")} == {9, 1}
    for left in (1, 0):
        do(page, "Remove")
        expect(page.get_by_role("button", name="Remove", exact=True)).to_have_count(left)
    expect(page.locator("main")).to_contain_text("Nothing is limited")
    assert cluster.cli("limits", "list") == []


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(500) as found:
        yield found


def test_a_webhook_is_added_tested_disabled_and_removed(
    visit: Callable[..., Visitor], cluster: SecuredCluster, receiver: Receiver
) -> None:
    page = visit().page("/webhooks")
    dialog = ask(page, "Add a webhook", Name="pager", Address=receiver.url, Events="failed")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("whsec_")
    expect(dialog).to_contain_text("never told again")
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="pager").click()
    expect(page.locator("h1")).to_contain_text("active")
    do(page, "Test", says="It was not delivered: HTTP 500")
    receiver.answers = 204
    do(page, "Test", says="It was delivered: HTTP 204")
    assert [each["type"] for each in receiver.heard].count("webhook.test") == 2  # beside what failed meanwhile
    delivery = page.locator("tr[data-row]").first
    expect(delivery).to_contain_text("shop.fails", timeout=SOON_MS)
    page.get_by_label("State").select_option("delivered")
    expect(page.locator("tr[data-row]").first).to_contain_text("delivered", timeout=SOON_MS)
    do(page, "Redeliver", says="1 tried again")
    do(page, "Disable", Why="being moved")
    expect(page.locator("h1")).to_contain_text("disabled")
    expect(page.locator("main")).to_contain_text("being moved")
    do(page, "Enable")
    expect(page.locator("h1")).to_contain_text("active")
    page.goto(page.url.split("?")[0])
    dialog = ask(page, "Remove")
    expect(dialog.locator("button.act")).to_be_disabled()
    dialog.get_by_label(re.compile("Type")).fill("pager")
    dialog.locator("button.act").click()
    expect(page.locator("main")).to_contain_text("Nobody is told")
    assert cluster.cli("webhook", "list") == []


def test_a_template_is_made_changed_and_deleted(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit("operator").page("/templates")
    do(page, "Make a template", Name="nightly", Schedule="0 3 * * *", Labels="team=core, tier=slow")
    page.get_by_role("link", name="default/nightly").click()
    expect(page.locator("main")).to_contain_text("team=core")
    do(page, "Change", Schedule="0 4 * * *", Labels="team=core", **{"What for": "at night"})
    expect(page.locator("main")).to_contain_text("0 4 * * *")
    expect(page.locator("main")).not_to_contain_text("tier=slow")
    shown = cluster.cli("template", "show", "nightly")
    assert (shown["description"], shown["spec"]["labels"]) == ("at night", {"team": "core"})
    page.goto(page.url.split("?")[0])
    do(page, "Delete", Type="nightly")
    expect(page.locator("main")).to_contain_text("There is no template")


def test_a_token_is_created_used_and_revoked(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/access")
    dialog = ask(page, "Create a token", Name="board")
    dialog.locator("select").select_option("viewer")
    expect(dialog).to_contain_text("cronring token create --name board --role viewer --namespace default")
    dialog.locator("button.act").click()
    secret = dialog.locator("pre").inner_text()
    assert cluster.ask("whoami", token=secret).returncode == 0
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("main")).not_to_contain_text(secret)
    row = page.locator('tr[data-row="board"]')
    expect(row).to_contain_text("viewer@default")
    row.get_by_role("button", name="Revoke").click()
    dialog.get_by_label(re.compile("Type")).fill("board")
    dialog.locator("button.act").click()
    expect(row).to_have_count(0)
    page.get_by_label("Revoked ones, too").first.check()
    expect(row).to_contain_text("revoked")


def test_a_grant_is_created_and_revoked(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/access")
    dialog = ask(page, "Create a grant", Name="east", Modules="invoices dunning", **{"So many runners": "2"})
    dialog.get_by_label("A new version").check()
    dialog.locator("button.act").click()
    expect(dialog.locator("pre")).not_to_be_empty()
    dialog.get_by_role("button", name="Close").click()
    made = next(grant for grant in cluster.cli("runner-grant", "list") if grant["name"] == "east")
    assert (made["modules"], made["may_activate"], made["uses_left"]) == (["invoices", "dunning"], True, 2)
    page.locator('tr[data-row="east"]').get_by_role("button", name="Revoke").click()
    dialog.get_by_label(re.compile("Type")).fill("east")
    dialog.locator("button.act").click()
    expect(page.locator('tr[data-row="east"]')).to_have_count(0)


def test_the_audit_log_is_filtered_and_its_chain_is_told(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    cluster.cli("jobs", "pause", "shop.lasts", "--note", "for the log")
    cluster.cli("jobs", "resume", "shop.lasts")
    page = visit().page("/audit")
    page.get_by_label("What", exact=True).fill("PauseJob")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("what=PauseJob"))
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator("tr[data-row]")).to_contain_text("shop.lasts")
    expect(page.locator("main")).to_contain_text("cronring audit-log list --method PauseJob")
    page.locator("tr[data-row] summary").click()
    expect(page.locator("tr[data-row] dl")).to_contain_text("paused")
    chain = page.locator("section:has(#chain)")
    expect(chain).to_contain_text(re.compile(r"#\d+ [0-9a-f]{16}"))
    expect(chain).to_contain_text("cronring audit-log verify")


def test_a_set_tells_what_was_changed_by_hand_and_is_deleted(
    visit: Callable[..., Visitor], cluster: SecuredCluster, tmp_path: Path
) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_text(
        "set: nightly\njobs:\n"
        "  - {verb: shop.prints, name: first, cron: '0 2 * * *'}\n"
        "  - {verb: shop.prints, name: second, cron: '0 3 * * *'}\n"
    )
    cluster.cli("apply", str(file))
    page = visit("operator").page("/sets?of=default/nightly")
    expect(page.locator("section:has(#drift)")).to_contain_text("its jobs are as the file said")
    expect(page.locator("tr[data-row]")).to_have_count(2)
    cluster.cli("jobs", "update", "shop.prints:first", "--cron", "0 5 * * *", "--note", "too early")
    page.reload()
    expect(page.locator("section:has(#drift)")).to_contain_text("too early")
    expect(page.locator("section:has(#drift)")).to_contain_text("shop.prints:first")
    page.goto(page.url.split("?")[0])
    dialog = ask(page, "Delete", Type="nightly")
    expect(dialog).to_contain_text("2 jobs would be removed")
    dialog.locator("button.act").click()
    expect(page.locator("main")).to_contain_text("No file has been applied")
    assert cluster.cli("jobs", "list", "--verb", "prints", "--status", "scheduled") == [
        job for job in cluster.cli("jobs", "list", "--verb", "prints", "--status", "scheduled") if ":" not in job["key"]
    ]


def test_jobs_are_exported_and_applied_as_a_set(
    visit: Callable[..., Visitor], cluster: SecuredCluster, tmp_path: Path
) -> None:
    """The file that the console writes is one that it takes; what it does is shown before, and done to no more."""
    for name, hour in (("east", 2), ("west", 3)):
        cluster.cli(
            "jobs", "create", "shop.prints", "--name", name, "--cron", f"0 {hour} * * *", "--label", "moved=yes"
        )
    visitor = visit()
    page = visitor.page("/jobs?q=label:moved=yes")
    expect(page.locator("tr[data-row]")).to_have_count(2)
    with page.expect_download() as download:
        do(page, "Export")
    exported = tmp_path / "jobs.ndjson"
    download.value.save_as(exported)
    assert len(exported.read_text().strip().splitlines()) == 2
    page.goto(visitor.base + "/sets")
    dialog = ask(page, "Apply a file", Set="moved")
    dialog.get_by_label("File", exact=True).set_input_files(exported)
    expect(dialog.locator(".preview")).to_contain_text("2 refused")
    expect(dialog.locator(".preview")).to_contain_text("shop.prints:east")
    dialog.get_by_label(re.compile("made by hand")).check()
    expect(dialog.locator(".preview")).to_contain_text("2 adopted")
    dialog.locator("button.act").click()
    page.get_by_role("link", name="default/moved").click()
    expect(page.locator("tr[data-row]")).to_have_count(2)
    changed = exported.read_text().replace("0 2 * * *", "0 4 * * *").splitlines()
    exported.write_text(next(line for line in changed if "0 4 * * *" in line) + "\n")
    dialog = ask(page, "Apply")
    dialog.get_by_label("File", exact=True).set_input_files(exported)
    expect(dialog.locator(".preview")).to_contain_text("1 changed, 1 left")
    expect(dialog.locator(".preview")).to_contain_text("schedule: 0 2 * * * → 0 4 * * *")
    expect(dialog.locator(".preview")).to_contain_text("7 → 7 ticks a week")
    dialog.get_by_label(re.compile("Remove jobs")).check()
    expect(dialog.locator(".preview")).to_contain_text("1 changed, 1 removed")
    dialog.locator("button.act").click()
    expect(page.locator("tr[data-row]")).to_have_count(1, timeout=SOON_MS)
    (job,) = cluster.cli("jobs", "list", "--label", "moved=yes")
    assert (job["key"], job["schedule"], job["set_name"]) == ("shop.prints:east", "0 4 * * *", "moved")
    exported.write_text('{"name": "x"}\n{"name": \n')
    dialog = ask(page, "Apply")
    dialog.get_by_label("File", exact=True).set_input_files(exported)
    expect(dialog.locator(".fault")).to_contain_text("Line 2 is no JSON")
    dialog.get_by_role("button", name="Keep as it is").click()
    cluster.cli("sets", "delete", "moved", "--yes")


def test_defaults_of_the_cluster_are_set_and_taken_back(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/templates")
    shown = page.get_by_role("region", name="Defaults of the cluster")
    expect(shown).to_contain_text("as the controllers' --timeout")
    dialog = ask(page, "Change the defaults", Timeout="90", **{"Late after": "30s"}, Retries="2", Why="slow disks")
    expect(dialog).to_contain_text("cronring defaults set timeout=90s late_after=30s retries=2 --note 'slow disks'")
    dialog.locator("button.act").click()
    expect(shown).to_contain_text("1 min 30 s")
    expect(shown).to_contain_text("slow disks")
    told = cluster.cli("defaults", "show")
    assert (told["timeout_ms"], told["late_after"], told["retries"]) == (90_000, "30s", 2)
    dialog = ask(page, "Change the defaults", Timeout="", **{"Late after": ""}, Retries="")
    expect(dialog).to_contain_text("cronring defaults unset timeout late_after retries")
    dialog.locator("button.act").click()
    expect(shown).to_contain_text("as the controllers' --timeout")
    expect(shown).to_contain_text("what failed isn't tried again")
    told = cluster.cli("defaults", "show")
    assert (told["late_after"], told["retries"]) == ("", 0)
    viewers = visit("viewer").page("/templates").get_by_role("region", name="Defaults of the cluster")
    expect(viewers).to_contain_text("as the controllers' --timeout")
    expect(viewers.get_by_role("button")).to_have_count(0)


def test_a_workspace_is_paused_resumed_and_deleted_by_its_name(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    for name in ("a", "b"):
        cluster.cli("jobs", "create", "shop.prints", "--name", name, "--every", "1d", "--label", "workspace=ws_3")
    page = visit("operator").page("/workspaces")
    page.get_by_role("link", name="default/ws_3").click()
    do(page, "Pause all", says="Done to 2 jobs", Why="unpaid")
    expect(page.locator("h1")).to_contain_text("paused")
    assert cluster.cli("jobs", "get", "shop.prints:a")["paused"]["note"] == "unpaid"
    do(page, "Resume all", says="Done to 2 jobs")
    dialog = ask(page, "Delete")
    expect(dialog).to_contain_text("2 jobs would be removed")
    expect(dialog.locator("button.act")).to_be_disabled()
    dialog.get_by_label(re.compile("Type")).fill("ws_3")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("2 jobs removed", timeout=SOON_MS)
    dialog.get_by_role("button", name="Close").click()
    assert cluster.cli("jobs", "list", "--label", "workspace=ws_3") == []


def test_a_queue_shows_leases_and_dead_letters_which_are_replayed_and_removed(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    page = visit().page("/queues")
    cluster.cli("queues", "set", "reports", "--max-deliveries", "1")
    page.goto(page.url + "?of=default/reports")
    for text in ('{"report": "<b>one</b>"}', '{"report": 2}'):
        do(page, "Put a message", says="It is message", Payload=text)
    messages = page.locator("table", has=page.get_by_text("Messages that aren't done")).locator("tr[data-row]")
    expect(messages).to_have_count(2)
    expect(messages.first).to_contain_text("<b>one</b>")
    assert page.locator("td b").count() == 0
    work = ("--", "sh", "-c", "echo no ink >&2; exit 3")
    done = cluster.ask("queues", "consume", "reports", "--limit", "2", "--controllers", cluster.addresses, *work)
    assert done.returncode in {0, 1}, done.stderr
    page.reload()
    dead = page.locator("table", has=page.get_by_text("Dead letters")).locator("tr[data-row]")
    expect(dead).to_have_count(2, timeout=SOON_MS)
    expect(dead.first).to_contain_text("failed")
    expect(page.locator("h1")).to_contain_text("2 dead letters")
    dead.first.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 dead letter would be replayed")
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("1 message wait again")
    dialog.get_by_role("button", name="Close").click()
    expect(dead).to_have_count(1, timeout=SOON_MS)
    do(page, "Remove all", says="1 dead letter removed", Type="reports")
    expect(page.locator("main")).to_contain_text("There are none")
    do(page, "Change", **{"After so many": "4"})
    assert cluster.cli("queues", "list")[0]["max_deliveries"] == 4


def test_viewers_see_lists_and_no_button_that_would_refuse(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    cluster.cli("limits", "set", "shop", "--max-concurrent", "50")
    cluster.cli("template", "set", "seen", "--cron", "0 3 * * *")
    visitor = visit("viewer")
    page = visitor.page("/limits")
    for path, text in (
        ("/limits", "default/shop"), ("/templates", "default/seen"), ("/templates?of=default/seen", "0 3 * * *"),
        ("/deployments", "shop@"), ("/queues", "reports"), ("/sets", "No file has been applied"),
        ("/workspaces", "No job has the label"), ("/jobs", "shop.sells"),
    ):  # fmt: skip
        page.goto(visitor.base + path)
        expect(page.locator("main")).to_contain_text(text)
        buttons = {each.inner_text() for each in page.locator("main").get_by_role("button").all()}
        assert buttons <= {"Copy", "Save this view", "Order anew", "Show"}, f"{path}: {buttons}"
    for path in ("/webhooks", "/audit", "/webhooks?of=pager"):
        page.goto(visitor.base + path)
        expect(page.locator("main")).to_contain_text("Your role doesn't show this")
