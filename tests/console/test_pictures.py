"""Pictures of the console for the docs, at the sizes that people have. `make pictures` keeps them in docs/pictures."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.console.conftest import Visitor
from tests.console.shown import MODULES, live
from tests.support.secured import SecuredCluster

SOON_MS: Final = 60_000
BYTES_MAX: Final = 400_000  # of a picture
KEPT: Final = Path(__file__).parents[2] / "docs" / "pictures"
SIZES: Final[dict[str, ViewportSize]] = {
    "phone": {"width": 390, "height": 844},
    "laptop": {"width": 1280, "height": 800},
    "wall": {"width": 1920, "height": 1080},
}


class Shown(NamedTuple):
    """A page. `text`: what stands there once it is whole. `killed`: a controller is, before."""

    name: str
    path: str
    text: str
    killed: bool = False


SHOWN: Final = (
    Shown("overview", "/", "ConnectionRefusedError"),
    Shown("jobs", "/jobs", "mail.bounces"),
    Shown("new", "/jobs/new", "Run it once"),
    Shown("job", "/jobs/billing.charge_cards", "Next ten ticks"),
    Shown("executions", "/executions", "search.refresh"),
    Shown("execution", "/executions/{run}", "branch"),
    Shown("upcoming", "/upcoming", "Most in one second"),
    Shown("checks", "/checks", "accounted for"),
    Shown("deployments", "/deployments", "billing@"),
    Shown("queues", "/queues", "reports"),
    Shown("limits", "/limits", "its database"),
    Shown("sets", "/sets", "billing-prod"),
    Shown("templates", "/templates", "nightly"),
    Shown("workspaces", "/workspaces", "oslo"),
    Shown("webhooks", "/webhooks", "Nobody is told"),
    Shown("access", "/access", "Runner grants"),
    Shown("actions", "/actions", "the crawler is moved"),
    Shown("audit", "/audit", "Jobs.PauseJob"),
    Shown("cluster", "/cluster", "is dead", killed=True),
    Shown("timeline", "/timeline", "was lost"),
    Shown("wall", "/wall", "begin late by"),
)
DARK: Final = {"overview", "job", "execution", "wall"}
Scheme: TypeAlias = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")


@pytest.fixture(scope="module")
def modules() -> Sequence[Path]:
    return MODULES


@pytest.fixture(scope="module")
def run(cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> int:
    """An execution that goes on, on a cluster that has something to show."""
    return live(cluster, tmp_path_factory.mktemp("shown"))


def test_jobs_fail_since_the_first_failure_in_a_row(
    visit: Callable[..., Visitor], cluster: SecuredCluster, run: int
) -> None:
    """And not since one of a week ago, when they had succeeded in between."""
    assert run
    failed = cluster.cli("executions", "list", "--job", "billing.send_invoices", "--failed", "--limit", "100")
    first = min(row["ended_at"] for row in failed if row["ended_at"] > last_success(cluster))
    page = visit().page("/jobs/billing.send_invoices")
    since = f"({first[:10]} )?{first[11:19]}"  # with its date, if that was before midnight
    expect(page.locator(".verdict")).to_contain_text(re.compile(f"2 jobs fail since {since}, all in billing"))
    expect(page.locator(".problem")).to_contain_text("in a row without success")


def last_success(cluster: SecuredCluster) -> str:
    ticks: str = cluster.cli("jobs", "get", "billing.send_invoices")["last_success"]
    return ticks


def test_each_page_fits_each_screen(
    visit: Callable[..., Visitor], cluster: SecuredCluster, run: int, tmp_path: Path
) -> None:
    """Loaded once, on a phone, and then as wide as others (test_pages.py: the other way round)."""
    folder = KEPT if os.environ.get("CRONRING_KEEP_PICTURES") else tmp_path
    folder.mkdir(exist_ok=True)
    visitor = visit()
    page = visitor.page()
    for shown in SHOWN:
        if shown.killed:
            cluster.controllers[-1].kill()
        page.set_viewport_size(SIZES["phone"])
        page.goto(visitor.base + shown.path.format(run=run))
        for scheme in SCHEMES if shown.name in DARK else SCHEMES[:1]:
            page.emulate_media(color_scheme=scheme)
            for size, viewport in SIZES.items():
                page.set_viewport_size(viewport)
                settle(page, shown)
                assert_fits(page)
                name = "-".join([shown.name, size, *(["dark"] if scheme == "dark" else [])])
                picture = (folder if is_kept(shown, size, scheme) else tmp_path) / f"{name}.png"
                page.screenshot(path=picture, animations="disabled", caret="hide")
                assert picture.stat().st_size < BYTES_MAX


def is_kept(shown: Shown, size: str, scheme: Scheme) -> bool:
    """A wall hangs in the dark; of other pages, one picture in the dark is enough."""
    if shown.name == "wall":
        return size == "wall" and scheme == "dark"
    return scheme == "light" or size == "laptop"


def settle(page: Page, shown: Shown) -> None:
    expect(page.locator("body")).to_contain_text(shown.text, timeout=SOON_MS)
    expect(page.locator(".loading")).to_have_count(0)
    if shown.path == "/wall":
        expect(page.locator("h1")).not_to_have_text("CONNECTING")
    else:
        expect(page.locator(".signal")).to_have_text("live")


def assert_fits(page: Page) -> None:
    """Nobody has to scroll to the right."""
    beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert beyond == 0
