"""`make bench-schedules`: patterns read, and ticks searched, beside croniter and cronsim. Kept in bench/results/.

Each figure is the median of many timings of a few calls, in microseconds. "next" is the first tick after an instant
that is drawn anew for each call. So a scheduler asks after a restart, an outage or a run. Libraries that keep a
position are set to it. "walk" is one tick out of the one before, which is what iterators are made for.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import click
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim

from bench.machine import host
from bench.results import save
from cronring.schema.pattern import CronPattern
from cronring.schema.zone import load_zone
from cronring.schema.zoned import ZonedPattern

BERLIN = "Europe/Berlin"
FIRST, LAST = 1_600_000_000, 2_200_000_000  # 2020 to 2039, so that tables as well as footers of zone files are met
CALLS = 10
TIMINGS = 60
BUDGET_NS = 1_500_000_000  # for each figure: some searches of theirs take a second


class Subject(NamedTuple):
    """The same pattern in each dialect; None where it can't be said."""

    name: str
    ours: str
    croniter: str | None
    cronsim: str | None


def plain(name: str, text: str) -> Subject:
    return Subject(name, text, text, text)


SUBJECTS = [
    plain("every 5 minutes", "*/5 * * * *"),
    plain("weekdays at 9", "0 9 * * 1-5"),
    plain("in the changed hour", "30 2 * * *"),
    plain("office quarters", "0,15,30,45 8-18 * * 1-5"),
    plain("first of the month", "0 6 1 * *"),
    plain("sparse: 29 February", "0 0 29 2 *"),
    Subject("every 10 seconds", "*/10 * * * * *", "* * * * * */10", "*/10 * * * * *"),
    Subject("sparse: one year", "30 2 29 2 * 2044", "30 2 29 2 * 0 2044", None),
    Subject("sparse: far years", "30 2 29 2 * 2096", None, None),
]
Timed = Callable[[], object]


def microseconds(call: Timed) -> tuple[float, float]:
    """Median and worst of the timings of a call."""
    timings: list[float] = []
    end = perf_counter_ns() + BUDGET_NS
    call()
    while len(timings) < TIMINGS and (perf_counter_ns() < end or len(timings) < 3):
        start = perf_counter_ns()
        for _ in range(CALLS):
            call()
        timings.append((perf_counter_ns() - start) / CALLS / 1000)
    return median(timings), max(timings)


def instants() -> Iterator[int]:
    random = Random(1)
    picks = [random.randint(FIRST, LAST) for _ in range(997)]
    return (picks[number % len(picks)] for number in count())


def moments(zone: str) -> Iterator[datetime]:
    tzinfo = ZoneInfo(zone)
    known = [datetime.fromtimestamp(second, tzinfo) for second, _ in zip(instants(), range(997), strict=False)]
    return (known[number % len(known)] for number in count())


def our_calls(text: str) -> dict[str, Timed]:
    pattern = CronPattern.parse(text)
    zoned = ZonedPattern(pattern, load_zone(BERLIN))
    seconds, utc = instants(), moments("UTC")
    back = instants()
    walked = [zoned.next_second(FIRST)]

    def walk() -> None:
        walked[0] = zoned.next_second(walked[0] if walked[0] is not None else FIRST)

    return {
        "parse": lambda: CronPattern.parse(text),
        "next, UTC": lambda: pattern.next_after(next(utc)),
        "next, Berlin": lambda: zoned.next_second(next(seconds)),
        "walk, Berlin": walk,
        "last, Berlin": lambda: zoned.last_second(next(back)),
        "count 10 years, Berlin": lambda: zoned.count_seconds(FIRST, FIRST + 315_360_000),
    }


def croniter_calls(text: str) -> dict[str, Timed]:
    utc, berlin = moments("UTC"), moments(BERLIN)
    cached = croniter(text, next(utc))
    walking = croniter(text, datetime.fromtimestamp(FIRST, ZoneInfo(BERLIN)))

    def following(moment: datetime) -> object:
        return cached.get_next(datetime, start_time=moment)

    def walk() -> None:
        try:
            walking.get_next(datetime)
        except CroniterBadDateError:  # the year is over
            walking.set_current(FIRST)

    return {
        "parse": lambda: croniter(text, datetime.fromtimestamp(FIRST, UTC)),
        "next, UTC": lambda: following(next(utc)),
        "next, Berlin": lambda: following(next(berlin)),
        "walk, Berlin": walk,
    }


def cronsim_calls(text: str) -> dict[str, Timed]:
    utc, berlin = moments("UTC"), moments(BERLIN)
    walking = CronSim(text, datetime.fromtimestamp(FIRST, ZoneInfo(BERLIN)))
    parsed = datetime.fromtimestamp(FIRST, UTC)
    return {
        "parse": lambda: CronSim(text, parsed),
        "next, UTC": lambda: next(CronSim(text, next(utc))),  # it can't be set to another instant
        "next, Berlin": lambda: next(CronSim(text, next(berlin))),
        "walk, Berlin": lambda: next(walking),
    }


def measure(subject: Subject) -> list[dict[str, Any]]:
    calls = {"cronring": our_calls(subject.ours)}
    if subject.croniter is not None:
        calls["croniter"] = croniter_calls(subject.croniter)
    if subject.cronsim is not None:
        calls["cronsim"] = cronsim_calls(subject.cronsim)
    rows = []
    for library, timed in calls.items():
        figures = {name: microseconds(call) for name, call in timed.items()}
        rows.append({"pattern": subject.name, "text": subject.ours, "library": library, "us": figures})
    return rows


def table(head: dict[str, str], rows: list[dict[str, Any]]) -> str:
    columns = list(rows[0]["us"])
    lines = [
        "### schedules: microseconds, median (worst)",
        "",
        " | ".join(f"{name} {one}" for name, one in head.items()),
    ]
    lines += ["", "| pattern | | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        cells = [f"{one[0]:.1f} ({one[1]:.1f})" if one else "" for one in map(row["us"].get, columns)]
        lines.append(f"| {row['pattern']} `{row['text']}` | {row['library']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


@click.command()
def main() -> None:
    """Parse, next, last and count, for ordinary patterns and for sparse ones."""
    rows = [row for subject in SUBJECTS for row in measure(subject)]
    head = {**host(), **{name: version(name) for name in ("cronring", "croniter", "cronsim", "tzdata")}}
    save("schedules", {"machine": head, "rows": rows}, table(head, rows))
    click.echo(table(head, rows))


if __name__ == "__main__":
    main()
