"""What happens is seen as it happens, what is old looks old, and eight tabs have one stream."""

import signal
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Request, expect

from tests.console.conftest import SHOP, Visitor
from tests.support.databases import PostgresServer, running_server
from tests.support.secured import SecuredCluster

SOON_MS = 40_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Of its own, as it goes away."""
    with running_server("postgres18") as made:
        yield made


@pytest.fixture(scope="module")
def cluster(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(server.url(server.create_database()), tmp_path_factory.mktemp("console")) as made:
        made.let_in()
        for _ in range(3):
            made.start_controller()
        made.start_runner(SHOP)
        yield made


def test_eight_tabs_have_one_stream(visit: Callable[..., Visitor]) -> None:
    """HTTP/1.1 allows six connections: with a stream for each, the seventh tab would hang."""
    visitor = visit()
    streams: list[str] = []

    def asked(request: Request) -> None:
        if "/api/v1/events" in request.url:
            streams.append(request.url)

    visitor.context.on("request", asked)
    pages = [visitor.page() for _ in range(8)]
    for page in pages:
        expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
        expect(page.locator("body")).to_contain_text("shop.sells", timeout=SOON_MS)
    assert len(streams) == 1
    with visitor.context.expect_event("request", lambda each: "/api/v1/events" in each.url, timeout=SOON_MS):
        pages[0].goto("about:blank")
    expect(pages[1].locator(".signal")).to_have_text("live", timeout=SOON_MS)
    latest = "section:has(#latest) ol a"
    newest = pages[1].locator(latest).first.get_attribute("href") or ""
    expect(pages[7].locator(latest).first).not_to_have_attribute("href", newest, timeout=SOON_MS)
    assert len(streams) == 2, "another tab has taken over"


def test_the_first_run_of_an_empty_list_comes_by_itself(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    """Rows that somebody reads are left where they are, for a minute; an empty list has none."""
    page = visit("operator").page("/executions?q=job:shop.prints completed")
    expect(page.locator("main")).to_contain_text("No run fits", timeout=SOON_MS)
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    cluster.cli("jobs", "trigger", "shop.prints")
    expect(page.locator("tr[data-row]")).to_have_count(1, timeout=20_000)
    expect(page.locator("h1")).to_have_text("Runs 1", timeout=20_000)


def test_a_death_is_seen_on_the_ring(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    page = visit().page("/cluster")
    expect(page.locator(".ring .big")).to_have_text("3", timeout=SOON_MS)
    cluster.controllers[2].kill()
    expect(page.locator(".ring .big")).to_have_text("2", timeout=SOON_MS)
    expect(page.locator(".verdict")).to_contain_text("is dead", timeout=SOON_MS)
    cluster.restart_controller(cluster.controllers[2])
    expect(page.locator(".ring .big")).to_have_text("3", timeout=SOON_MS)


def test_without_postgresql_the_page_says_so_keeps_what_it_had_and_recovers(
    visit: Callable[..., Visitor], server: PostgresServer
) -> None:
    page = visit().page("/jobs")
    expect(page.locator("tr[data-row]").first).to_be_visible(timeout=SOON_MS)
    server.stop()
    try:
        expect(page.locator(".verdict")).to_contain_text("PostgreSQL", timeout=SOON_MS)
        expect(page.locator("tr[data-row]").first).to_be_visible()
    finally:
        server.start()
    expect(page.locator(".verdict")).not_to_contain_text("PostgreSQL", timeout=2 * SOON_MS)


def test_a_dead_controller_leaves_no_green_wall(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    """A process that stands still keeps its connections open, and says nothing."""
    page = visit(at=1).page("/wall")
    expect(page.locator("h1")).not_to_have_text("CONNECTING", timeout=SOON_MS)
    expect(page.locator("h1")).not_to_have_text("NO SIGNAL", timeout=SOON_MS)
    cluster.controllers[1].send(signal.SIGSTOP)
    try:
        expect(page.locator("h1")).to_have_text("NO SIGNAL", timeout=SOON_MS)
    finally:
        cluster.controllers[1].send(signal.SIGCONT)
    expect(page.locator("h1")).not_to_have_text("NO SIGNAL", timeout=SOON_MS)
