"""Each page as each role: nothing is asked that is refused, and no button is there in vain."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import BrowserContext, Page, Response, expect

from tests.console.conftest import Visitor
from tests.console.test_lists_doing import ask, do
from tests.support.secured import SecuredCluster

SETTLED_MS: Final = 500  # what a page asks of itself comes within it,
WAITED_S: Final = 20.0  # or, on a machine short of cores, within this
READING: Final = {
    "Copy",
    "Save this view",
    "Order anew",
    "Show",
    "Try again",
    "More",
    "Older",
    "Newest",
    "Copy as Markdown",
}
EACH: Final = (
    "/", "/jobs", "/jobs/new", "/jobs/shop.sells", "/executions", "/executions/{run}", "/upcoming", "/cluster",
    "/timeline", "/checks", "/deployments", "/deployments?of={version}",
    "/queues", "/queues?of=default/reports", "/queues?of=other/reports",
    "/limits", "/sets", "/sets?of=default/nightly", "/templates", "/templates?of=default/seen",
    "/templates?of=other/seen", "/workspaces", "/workspaces?of=default/ws_3", "/webhooks", "/webhooks?of=pager",
    "/access", "/actions", "/audit", "/wall",
)  # fmt: skip

JOB: Final = {"Run now", "Pause", "Skip next tick", "Backfill", "Edit", "Cancel job"}
OPERATES: Final = {
    "/jobs/new": {"Make it"}, "/jobs/shop.sells": JOB, "/executions/{run}": {"Cancel"},
    "/queues": {"Change"}, "/queues?of=default/reports": {"Change", "Put a message"},
    "/queues?of=other/reports": {"Change", "Put a message"},
    "/sets": {"Apply a file", "Apply", "Release", "Delete"},
    "/sets?of=default/nightly": {"Apply", "Release", "Delete"},
    "/templates": {"Make a template", "Change", "Delete"}, "/templates?of=default/seen": {"Change", "Delete"},
    "/templates?of=other/seen": {"Change", "Delete"},
    "/workspaces": {"Pause all", "Delete"}, "/workspaces?of=default/ws_3": {"Pause all", "Delete"},
}  # fmt: skip
DEPLOYS: Final = {"/deployments": {"End"}, "/deployments?of={version}": {"End"}}
ELSEWHERE: Final = {
    "/jobs/new": {"Make it"}, "/sets": {"Apply a file"},
    "/queues": {"Change"}, "/queues?of=other/reports": {"Change", "Put a message"},
    "/templates": {"Make a template", "Change", "Delete"}, "/templates?of=other/seen": {"Change", "Delete"},
}  # fmt: skip
ALL: Final = OPERATES | DEPLOYS | {
    "/limits": {"Set a limit", "Change", "Remove"}, "/webhooks": {"Add a webhook", "Test", "Disable", "Remove"},
    "/webhooks?of=pager": {"Test", "Disable", "Remove", "Redeliver all that failed"},
    "/templates": {"Make a template", "Change", "Delete", "Change the defaults"},
    "/access": {"Create a token", "Create a grant", "Revoke"},
}  # fmt: skip
# What each sees beside what only reads, and the link by which everybody logs their own browser out.
TABLE: Final = {
    "viewer": {}, "outputs-viewer": {}, "operator": OPERATES, "deployer": DEPLOYS, "admin": ALL,
    "viewer,operator@other": ELSEWHERE, "operator@other": ELSEWHERE,
}  # fmt: skip
# What these lack, another one lacks as well: a minute of a browser each, in `make soak`.
ALIKE: Final = {"outputs-viewer", "deployer", "viewer,operator@other"}
DEEDS: Final = re.compile("Run now|Pause|Resume|Skip|Delete|Cancel|Retry|Roll back")
# What a role that may nothing of a page is told there.
TOLD: Final = {
    "viewer": {
        "/jobs/new": "Your role makes no jobs", "/webhooks": "Your role doesn't show this",
        "/access": "Your role doesn't show this", "/audit": "Your role doesn't show this",
    }
}  # fmt: skip
# Who sees one namespace alone is told of what is elsewhere that there is no such thing.
UNSEEN: Final = ("shop", "default", "{", "pager")


class Heard:
    """What a visitor's browser was refused."""

    def __init__(self, context: BrowserContext) -> None:
        self.refused: list[str] = []
        context.on("response", self._answered)

    def _answered(self, answer: Response) -> None:
        if answer.status == 403 or answer.status >= 500:
            self.refused.append(f"{answer.status} {answer.request.method} {answer.url}")


@pytest.fixture(scope="module")
def things(cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One of everything, and some of it in a namespace of its own."""
    file: Path = tmp_path_factory.mktemp("sets") / "nightly.yaml"
    file.write_text("set: nightly\njobs:\n  - {verb: shop.prints, name: first, cron: '0 2 * * *'}\n")
    cluster.cli("apply", str(file))
    cluster.cli("jobs", "create", "shop.prints", "--name", "a", "--every", "1d", "--label", "workspace=ws_3")
    cluster.cli("limits", "set", "shop", "--max-concurrent", "50")
    cluster.cli("webhook", "add", "pager", "http://127.0.0.1:9/hook")
    for namespace in ("default", "other"):
        cluster.cli("template", "set", "seen", "--cron", "0 3 * * *", "--namespace", namespace)
        cluster.cli("queues", "set", f"{namespace}/reports", "--max-deliveries", "3")
    version = str(cluster.cli("deployments", "list", "--module", "shop")[0]["key"])
    run = str(cluster.cli("jobs", "trigger", "shop.lasts")["execution_id"])
    return {"version": version, "run": run}


def words_of(page: Page) -> set[str]:
    """Of its buttons, but those that only read, and those of browsers that are logged in."""
    found = page.locator("main button:visible").all()
    return {each.inner_text().strip() for each in found} - READING - {"Log out"}


def told(page: Page, wanted: set[str]) -> set[str]:
    """Of words that the table has: those that are wanted, or what is there in their place once there was time."""
    known, until = set().union(*ALL.values()), time.monotonic() + WAITED_S
    while (found := words_of(page) & known) != wanted and time.monotonic() < until:
        page.wait_for_timeout(100)  # a poll with a deadline: no event says that a page has its buttons
    return found


def come(page: Page, base: str, path: str) -> None:
    page.goto(base + path)
    expect(page.locator("main, .wall")).not_to_be_empty()
    expect(page.locator("body")).not_to_contain_text("Loading …")
    page.wait_for_timeout(SETTLED_MS)


@pytest.mark.parametrize(
    "role", [pytest.param(each, marks=pytest.mark.soak if each in ALIKE else ()) for each in TABLE]
)
def test_each_role_sees_what_it_may_do_and_is_refused_nothing(
    visit: Callable[..., Visitor], things: dict[str, str], role: str
) -> None:
    visitor = visit(role)
    heard = Heard(visitor.context)
    page = visitor.page()
    shown: dict[str, set[str]] = {}
    wrong: list[str] = []
    alone = role == "operator@other"
    for path in EACH:
        if alone and any(word in path for word in UNSEEN):
            continue
        come(page, visitor.base, path.format(**things))
        expect(page.locator("main, .wall")).to_contain_text(TOLD.get(role, {}).get(path, ""))
        if found := told(page, TABLE[role].get(path, set())):
            shown[path] = found
        if role == "viewer":
            deeds = page.get_by_role("button", name=DEEDS)
            if path != "/access":  # there a filter has one
                deeds = deeds.or_(page.get_by_role("checkbox"))
            wrong += [f"{path}: {each.inner_text()!r} is there, for nothing" for each in deeds.all()]
        if page.locator("main [role=alert]").count():
            wrong.append(f"{path}: {page.locator('main [role=alert]').first.inner_text()}")
    assert (wrong, heard.refused) == ([], [])
    assert shown == TABLE[role]


def test_who_has_one_namespace_acts_there_and_forms_begin_there(
    visit: Callable[..., Visitor], cluster: SecuredCluster, things: dict[str, str]
) -> None:
    assert things
    visitor = visit("admin@other")
    heard = Heard(visitor.context)
    page = visitor.page("/limits")
    do(page, "Set a limit", **{"At most so many": "3"}, Why="mine")
    expect(page.locator("table")).to_contain_text("other/")
    page.goto(visitor.base + "/templates")
    do(page, "Make a template", Name="mine", Schedule="0 3 * * *")
    expect(page.locator("main")).to_contain_text("other/mine")
    page.goto(visitor.base + "/queues?of=other/reports")
    do(page, "Put a message", says="It is message", Payload="{}")
    page.goto(visitor.base + "/access")
    for button in ("Create a token", "Create a grant"):
        dialog = ask(page, button, Name="mine")
        expect(dialog.get_by_label(re.compile("^Namespace"))).to_have_value("other")
        dialog.locator("button.act").click()
        expect(dialog.locator("pre")).not_to_be_empty()
        dialog.get_by_role("button", name="Close").click()
    assert heard.refused == []
    assert [each["max_concurrent"] for each in cluster.cli("limits", "list") if each["namespace"] == "other"] == [3]


def test_who_is_somebody_else_by_now_is_told_so_and_the_page_goes_on(visit: Callable[..., Visitor]) -> None:
    """Another tab logged in as one who may less. The page that was open says so, and takes its buttons back."""
    visitor = visit("operator")
    page = visitor.page("/jobs/shop.sells")
    other: Any = visit("viewer").context.cookies()  # at once, as a tab in between would be led to the login
    dialog = ask(page, "Pause")
    visitor.context.add_cookies(other)
    dialog.locator("button.act").click()
    expect(dialog).to_contain_text("logged in anew since, as token:viewer")
    expect(dialog).to_contain_text("It is not done")
    dialog.get_by_role("button", name="Keep as it is").click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    expect(page.locator(".who")).to_contain_text("token:viewer")
    expect(page.locator("main")).to_contain_text("History")
