"""Reckon docs/scaling.md's figures out of bench/results/*.json: `python docs/make_scaling.py`.

Nothing is made up: a figure that no result has is named in its place, and whatever would follow from it is left out.
tests/unit/bench/test_scaling.py holds the committed page fresh.
"""

import json
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

PAGE: Final = Path(__file__).parent / "scaling.md"
RESULTS: Final = Path(__file__).parent.parent / "bench" / "results"
BEGIN: Final = "<!-- figures: made by docs/make_scaling.py -->"
END: Final = "<!-- /figures -->"

RATE: Final = 10_000  # executions a second
JOBS: Final = 1_000_000
FULL: Final = 0.7  # of a core, or of all of PostgreSQL's: what is planned for
CHECKPOINT_S: Final = 900  # checkpoint_timeout = 15min
WINDOW_S: Final = 90  # ClusterSettings.window_ms
REFETCH_S: Final = 60
SHARES: Final = 2  # a job is in the window of its primary and of its backup
RETENTION_DAYS: Final = (1, 7, 30)
LINE_MAX: Final = 120
STEADY_RATES: Final = (1_000, 500, 100)  # the highest that was measured is nearest to what is reckoned

Results = dict[str, dict[str, Any]]  # by the name of the file


class Missing(NamedTuple):
    """A figure that isn't there, and where it would be."""

    what: str


Value = float | Missing


def read(folder: Path = RESULTS) -> Results:
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))}


def figure(results: Results, file: str, *names: str) -> Value:
    """The first of `names` that the result has."""
    figures = results.get(file, {}).get("figures") or {}
    for name in names:
        if isinstance(figures.get(name), int | float):
            return float(figures[name])
    return Missing(f"{file}.json: {names[0]}")


def steady_cpu(results: Results, kind: str) -> tuple[Value, int]:
    """CPU time of an execution in ms, of all processes of a kind, and the rate at which it was measured."""
    for rate in STEADY_RATES:
        value = figure(results, "steady", f"{rate}_{kind}_cpu_ms", f"{kind}_cpu_s_per_1000_at_{rate}")
        if not isinstance(value, Missing):
            return value, rate
    return Missing(f"steady.json: {STEADY_RATES[0]}_{kind}_cpu_ms"), 0


def idle(results: Results, what: str) -> tuple[Value, int]:
    """The figure `what` with the most idle jobs, and how many they were."""
    sizes = [size for size in results.get("idle", {}).get("sizes", []) if what in size]
    if not sizes:
        return Missing(f"idle.json: sizes, {what}"), 0
    most = max(sizes, key=lambda size: size["jobs"])
    return float(most[what]), int(most["jobs"])


def floor(results: Results) -> tuple[Value, Value]:
    """Of claims and ends by the batch without any scheduler: executions a second, and PostgreSQL's CPU time in us."""
    rows = [row for row in results.get("limits", {}).get("rows", []) if row["tables"] == "ours" and row["rows"] > 1]
    if not rows:
        return Missing("limits.json: rows of our tables"), Missing("limits.json: rows of our tables")
    best = max(rows, key=lambda row: row["per_second"])
    return float(best["per_second"]), float(best["cpu_us"]["postgresql"])


def of(work: Callable[..., str], *values: Value) -> str:
    """What `work` makes of the values; the names of those that are missing, if some are."""
    missing = [value.what for value in values if isinstance(value, Missing)]
    return "not measured (" + ", ".join(dict.fromkeys(missing)) + ")" if missing else work(*values)


def number(value: float) -> str:
    """With as many digits as mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:.3g}"


def size(bytes_: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= power:
            return f"{number(bytes_ / power)} {unit}"
    return f"{bytes_:.0f} bytes"


def _busy(spent_ms: float, what: str) -> str:
    """So many cores are busy, and so many of `what` it takes when none is to be busier than FULL."""
    cores = spent_ms * RATE / 1e3
    return f"{number(cores)} cores busy; {what}: {math.ceil(cores / FULL)}"


def _cpu_rows(results: Results) -> list[list[str]]:
    """What a core can do, and how many of them it takes."""
    controllers, at = steady_cpu(results, "controllers")
    runners, _ = steady_cpu(results, "runners")
    postgresql, _ = steady_cpu(results, "postgresql")
    _, bare_us = floor(results)
    where = f"at {at:,}/s" if at else ""
    return [
        [
            "controllers' CPU: one core a process",
            of(lambda ms: f"{number(ms)} ms {where}", controllers),
            of(lambda ms: f"{number(1e3 / ms)}/s a controller", controllers),
            of(lambda ms: _busy(ms, "controllers to have"), controllers),
        ],
        [
            "runners' CPU, children's with it (no-op verbs)",
            of(lambda ms: f"{number(ms)} ms {where}", runners),
            of(lambda ms: f"{number(1e3 / ms)}/s a core", runners),
            of(lambda ms: _busy(ms, "cores of runners' hosts to have"), runners),
        ],
        [
            "PostgreSQL's CPU, as it was run",
            of(lambda ms: f"{number(ms)} ms {where}", postgresql),
            of(lambda ms: f"{number(1e3 / ms)}/s a core", postgresql),
            of(lambda ms: _busy(ms, "cores to have"), postgresql),
        ],
        [
            "PostgreSQL's CPU, in full batches: the least that it takes",
            of(lambda us: f"{number(us / 1e3)} ms", bare_us),
            of(lambda us: f"{number(1e6 / us)}/s a core", bare_us),
            of(lambda us: _busy(us / 1e3, "cores to have"), bare_us),
        ],
    ]


def _store_rows(results: Results) -> list[list[str]]:
    """What is written, kept and read."""
    wal = figure(results, "stored", "wal_bytes_each")
    execution, job = (figure(results, "stored", name) for name in ("execution_bytes", "job_bytes"))
    served, taken = (figure(results, "stored", f"refetch_{name}_us") for name in ("postgresql", "python"))
    held = figure(results, "stored", "window_job_bytes")
    in_window = min(JOBS, WINDOW_S * RATE)
    read_each_s = SHARES * in_window / REFETCH_S
    kept = ", ".join(f"{days} d" for days in RETENTION_DAYS)
    return [
        [
            "WAL, but for images of full pages",
            of(lambda each: f"{number(each)} bytes", wal),
            "the disk's, and each standby's, bytes a second",
            of(lambda each: f"{size(each * RATE)}/s, {size(each * RATE * 86_400)} a day", wal),
        ],
        [
            "images of full pages, as all jobs change between two checkpoints",
            of(lambda each: f"{number(each)} bytes a job", job),
            f"checkpoints further apart than {CHECKPOINT_S // 60} min",
            of(lambda each: f"{size(each * JOBS / CHECKPOINT_S)}/s", job),
        ],
        [
            f"disk of history, kept {kept}",
            of(lambda each: f"{number(each)} bytes, indexes included", execution),
            "what is kept: `cronring` keeps 30 days unless told otherwise",
            of(lambda each: ", ".join(size(each * RATE * 86_400 * days) for days in RETENTION_DAYS), execution),
        ],
        [
            "cron_jobs, to be held in memory",
            of(lambda each: f"{number(each)} bytes a job", job),
            "PostgreSQL's memory",
            of(lambda each: size(each * JOBS), job),
        ],
        [
            "controllers' memory: what is due within 90 s, at its primary and its backup",
            of(lambda each: f"{number(each)} bytes a job, as it is read", held),
            "memory",
            of(lambda each: f"{size(each * SHARES * in_window)} in all controllers together", held),
        ],
        [
            "refetches: each minute, all that is due within 90 s, by primary and backup",
            of(lambda pg, own: f"{pg} + {own} µs a job (PostgreSQL + controller)", served, taken),
            "jobs that come more often than each 90 s",
            of(
                lambda pg, own: (
                    f"{number(read_each_s)} jobs/s: {number(pg * read_each_s / 1e6)} cores of PostgreSQL, "
                    f"{number(own * read_each_s / 1e6)} of all controllers"
                ),
                served,
                taken,
            ),
        ],
    ]


def _other_rows(results: Results) -> list[list[str]]:
    spent, jobs = idle(results, "controller_cpu_ms_per_s")
    held, _ = idle(results, "controller_rss_mib")
    sizes = results.get("limits", {}).get("item_bytes", {})
    run, report = (
        float(sizes[name]) if name in sizes else Missing(f"limits.json: item_bytes {name}")
        for name in ("run", "report")
    )
    disk = results.get("limits", {}).get("fdatasync_us", {}).get("median")
    synced: Value = Missing("limits.json: fdatasync_us") if disk is None else float(disk)
    return [
        [
            "jobs that are not due",
            of(
                lambda ms, mib: f"{ms:g} ms of CPU a second and {mib:g} MiB a controller, with {jobs:,} jobs",
                spent,
                held,
            ),
            "they are rows, and in no controller's memory",
            "nothing more",
        ],
        [
            "network, controllers to runners and back",
            of(lambda out, back: f"{out:g} + {back:g} bytes", run, report),
            "1 Gbit/s of one host",
            of(lambda out, back: f"{size(out * RATE)}/s + {size(back * RATE)}/s", run, report),
        ],
        [
            "commits, as one statement claims or ends up to 500",
            of(lambda us: f"{us:g} µs for fdatasync on this disk", synced),
            of(lambda us: f"{number(1e6 / us)} a second of one session", synced),
            f"{2 * RATE // 500} a second in full batches",
        ],
    ]


def _sources(results: Results) -> str:
    used = {name: results.get(name, {}).get("machine", {}) for name in ("limits", "burst", "steady", "idle", "stored")}
    told = [
        f"{name}.json ({about.get('date', 'undated')})" if about else f"{name}.json (not there)"
        for name, about in used.items()
    ]
    machines = dict.fromkeys(about["machine"] for about in used.values() if "machine" in about)
    return f"Measured on {'; '.join(machines) or 'nothing'}: {', '.join(told)}."


def _cores(results: Results) -> float:
    """Of the machine on which the burst was measured."""
    return float(results["burst"]["machine"]["machine"].partition(" ")[0])


def figures(results: Results) -> str:
    """The part of the page that is made, as Markdown."""
    columns = ["part", "measured for an execution", "saturates at", f"at {RATE:,}/s and {JOBS:,} jobs"]
    cells = [*_cpu_rows(results), *_store_rows(results), *_other_rows(results)]
    best, _ = floor(results)
    burst = figure(results, "burst", "per_second")
    if isinstance(burst, Missing):  # before there were figures
        burst = float(results["burst"]["median"]["per_second"]) if "burst" in results else burst
    return "\n".join(
        [
            BEGIN,
            _filled(_sources(results)),
            "",
            "| " + " | ".join(columns) + " |",
            "|---" * len(columns) + "|",
            *("| " + " | ".join(row) + " |" for row in cells),
            "",
            _filled(
                "Reached on that machine, with all parts on its cores: "
                + of(lambda each: f"{number(each)}/s in a burst through the whole", burst)
                + of(
                    lambda each: (
                        f". So an execution takes at most {number(_cores(results) / each * 1e3)} ms of CPU "
                        "in all parts together"
                    ),
                    burst,
                )
                + ". Bare claims and ends, without a scheduler: "
                + of(lambda each: f"{number(each)}/s", best)
                + "."
            ),
            END,
        ]
    )


def _filled(text: str) -> str:
    """Prose in lines as everywhere."""
    return textwrap.fill(text, LINE_MAX, break_long_words=False, break_on_hyphens=False)


def made(page: str, results: Results) -> str:
    """The page with the figures of today."""
    before, rest = page.split(BEGIN)
    return before + figures(results) + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text("utf-8"), read()), "utf-8")
