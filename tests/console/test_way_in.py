"""The way in: a click on what a real dev prints, or on what `cronring console` prints, and one is logged in."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import SHOP, Visitor, token_of
from tests.support.cluster import READY_S
from tests.support.secured import SecuredCluster

LINK = re.compile(r"step=(http://127\.0\.0\.1:\d+/login/link/\S+)")
SOON_MS = 40_000


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Iterator[str]]:
    """What a real `cronring dev` prints, line by line, until it is ended."""
    command = [sys.executable, "-m", "cronring.cli.main", "dev", str(SHOP), "--plain", "--controllers", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment | {"XDG_STATE_HOME": str(tmp_path)}
    )
    assert process.stdout is not None
    late = threading.Timer(2 * READY_S, process.kill)
    late.start()
    try:
        yield iter(process.stdout)
    finally:
        late.cancel()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=READY_S)


def test_a_newcomer_clicks_the_link_that_dev_prints(chromium: Browser, dev: Iterator[str]) -> None:
    """There is no warning of a certificate, nothing to paste, and the console is there. The link is used up by that."""
    link = next(found[1] for line in dev if (found := LINK.search(line)))
    draining = threading.Thread(target=lambda: list(dev), daemon=True)
    draining.start()
    context = chromium.new_context()  # which takes no certificate that it doesn't know
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page = context.new_page()
    page.goto(link)
    expect(page).to_have_url(re.compile(r"^http://127\.0\.0\.1:\d+/$"))
    expect(page.locator(".who")).to_contain_text("token:dev")
    expect(page.locator("body")).to_contain_text("shop.sells", timeout=SOON_MS)
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    context.close()
    assert complaints == []
    other = chromium.new_context().new_page()
    other.goto(link)
    expect(other.locator("[role=alert]")).to_contain_text("used already")
    other.context.close()


def entered(cluster: SecuredCluster, page: Page, role: str, *words: str) -> str:
    """By the link of that role. Returns it."""
    printed = cluster.ask("console", "--print", *words, token=token_of(cluster, role))
    assert printed.returncode == 0, printed.stderr
    assert "within ten minutes" in printed.stderr
    link = printed.stdout.strip()
    page.goto(link)
    return link


def test_console_prints_a_link_to_a_page_by_ones_own_token(
    visit: Callable[..., Visitor], cluster: SecuredCluster
) -> None:
    visitor = visit()
    visitor.context.clear_cookies()
    page = visitor.context.new_page()
    link = entered(cluster, page, "viewer", "/jobs/shop.sells")
    assert link.startswith("https://127.0.0.1:")
    assert page.url.endswith("/jobs/shop.sells")
    expect(page.locator(".who")).to_contain_text("token:viewer")
    expect(page.locator("h1")).to_contain_text("shop.sells")
    expect(page.locator(".lead")).to_contain_text("every second")  # so what may be done with it would be there
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
