"""A headless Chromium, as people's browsers are: what a page logs, what its policy forbids, and what it asks for.

Playwright drives Debian's `chromium-headless-shell`, or `chromium`, which takes a third more CPU for a page. Where
there is neither, the test is skipped and says so. Only loopback addresses are reached.
"""

import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from playwright.async_api import Page, async_playwright

from tests.support.waiting import TIMEOUT_S

# Tests run as root, where Chromium has no sandbox. It resolves no name, so it asks nobody else.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def chromium_here() -> str:
    """Its path. Skips the test where there is none."""
    for program in ("chromium-headless-shell", "chromium", "chromium-browser"):
        if found := shutil.which(program):
            return found
    pytest.skip("no chromium on the PATH (Debian: apt-get install chromium-headless-shell)")


class Browsed(NamedTuple):
    """`problems`: errors and warnings of the console, of scripts, and of the content security policy."""

    page: Page
    problems: list[str]


@contextlib.asynccontextmanager
async def browsing(width: int = 1_280, height: int = 800) -> AsyncIterator[Browsed]:
    """A page in a new profile. Skips the test where there is no Chromium."""
    chromium = chromium_here()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = await browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(TIMEOUT_S * 1_000)
        problems: list[str] = []
        page.on("console", lambda line: problems.append(line.text) if line.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        try:
            yield Browsed(page, problems)
        finally:
            await browser.close()
