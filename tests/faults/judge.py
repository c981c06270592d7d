"""Which ticks had to run, within which bounds, and did they? Reads the database and the verbs' own journal only.

In the spirit of the Jepsen analysis of the Chronos job scheduler (jepsen.io, 2015). tests/support/judge.py tells what
runs twice, early, beside itself, what is finished and not recorded, and what is in no books. Here is told what the
books may not be used for: a tick that is in them as skipped, or that ran late, though nothing was in its way.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.bounds import Bounds
from tests.support import judge as books
from tests.support.judge import Circumstances, JournalRun, Verdict, instant
from tests.support.looking import look

JUST_NOW_S = 0.2
OVERLAP_SLACK_S = 0.6  # a run's report takes so long to be committed on a busy machine; its successor waits for that


@dataclass
class Finding:
    """What one trial came to. Lists name (verb, what): all empty is innocent."""

    verdict: Verdict = field(default_factory=Verdict)
    late: list[tuple[str, str]] = field(default_factory=list)
    unexcused: list[tuple[str, str]] = field(default_factory=list)  # passed over though it could have run
    outcomes: list[tuple[str, str]] = field(default_factory=list)  # that this fault doesn't explain
    lateness_s: list[float] = field(default_factory=list)  # of ticks that no excuse covers, ascending
    excused: int = 0
    runs: int = 0

    def guilty(self) -> dict[str, list[tuple[str, str]]]:
        own = {"late": self.late, "unexcused": self.unexcused, "outcomes": self.outcomes}
        return self.verdict.guilty() | {kind: found for kind, found in own.items() if found}


async def _rows(database_url: str) -> tuple[list[Any], list[Any]]:
    connection = await look(database_url)
    try:
        return await connection.fetch(books.EXECUTIONS), await connection.fetch(books.SKIPS)
    finally:
        await connection.close()


async def judge(database_url: str, journal: Path, until: float, bounds: Bounds, known: Circumstances) -> Finding:
    """Of all ticks up to `until` (epoch seconds of PostgreSQL's clock)."""
    finding = Finding(await books.judge(database_url, bounds.periods_s, until, journal, known))
    executions, skips = await _rows(database_url)
    runs = books.read_journal(journal)
    finding.runs = len(runs)
    if not bounds.one_clock:
        finding.verdict.early = [each for each in finding.verdict.early if "in the journal" not in each[1]]
    judge_starts(finding, executions, runs, until, bounds)
    judge_skips(finding, skips, executions, runs, until, bounds)
    for execution in executions:
        outcome = execution["outcome"]
        if outcome is not None and outcome not in bounds.outcomes:
            finding.outcomes.append((execution["verb"], f"execution {execution['id']}: {outcome}"))
    return finding


def judge_starts(
    finding: Finding, executions: Sequence[Any], runs: Iterable[JournalRun], until: float, bounds: Bounds
) -> None:
    """Each tick that ran, and that nothing was in the way of, began in time: by the verb's own word."""
    began = {run.execution_id: run.started_at for run in runs}
    for execution in executions:
        tick, verb = execution["tick"], execution["verb"]
        if execution["trigger"] not in books.BY_SCHEDULE or tick > until:
            continue
        if bounds.excused(verb, tick):
            finding.excused += 1
            continue
        started_at = began.get(execution["id"]) if bounds.one_clock else execution["started_at"]
        if started_at is None:
            continue  # claimed, and its runner died before it began: its outcome says so
        late_s = started_at - execution["run_at"]
        finding.lateness_s.append(late_s)
        if late_s > bounds.late_s:
            finding.late.append((verb, f"{instant(tick)} by {late_s:.3f} s"))
    finding.lateness_s.sort()


def judge_skips(
    finding: Finding, skips: Iterable[Any], executions: Iterable[Any], runs: Iterable[JournalRun], until: float,
    bounds: Bounds,
) -> None:  # fmt: skip
    """A tick is passed over for a reason that others can see: a run of its verb went on, or nothing could run.

    Where a tick may be later than its verb's period, the next one may be there before it: that one must have run.
    """
    occupied = _occupied(executions, runs) if bounds.one_clock else _booked(executions)
    for skip in skips:
        verb = skip["verb"]
        period = bounds.periods_s.get(verb)
        if period is None:
            continue
        first = -(-int(skip["first_tick"]) // period) * period
        for tick in range(first, min(int(skip["last_tick"]), int(until)) + 1, period):
            if bounds.excused(verb, tick):
                finding.excused += 1
                continue
            spans, allowed_s = occupied.get(verb, ()), bounds.late_s
            busy = any(began <= tick + allowed_s and tick <= ended for began, ended in spans)
            overtaken = allowed_s > period and any(tick <= began <= tick + period + allowed_s for began, _ in spans)
            if not {"overlap": busy, "superseded": busy or overtaken}.get(skip["reason"], False):
                finding.unexcused.append((verb, f"{instant(tick)}: {skip['reason']}"))


def _occupied(executions: Iterable[Any], runs: Iterable[JournalRun]) -> dict[str, list[tuple[float, float]]]:
    """When each verb ran: by its own word, or, of one that never came to its end, until the books say."""
    recorded = {each["id"]: each for each in executions}
    spans: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        row = recorded.get(run.execution_id)
        ended = run.ended_at
        if row is not None and (ended is None or (row["ended_at"] or 0.0) > ended):
            ended = row["ended_at"]
        last = float("inf") if ended is None else ended
        spans.setdefault(run.verb, []).append((run.started_at - OVERLAP_SLACK_S, last + OVERLAP_SLACK_S))
    return spans


def _booked(executions: Iterable[Any]) -> dict[str, list[tuple[float, float]]]:
    """The same by the books alone, where PostgreSQL's clock is another than the journal's."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for row in executions:
        ended = float("inf") if row["ended_at"] is None else row["ended_at"]
        spans.setdefault(row["verb"], []).append((row["claimed_at"] - OVERLAP_SLACK_S, ended + OVERLAP_SLACK_S))
    return spans


def judge_when_settled(
    database_url: str, journal: Path, bounds: Bounds, known: Circumstances, settle_s: float
) -> Finding:
    """Of every tick up to now: as soon as nobody is guilty, or the last finding before the deadline."""

    async def settled() -> Finding:
        connection = await look(database_url)
        now = await connection.fetchval("SELECT extract(epoch FROM now())::float8")
        await connection.close()
        deadline = time.monotonic() + settle_s
        while True:
            finding = await judge(database_url, journal, now - JUST_NOW_S, bounds, known)
            if not finding.guilty() or time.monotonic() > deadline:
                return finding
            await asyncio.sleep(0.25)

    return asyncio.run(settled())


def percentile(ascending: Sequence[float], share: float) -> float:
    """0.0 of nothing."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))] if ascending else 0.0
