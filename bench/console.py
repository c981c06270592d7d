"""The console at 10,000 jobs and 1,000,000 executions: how soon a page is there, a search, and a tab that stays open.

    python -m bench.console [--jobs 10000] [--executions 1000000] [--minutes 60] [--keep]

Three controllers and a runner, on a durable PostgreSQL; Chromium, headless, on the same cores. A page is loaded by a
browser that has nothing of it (cold), and again (warm). First paint is the browser's own first-contentful-paint. It is
whole when what it is of stands there. A search is typed as a whole; from that until its only row is alone in the list.
Then one tab stays at the overview, while runs begin and end. Its heap is read each minute, after a collection of
garbage, with the nodes that it has.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import click
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from bench.fleet import Fleet, fleet, until_deployed
from bench.machine import machine
from bench.results import head, rows, show
from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec
from tests.support.browsing import ARGUMENTS, chromium_here
from tests.support.databases import run_coroutine
from tests.support.looking import look

JOBS: Final = 10_000
EXECUTIONS: Final = 1_000_000
MINUTES: Final = 60
AT_ONCE: Final = 5_000  # jobs of a call
TICKING: Final = 13  # jobs of each second: a begin and an end of each are 26 events
SEARCHES: Final = 30
READY_S: Final = 60.0
SOON_MS: Final = 60_000
MODULE: Final = '''"""What ticks, and what thousands of jobs are of."""

from cronring import cron, every


@cron("0 0 1 1 *")
async def far() -> None:
    """Once a year."""
'''
OFTEN: Final = '''

@every("1s")
async def often_{0}() -> None:
    """Each second."""
'''
# Evenly over the jobs and over a week; one in forty failed.
FILL: Final = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             error_type, controller_id, runner_id, hard_deadline)
SELECT j.id, j.deployment_id, t.at, t.at, t.at, t.at, t.at + n % 50 * interval '100 ms',
       CASE WHEN n % 40 = 0 THEN 'failed' ELSE 'completed' END, CASE WHEN n % 40 = 0 THEN 'ConnectionError' END,
       'before', 'before', t.at + interval '1 hour'
FROM generate_series(1, $1::bigint) n
JOIN (SELECT id, deployment_id, row_number() OVER () - 1 AS position FROM cron_jobs WHERE verb = 'far') j
ON j.position = n % $2::bigint,
     LATERAL (SELECT date_trunc('second', now()) - ($1 - n) * interval '604800 s' / $1 AS at) t
ORDER BY n
"""
ENDS: Final = """
SELECT count(*) / 60.0 FROM cron_executions WHERE ended_at > now() - interval '60 s' AND runner_id <> 'before'"""
# Path, and what stands on a page that is whole.
PAGES: Final = {
    "/": "Latest runs", "/jobs": "console.far:n", "/jobs/console.often_0": "Who runs it",
    "/executions": "console.often_", "/upcoming": "Most in one second", "/cluster": "Runners", "/timeline": " made ",
}  # fmt: skip
# It may be noted after the page's text is there.
PAINTED: Final = """() => new Promise((done) => new PerformanceObserver((list) => {
  const entry = list.getEntriesByName("first-contentful-paint")[0];
  if (entry) done(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
SEARCHED: Final = """async (name) => {
  const field = document.querySelector("#search");
  const begun = performance.now();
  field.value = name;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const alone = () => {
    const rows = [...document.querySelectorAll("tr[data-row]")];
    return rows.length === 1 && rows[0].textContent.includes(name);
  };
  while (!alone()) {
    if (performance.now() - begun > 60_000) throw new Error(`${name} was not found`);
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - begun;
}"""


def filled(running: Fleet, jobs: int, executions: int) -> None:
    """Jobs by the API, and their past by SQL. A job that is to be known as one is found by its name."""
    file = running.folder / "console.py"
    file.write_text(MODULE + "".join(OFTEN.format(number) for number in range(TICKING)))
    running.start_runners(1, [file])
    run_coroutine(_made(running, jobs))
    run_coroutine(_remembered(running.url, executions, jobs))


async def _made(running: Fleet, jobs: int) -> None:
    async with AsyncClient(running.cluster.addresses.split(","), insecure=True) as client:
        await until_deployed(client, READY_S)
        for first in range(0, jobs, AT_ONCE):
            names = range(first, min(first + AT_ONCE, jobs))
            wanted = [JobToMake("console", "far", f"n{number:05}", JobSpec("0 0 1 1 *")) for number in names]
            done = await client.jobs.create_many(wanted)
            assert done.changed == len(wanted), done.results[0]


async def _remembered(url: str, executions: int, jobs: int) -> None:
    connection = await look(url)
    await connection.execute(FILL, executions, jobs, timeout=600)
    await connection.execute("VACUUM (ANALYZE) cron_executions")
    await connection.close()


def loads(chromium: Browser, base: str) -> list[dict[str, Any]]:
    """Each page, by a browser that has nothing, and once more."""
    found = []
    for path, text in PAGES.items():
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        cold, warm = (_load(context, base + path, text) for _ in range(2))
        context.close()
        found.append({"page": path, "cold": cold, "warm": warm})
    return found


def _load(context: BrowserContext, url: str, text: str) -> dict[str, float]:
    page = context.new_page()
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    expect(page.locator("main")).to_contain_text(text, timeout=SOON_MS)
    whole_ms = (time.perf_counter() - began) * 1_000
    painted_ms = page.evaluate(PAINTED)
    page.goto("about:blank")
    return {"painted_ms": round(painted_ms), "whole_ms": round(whole_ms)}


def searches(chromium: Browser, base: str, jobs: int) -> list[float]:
    """Milliseconds, in order."""
    page = chromium.new_page()
    page.goto(f"{base}/jobs")
    expect(page.locator("tr[data-row]").first).to_be_visible(timeout=SOON_MS)
    names = [f"n{number * 7_919 % jobs:05}" for number in range(SEARCHES)]
    took = [float(page.evaluate(SEARCHED, name)) for name in names]
    page.goto("about:blank")
    return sorted(took)


def stays(chromium: Browser, base: str, minutes: int) -> Iterator[dict[str, float]]:
    """What a tab has, once it is there and after each minute."""
    page = chromium.new_page()
    page.goto(base)
    expect(page.locator(".signal")).to_have_text("live", timeout=SOON_MS)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.enable")
    for minute in range(minutes + 1):
        if minute:
            page.wait_for_timeout(60_000)
        session.send("HeapProfiler.collectGarbage")
        told = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        yield {"minute": minute, "heap_mib": round(told["JSHeapUsedSize"] / 2**20, 2), "nodes": told["Nodes"]}


def growth(samples: list[dict[str, float]]) -> float:
    """MiB an hour: a straight line through all but the first, which is before caches are full. Of two, at least."""
    kept = samples[1:]
    line = statistics.linear_regression([each["minute"] for each in kept], [each["heap_mib"] for each in kept])
    return round(line.slope * 60, 2)


def console(jobs: int = JOBS, executions: int = EXECUTIONS, minutes: int = MINUTES) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    with fleet(3) as running, sync_playwright() as playwright:
        tell(f"{jobs:,} jobs and {executions:,} executions …")
        filled(running, jobs, executions)
        base = f"http://{running.cluster.controllers[0].http}"
        chromium = playwright.chromium.launch(executable_path=chromium_here(), args=ARGUMENTS)
        pages = loads(chromium, base)
        took = searches(chromium, base, jobs)
        tell(f"a search takes {statistics.median(took):.0f} ms; a tab stays open for {minutes} minutes …")
        samples = []
        for sample in stays(chromium, base, minutes):
            samples.append(sample)
            tell(f"minute {sample['minute']}: {sample['heap_mib']} MiB, {sample['nodes']:g} nodes")
        version, events = run_coroutine(_seen(running.url))
        found = machine(version) | {"chromium": chromium.version}
        chromium.close()
    return {
        "name": "console", "shape": {"jobs": jobs, "executions": executions, "minutes": minutes}, "machine": found,
        "pages": pages, "samples": samples, "events_per_s": events,
        "figures": {
            "slowest_first_paint_ms": max(page["cold"]["painted_ms"] for page in pages),
            "search_p50_ms": round(statistics.median(took)), "search_most_ms": round(took[-1]),
            "heap_growth_mib_per_h": growth(samples),
        },
    }  # fmt: skip


async def _seen(url: str) -> tuple[str, float]:
    """PostgreSQL's version, and events a second of the last minute: a begin for each end."""
    connection = await look(url)
    version, ends = str(await connection.fetchval("SHOW server_version")), await connection.fetchval(ENDS)
    await connection.close()
    return version, round(2 * float(ends), 1)


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(result: dict[str, Any]) -> str:
    """Markdown: each page, the search, and the tab."""
    pages = [
        [each["page"], each["cold"]["painted_ms"], each["cold"]["whole_ms"], each["warm"]["painted_ms"],
         each["warm"]["whole_ms"]]
        for each in result["pages"]
    ]  # fmt: skip
    figures, samples = result["figures"], result["samples"]
    columns = ["page", "first paint (ms)", "whole (ms)", "warm: first paint (ms)", "whole (ms)"]
    return "\n".join(
        [
            *head(result), *rows(columns, pages), "",
            f"A search: {figures['search_p50_ms']} ms in the middle of {SEARCHES},"
            f" {figures['search_most_ms']} ms at most.",
            f"A tab that hears {result['events_per_s']:g} events a second has {samples[0]['heap_mib']} MiB at first and"
            f" {samples[-1]['heap_mib']} MiB after {samples[-1]['minute']} minutes, with {samples[0]['nodes']:g} and"
            f" {samples[-1]['nodes']:g} nodes: {figures['heap_growth_mib_per_h']:+g} MiB an hour.", "",
        ]
    )  # fmt: skip


@click.command()
@click.option("--jobs", default=JOBS, show_default=True)
@click.option("--executions", default=EXECUTIONS, show_default=True, help="Of the week before.")
@click.option("--minutes", type=click.IntRange(min=2), default=MINUTES, show_default=True,
              help="For which a tab stays open.")  # fmt: skip
@click.option("--keep", "kept", is_flag=True, help="Write bench/results/console.json and .md.")
def main(jobs: int, executions: int, minutes: int, kept: bool) -> None:
    """How soon the console's pages are there, how fast it searches, and whether a tab grows.

    \b
    Examples:
      python -m bench.console --minutes 5
      python -m bench.console --jobs 500 --executions 20000 --minutes 2
    """
    result = console(jobs, executions, minutes)
    show(result, table(result), kept=kept)


if __name__ == "__main__":
    main()
