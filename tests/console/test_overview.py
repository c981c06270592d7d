"""The overview, what is coming, and the wall: herds, the last hour, whose a job is, old pauses."""

import re
import signal
import time
from collections.abc import Callable
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.console.hosted import until_hosted
from tests.console.test_pages import RULES
from tests.support.cluster import READY_S
from tests.support.databases import run_coroutine
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

SOON_MS: Final = 60_000
HERD: Final = 40
VERB: Final = '''
@cron("30 3 * * *")
async def nightly_{0}() -> None:
    """At the same second as all others."""
'''


@pytest.fixture(scope="module")
def herd(cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> SecuredCluster:
    """Forty jobs that begin at one instant, and one whose only runner has left."""
    folder = tmp_path_factory.mktemp("herd")
    verbs = "\n".join(VERB.format(number) for number in range(HERD))
    for name, declared in (("herd", verbs), ("lone", VERB.format("lone"))):
        (folder / f"{name}.py").write_text(f'"""A herd."""\n\nfrom cronring import cron\n\n{declared}')
    cluster.start_runner(folder / "herd.py")
    lone = cluster.start_runner(folder / "lone.py")
    until_hosted(cluster, "lone")
    lone.send(signal.SIGTERM)
    lone.popen.wait(READY_S)
    told = wait_until(lambda: any(each["left_at"] for each in cluster.cli("cluster", "runners")), "no runner has left")
    run_coroutine(told)
    return cluster


def test_a_herd_is_seen_and_what_jitter_would_make_of_it(visit: Callable[..., Visitor], herd: SecuredCluster) -> None:
    assert herd.runners
    page = visit().page("/jobs?q=module:herd")
    expect(page.locator("tr[data-row]").first).to_be_visible(timeout=SOON_MS)
    page.goto(page.url.split("/jobs")[0] + "/upcoming")
    day = page.locator("section:has(#coming1)")
    expect(day).to_contain_text(re.compile("4[0-9] begin in one second"), timeout=SOON_MS)
    expect(day.locator("rect.herd")).not_to_have_count(0)
    expect(day).to_contain_text("herd.nightly_")
    over = day.locator(".late.state").filter(has_text="of lone")
    expect(over).to_have_text(re.compile(r"\d\d:30:00: 1 run of lone is due, and no runner hosts it\.$"))
    expect(page.locator(".verdict")).to_contain_text(re.compile("No runner hosts lone|jobs fail since"))
    expect(page.locator("section:has(#coming7)")).to_contain_text("ticks of", timeout=SOON_MS)
    most = day.locator("p").filter(has_text="Most in one second")
    plain = int(re.sub(r".*Most in one second: (\d+).*", r"\1", most.inner_text(), flags=re.DOTALL))
    day.get_by_role("button", name="As if all jobs had").click()
    expect(day.locator("rect.herd")).to_have_count(0)
    spread = int(re.sub(r".*Most in one second: (\d+).*", r"\1", most.inner_text(), flags=re.DOTALL))
    assert plain >= HERD
    assert spread < HERD / 2
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()


def test_the_overview_tells_the_last_hour_and_what_happened(visit: Callable[..., Visitor]) -> None:
    page = visit().page()
    hour = page.locator("section:has(#hour)")
    expect(hour).to_contain_text("completed", timeout=SOON_MS)
    expect(hour).to_contain_text("failed")
    expect(hour).to_contain_text(re.compile(r"ms p50|s p50"))
    expect(page.locator("section:has(#lately) .timeline li")).not_to_have_count(0, timeout=SOON_MS)
    expect(page.locator("section:has(#coming1) svg")).to_be_visible(timeout=SOON_MS)


def test_who_points_at_a_job_sees_whose_it_is(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/cluster")
    job = page.locator("ul.across a").first
    expect(job).to_be_visible(timeout=SOON_MS)
    name = job.inner_text()
    job.focus()
    owners = re.compile(re.escape(name) + r": \S+ first, then \S+")
    expect(page.locator(".whose")).to_have_text(owners, timeout=SOON_MS)
    expect(page.locator("circle.held")).to_have_count(2)
    expect(page.locator("circle.dim")).to_have_count(4)
    page.get_by_role("slider").focus()
    expect(page.locator("circle.held")).to_have_count(0)


def test_motion_is_left_out_for_those_who_want_none(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/cluster")
    arc = page.locator("circle.arc").first
    expect(arc).to_be_visible(timeout=SOON_MS)
    assert "0.5s" in str(arc.evaluate("each => getComputedStyle(each).transitionDuration"))
    page.emulate_media(reduced_motion="reduce")
    assert arc.evaluate("each => getComputedStyle(each).transitionDuration") == "0s"


def test_a_pause_says_by_whom_and_until_when(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/jobs/shop.prints")
    paused_by_the_console(page)
    page.goto(page.url.split("/jobs")[0] + "/")
    paused = page.locator("section:has(#paused) li")
    expect(paused).to_contain_text("shop.prints", timeout=SOON_MS)
    expect(paused).to_contain_text("by token:admin")
    expect(paused).to_contain_text("until somebody resumes it")
    expect(page.locator("section:has(#lately)")).to_contain_text("token:admin paused shop.prints", timeout=SOON_MS)


def paused_by_the_console(page: Page) -> None:
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.locator("button.act").click()
    expect(dialog).to_have_count(0, timeout=SOON_MS)


def test_the_wall_is_quiet_and_names_what_comes_next(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/wall")
    expect(page.locator("main")).to_contain_text("p50", timeout=SOON_MS)
    expect(page.locator("main")).to_contain_text("next:")
    until = time.monotonic() + SOON_MS / 1_000
    while not page.evaluate("document.documentElement.scrollHeight <= innerHeight"):
        assert time.monotonic() < until, "nobody scrolls a wall"
        page.wait_for_timeout(100)  # a poll with a deadline: its parts come one by one
