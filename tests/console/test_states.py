"""Each list and chart when it is empty, while it loads, when it is old, and when it fails: on every page."""

import base64
import os
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from cronring.cli.root import cli
from tests.console.conftest import Visitor
from tests.console.shown import MODULES, live
from tests.console.test_pictures import BYTES_MAX, KEPT
from tests.support.secured import SecuredCluster

SOON_MS: Final = 40_000
SMALL: Final[ViewportSize] = {"width": 560, "height": 360}
SHOWN: Final = 6  # pages of a sheet
LOADING_MS: Final = 300  # what is there sooner isn't told
PAGES: Final = (
    "/", "/jobs", "/jobs/billing.charge_cards", "/executions", "/executions/{run}", "/upcoming", "/cluster",
    "/timeline", "/checks", "/deployments", "/queues", "/limits", "/sets", "/templates", "/workspaces", "/webhooks",
    "/access", "/actions", "/audit",
)  # fmt: skip
# Who sees nothing there: of a namespace that has nothing; or of all that there is.
NOTHING: Final = {
    "admin@nothing": (
        "/", "/jobs", "/executions", "/upcoming", "/deployments", "/queues", "/limits", "/sets", "/templates",
        "/workspaces", "/access", "/actions", "/audit?who=nobody",
    ),
    "admin": (
        "/jobs?q=nothing.fits", "/executions?q=job:mail.digest", "/jobs/mail.digest", "/webhooks",
        "/cluster?at=2020-01-01T00:00:00Z",
    ),
}  # fmt: skip
BROKEN: Final = '{"title": "Internal", "detail": "It broke."}'
OLD: Final = re.compile(r"Old, as of .*\d:\d\d.*Try again", re.DOTALL)
# Notes of each place of an answer when it began to wait and when it said so, and whether that moved anything.
WATCH: Final = """new MutationObserver(() => {
    for (const each of document.querySelectorAll(".loading")) {
        each.since ??= [performance.now(), each.offsetHeight];
        if (each.textContent) each.waited ??= [performance.now() - each.since[0], each.offsetHeight - each.since[1]];
    }
}).observe(document, { childList: true, subtree: true, characterData: true })"""
WAITED: Final = "[...document.querySelectorAll('.loading')].map((each) => each.waited)"
LACKING: Final = """(panels, state) => panels
    .filter((each) => !each.querySelector(state) && !each.closest(".aged")).map((each) => each.innerText)"""


@pytest.fixture(scope="module")
def modules() -> list[Path]:
    return MODULES


@pytest.fixture(scope="module")
def run(cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> int:
    return live(cluster, tmp_path_factory.mktemp("shown"))


class Sheet:
    """Pictures of the first pages in one state, side by side."""

    def __init__(self, chromium: Browser, folder: Path) -> None:
        self.chromium = chromium
        self.folder = folder
        self.figures: list[str] = []

    def take(self, page: Page, path: str) -> None:
        taken = base64.b64encode(page.screenshot(animations="disabled", caret="hide")).decode()
        picture = f'<img src="data:image/png;base64,{taken}">'
        self.figures.append(f"<figure><figcaption>{path}</figcaption>{picture}</figure>")

    def keep(self, state: str) -> None:
        context = self.chromium.new_context(viewport={"width": 1712, "height": 100})
        page = context.new_page()
        style = "body { display: flex; flex-wrap: wrap; gap: 8px; margin: 8px; font: 14px sans-serif }"
        page.set_content(f"<style>{style} figure {{ margin: 0 }}</style>{''.join(self.figures[:SHOWN])}")
        file = self.folder / f"states-{state}.png"
        page.screenshot(path=file, full_page=True)
        context.close()
        assert file.stat().st_size < BYTES_MAX


@pytest.fixture
def sheet(chromium: Browser, tmp_path: Path) -> Sheet:
    return Sheet(chromium, KEPT if os.environ.get("CRONRING_KEEP_PICTURES") else tmp_path)


def asks(url: str) -> bool:
    """Of the API; the stream of events is told by the bar on top."""
    return "/api/v1/" in url and "/api/v1/events" not in url


def test_who_has_nothing_is_taught_the_command(visit: Callable[..., Visitor], run: int, sheet: Sheet) -> None:
    assert run
    for role, paths in NOTHING.items():
        visitor = visit(role)
        page = visitor.page()
        page.set_viewport_size(SMALL)
        for path in paths:
            page.goto(visitor.base + path)
            expect(page.locator(".empty").first).to_be_visible(timeout=SOON_MS)
            expect(page.locator(".loading")).to_have_count(0)
            for taught in page.locator(".empty").all():
                assert_is_a_command(taught.locator("code").inner_text())
            sheet.take(page, path)
    sheet.keep("empty")


def assert_is_a_command(text: str) -> None:
    """All of its options are there."""
    program, *words = shlex.split(text)
    assert program == "cronring"
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found, text
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.make_parser(context).parse_args(words)


def test_what_loads_says_so_after_a_while_and_moves_nothing(
    visit: Callable[..., Visitor], run: int, sheet: Sheet
) -> None:
    visitor = visit()
    page = visitor.page()
    page.set_viewport_size(SMALL)
    page.add_init_script(WATCH)
    for path in PAGES:
        held = Held(page)
        page.goto(visitor.base + path.format(run=run))
        expect(page.locator(".loading").first).to_have_text("Loading …")
        expect(page.locator(".loading", has_not_text="Loading …")).to_have_count(0)
        for waited, moved in page.evaluate(WAITED):
            assert waited >= LOADING_MS, path
            assert moved == 0, path
        assert lacking(page, ".loading") == [], path
        sheet.take(page, path)
        held.let_go(lambda route: route.continue_())
        expect(page.locator(".loading")).to_have_count(0, timeout=SOON_MS)
    sheet.keep("loading")


class Held:
    """What a page asks, which is not answered before it is let go: by `answer`, as is what is asked then."""

    def __init__(self, page: Page) -> None:
        self.routes: list[Route] = []
        self.answer: Callable[[Route], None] | None = None
        page.unroute_all()
        page.route(asks, self._take)

    def _take(self, route: Route) -> None:
        if self.answer:
            self.answer(route)
        else:
            self.routes.append(route)

    def let_go(self, answer: Callable[[Route], None]) -> None:
        self.answer = answer
        while self.routes:
            answer(self.routes.pop())


def lacking(page: Page, state: str) -> list[str]:
    """Panels that should be in that state, and aren't once there was time. What is wrong is told on top, too."""
    panels = page.locator("main .panel:not([aria-labelledby=wrong])")
    until = time.monotonic() + SOON_MS / 1_000
    while (found := panels.evaluate_all(LACKING, state)) and time.monotonic() < until:
        page.wait_for_timeout(100)  # a poll with a deadline: each panel asks for itself
    return list(found)


def test_what_is_old_says_since_when_and_stays(
    visit: Callable[..., Visitor], cluster: SecuredCluster, run: int, sheet: Sheet
) -> None:
    """All controllers die at once: nobody is left to go on at."""
    visitor = visit()
    pages = {path: visitor.page(path.format(run=run)) for path in PAGES}
    for page in pages.values():
        page.set_viewport_size(SMALL)
        expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
        expect(page.locator(".loading")).to_have_count(0, timeout=SOON_MS)
    for controller in cluster.controllers:
        controller.kill()
    try:
        for path, page in pages.items():
            expect(page.locator(".signal")).to_contain_text("no signal since", timeout=SOON_MS)
            expect(page.locator(".aged > .stale").first).to_have_text(OLD)
            assert lacking(page, ".aged > :not(.stale)") == [], path
            page.bring_to_front()
            sheet.take(page, path)
            if path != "/":
                page.goto("about:blank")
    finally:
        for controller in cluster.controllers:
            cluster.restart_controller(controller)
    expect(pages["/"].locator(".stale")).to_have_count(0, timeout=2 * SOON_MS)
    sheet.keep("stale")


def test_what_fails_says_what_and_what_to_do(visit: Callable[..., Visitor], run: int, sheet: Sheet) -> None:
    visitor = visit()
    page = visitor.page()
    page.set_viewport_size(SMALL)
    failed = page.locator("main [role=alert]")
    for path in PAGES:
        page.route(asks, lambda route: route.abort("connectionrefused"))
        page.goto(visitor.base + path.format(run=run))
        expect(page.locator(".verdict")).to_contain_text("cronring doctor")
        expect(failed.first).to_contain_text(re.compile("can't be shown now. The controller at .* doesn't answer"))
        assert lacking(page, "[role=alert]") == [], path
        sheet.take(page, path)
        page.unroute(asks)
        again = failed.get_by_role("button", name="Try again")
        assert again.count() == failed.count(), path
        again.evaluate_all("(all) => all.forEach((each) => each.click())")
        expect(failed).to_have_count(0, timeout=SOON_MS)
    sheet.keep("failed")


def test_no_wall_is_green_by_what_it_was_not_told(visit: Callable[..., Visitor], run: int) -> None:
    assert run
    visitor = visit()
    page = visitor.page()
    held = Held(page)
    page.goto(visitor.base + "/wall")
    expect(page.locator("h1")).to_have_text("CONNECTING")
    held.let_go(lambda route: route.fulfill(status=500, content_type="application/problem+json", body=BROKEN))
    expect(page.locator("h1")).to_have_text("NO SIGNAL")
    expect(page.locator(".wall")).to_contain_text("It broke.")
