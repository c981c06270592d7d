"""The judge of real runs, in the spirit of the Jepsen analysis of Chronos: which ticks had to run, and did they?

It reads the database's tables and the journal that the verbs themselves write, and shares no code with the controllers:
the ticks of a job are the multiples of its period, computed here.
"""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.looking import look

ENTRY = '{"event"'  # what every line of a journal begins with
EXECUTIONS = """
SELECT j.verb, e.trigger, e.attempt, extract(epoch FROM e.tick)::float8 AS tick,
       extract(epoch FROM e.run_at)::float8 AS run_at, extract(epoch FROM e.claimed_at)::float8 AS claimed_at,
       extract(epoch FROM coalesce(e.started_at, e.claimed_at))::float8 AS started_at,
       extract(epoch FROM e.ended_at)::float8 AS ended_at, e.outcome, e.id, r.pid
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id LEFT JOIN runners r ON r.id = e.runner_id ORDER BY e.tick
"""
SKIPS = """
SELECT j.verb, s.reason, extract(epoch FROM s.first_tick)::float8 AS first_tick,
       extract(epoch FROM s.last_tick)::float8 AS last_tick, s.ticks
FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id
"""
JOBS = """
SELECT verb, extract(epoch FROM created_at)::float8 AS created_at,
       coalesce(extract(epoch FROM CASE WHEN paused_until IS NULL THEN paused_tick END)::float8, 1e15) AS paused_tick
FROM cron_jobs WHERE removed_at IS NULL
"""
CANCELLATIONS = """
SELECT j.verb, a.action, extract(epoch FROM a.at)::float8 AS at
FROM cron_actions a JOIN cron_jobs j ON j.id = a.job_id WHERE a.action IN ('cancel', 'restore') ORDER BY a.id
"""
HELD_S = 20.0  # a runner may have kept a result for so long while PostgreSQL or the controllers were away
JUST_NOW_S = 2.0
BY_SCHEDULE = ("schedule", "catch_up")  # the others are further attempts, or no ticks of the schedule


@dataclass(frozen=True)
class Circumstances:
    """What the judge must know. `runner_deaths`: when one was killed; `absences`: from when to when one stood still.

    `beside`: of how many runs of a verb may go on at once, where that is more than one. `deaths_by_pid`: of runners
    that may have held results for long, as nobody was there to take them. `child_deaths`: of children, by process id.
    """

    runner_deaths: Sequence[float] = ()
    absences: Sequence[tuple[float, float]] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    deaths_by_pid: Mapping[int, float] = field(default_factory=dict)
    child_deaths: Mapping[int, float] = field(default_factory=dict)

    def died(self, run: "JournalRun") -> float:
        """When a run without an end ended at the latest: with its runner, or with the child that it ran in."""
        deaths = [*self.runner_deaths, self.child_deaths.get(run.pid or 0, 0.0)]
        return min((death for death in deaths if death >= run.started_at), default=float("inf"))


@dataclass
class Verdict:
    """What the judge found. The lists name the offending (verb, tick); all empty is innocent."""

    due: int = 0
    executed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    unaccounted: list[tuple[str, str]] = field(default_factory=list)
    twice: list[tuple[str, str]] = field(default_factory=list)
    early: list[tuple[str, str]] = field(default_factory=list)
    overlapping: list[tuple[str, str]] = field(default_factory=list)
    results_lost: list[tuple[str, str]] = field(default_factory=list)
    worst_lateness_s: float = 0.0

    def guilty(self) -> dict[str, list[tuple[str, str]]]:
        kinds = ("unaccounted", "twice", "early", "overlapping", "results_lost")
        return {kind: getattr(self, kind) for kind in kinds if getattr(self, kind)}

    def __str__(self) -> str:
        skipped = ", ".join(f"{reason} {ticks}" for reason, ticks in sorted(self.skipped.items())) or "none"
        outcomes = ", ".join(f"{outcome} {count}" for outcome, count in sorted(self.outcomes.items()))
        return (
            f"ticks due {self.due} | executed {self.executed} ({outcomes}) | skipped: {skipped} | "
            f"unaccounted {len(self.unaccounted)} | duplicates {len(self.twice)} | early {len(self.early)} | "
            f"overlapping {len(self.overlapping)} | results lost {len(self.results_lost)} | "
            f"worst lateness {self.worst_lateness_s:.3f} s"
        )


@dataclass(frozen=True)
class JournalRun:
    """One run as the verb itself noted it. `ended_at` is None when it never came to its end.

    `seen_at`: when it last noted that it was still going on; None of a verb that doesn't. `pid`: of its child.
    """

    verb: str
    execution_id: int
    tick: float
    started_at: float
    ended_at: float | None
    seen_at: float | None = None
    pid: int | None = None


def journal_entries(path: Path) -> Iterator[dict[str, Any]]:
    """Lines are JSON `{"event": "start"|"on"|"end", "verb", "execution", "tick", "at"}`, appended in one write each.

    A process that is killed in its write leaves a part of a line, and what comes next stands behind that.
    """
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            entry: dict[str, Any] = json.loads(line[line.rindex(ENTRY) :])
            yield entry


def read_journal(path: Path) -> list[JournalRun]:
    starts: list[dict[str, Any]] = []
    ends: dict[int, float] = {}
    seen: dict[int, float] = {}
    for entry in journal_entries(path):
        if entry["event"] == "start":
            starts.append(entry)
        elif entry["event"] == "on":
            seen[entry["execution"]] = entry["at"]
        else:
            ends[entry["execution"]] = entry["at"]
    return [
        JournalRun(
            s["verb"], id_ := s["execution"], s["tick"], s["at"], ends.get(id_), seen.get(id_), s.get("pid"),
        )
        for s in starts
    ]  # fmt: skip


def instant(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%H:%M:%S.%f")[:-3]


def judge_ticks(verdict: Verdict, verb: str, due: Iterable[int], executed: Counter[int], skips: list[Any]) -> None:
    """Every due tick is executed once or inside a skipped range; and a range holds as many ticks as it claims."""
    for tick in due:
        verdict.due += 1
        covered = executed[tick] + sum(1 for s in skips if s["first_tick"] <= tick <= s["last_tick"])
        if covered == 0:
            verdict.unaccounted.append((verb, instant(tick)))
        elif covered > 1:
            verdict.twice.append((verb, instant(tick)))
    for skip in skips:
        verdict.skipped[skip["reason"]] += skip["ticks"]


def judge_executions(verdict: Verdict, executions: list[Any]) -> None:
    for execution in executions:
        verdict.executed += 1
        verdict.outcomes[execution["outcome"] or "running"] += 1
        if min(execution["claimed_at"], execution["started_at"]) < execution["run_at"]:
            verdict.early.append((execution["verb"], instant(execution["tick"])))
        lateness = execution["started_at"] - execution["run_at"]
        verdict.worst_lateness_s = max(verdict.worst_lateness_s, lateness)


def judge_journal(
    verdict: Verdict, runs: list[JournalRun], outcomes: dict[int, str | None], circumstances: Circumstances,
    pids: Mapping[int, int | None] = MappingProxyType({}),
) -> None:  # fmt: skip
    """No run twice, none before its tick, none beside another of its verb, no finished one unrecorded.

    If its verb notes how it goes on, a run without an end ended with its last note. `pids`: of runners, by execution.
    """
    deaths = circumstances.runner_deaths
    seen: Counter[int] = Counter(run.execution_id for run in runs)
    by_verb: dict[str, list[JournalRun]] = {}
    for run in runs:
        by_verb.setdefault(run.verb, []).append(run)
        if seen[run.execution_id] > 1:
            verdict.twice.append((run.verb, f"execution {run.execution_id} ran {seen[run.execution_id]} times"))
        if run.started_at < run.tick:
            verdict.early.append((run.verb, f"execution {run.execution_id} in the journal"))
        # A finished result may be lost only with the runner that held it.
        near_death = any(run.ended_at is not None and 0 <= death - run.ended_at < 1.0 for death in deaths)
        if run.ended_at is not None and outcomes.get(run.execution_id) in (None, "lost") and not near_death:
            # One that stands still for long is as good as dead: what its children finish meanwhile is lost.
            away = any(gone - 1.0 < run.ended_at < back + 1.0 for gone, back in circumstances.absences)
            died = circumstances.deaths_by_pid.get(pids.get(run.execution_id) or 0, 0.0)
            away = away or 0 <= died - run.ended_at < HELD_S
            if not (away and outcomes.get(run.execution_id) == "lost"):
                verdict.results_lost.append((run.verb, f"execution {run.execution_id}"))
    for verb, verb_runs in by_verb.items():
        verb_runs.sort(key=lambda run: run.started_at)
        going_on: list[tuple[float, JournalRun]] = []
        for run in verb_runs:
            going_on = [each for each in going_on if each[0] > run.started_at]
            if len(going_on) >= circumstances.beside.get(verb, 1):
                names = ", ".join(str(each.execution_id) for _, each in going_on)
                verdict.overlapping.append((verb, f"{names} and {run.execution_id}"))
            going_on.append((run.ended_at or run.seen_at or circumstances.died(run), run))


def was_cancelled(tick: int, actions: list[Any]) -> bool:
    """Whether the job was: then nothing was due. `actions`: cancellations and restorations, in their order."""
    latest = [action["action"] for action in actions if action["at"] < tick]
    return bool(latest) and latest[-1] == "cancel"


async def judge(
    database_url: str, periods_s: Mapping[str, int], until: float, journal: Path, circumstances: Circumstances
) -> Verdict:
    """Judge all ticks up to `until` (epoch seconds) of the verbs in `periods_s` (clock-aligned, in seconds)."""
    read_at = time.time()
    connection = await look(database_url)
    try:
        executions = await connection.fetch(EXECUTIONS)
        skips = await connection.fetch(SKIPS)
        cancellations = await connection.fetch(CANCELLATIONS)
        jobs = {row["verb"]: row for row in await connection.fetch(JOBS)}
    finally:
        await connection.close()
    verdict = Verdict()
    for verb, period in periods_s.items():
        job = jobs[verb]
        first = (int(job["created_at"]) // period + 1) * period
        # Of a pause without an end nothing is written until it has one.
        last = min(int(until), int(job["paused_tick"]) - 1)
        ran = Counter(round(e["tick"]) for e in executions if e["verb"] == verb and e["trigger"] in BY_SCHEDULE)
        own_skips = [s for s in skips if s["verb"] == verb]
        actions = [row for row in cancellations if row["verb"] == verb]
        due = [tick for tick in range(first, last + 1, period) if not was_cancelled(tick, actions)]
        judge_ticks(verdict, verb, due, ran, own_skips)
    judge_executions(verdict, executions)
    runs, outcomes = read_journal(journal), {e["id"]: e["outcome"] for e in executions}
    for run in runs:
        if run.ended_at is not None and run.ended_at > read_at - JUST_NOW_S and outcomes.get(run.execution_id) is None:
            outcomes[run.execution_id] = "under way"
    judge_journal(verdict, runs, outcomes, circumstances, {e["id"]: e["pid"] for e in executions})
    return verdict
