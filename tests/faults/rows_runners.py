"""Runners and their children that are killed or stand still."""

import asyncio
import os
import random
import signal
import time
from typing import Any, Final

from tests import drawing
from tests.faults.row import row
from tests.faults.stage import PERIODS_S, Stage
from tests.support.judge import JournalRun
from tests.support.looking import look

LOST_WITHIN_S: Final = 10.0  # what ARCHITECTURE.md promises: the failure model
HEARD_S: Final = 0.5  # beside a backoff: what it takes to try again
RETRIED_WITHIN_S: Final = 6.0  # its backoff of a second, and a place to run
STILL_S: Final = 14.0  # longer than a runner may be out of sight
PROMISE: Final = "`lost` or `failed` within 10 s, retry by policy, no overlap"
# Not `finishing`: of a dead runner, what may finish unseen is declared lost at its hard timeout only.
LONG_VERBS: Final = ("long", "long_sync", "retried", "longer_than_its_period")

ENDS = """
SELECT e.id, e.outcome, e.attempt, extract(epoch FROM e.ended_at)::float8 AS ended_at,
       (SELECT extract(epoch FROM min(n.claimed_at))::float8 FROM cron_executions n
        WHERE n.job_id = e.job_id AND n.tick = e.tick AND n.attempt = e.attempt + 1) AS retried_at,
       j.verb, r.pid
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id LEFT JOIN runners r ON r.id = e.runner_id
WHERE e.id = ANY($1::bigint[])
"""


def ends(stage: Stage, runs: list[JournalRun]) -> list[Any]:
    """What the books say of those executions."""

    async def fetch() -> list[Any]:
        connection = await look(stage.cluster.database_url)
        try:
            return await connection.fetch(ENDS, [run.execution_id for run in runs])
        finally:
            await connection.close()

    return asyncio.run(fetch())


def wait_for_long_runs(stage: Stage) -> list[JournalRun]:
    """Until one of each long verb goes on, and has for a second."""
    found: list[JournalRun] = []

    def going_on() -> bool:
        found[:] = [run for verb in LONG_VERBS for run in stage.going_on(verb)]
        return {run.verb for run in found} == set(LONG_VERBS)

    stage.wait_until("runs of all long verbs", going_on, 25)
    return found


def expect_an_end(stage: Stage, runs: list[JournalRun], since: float, outcomes: set[str]) -> None:
    """Each has one of those outcomes within ten seconds of `since` (epoch seconds), and its policy's next attempt."""

    def booked() -> bool:
        return all(row["outcome"] is not None for row in ends(stage, runs))

    left_s = LOST_WITHIN_S + 2 - (time.time() - since)
    stage.wait_until("an outcome of every run that was hit", booked, max(1.0, left_s))
    rows = ends(stage, runs)
    late = [row["id"] for row in rows if row["ended_at"] - since > LOST_WITHIN_S]
    stage.expect(not late, f"executions {late} had no outcome within {LOST_WITHIN_S:g} s")
    wrong = [(row["id"], row["outcome"]) for row in rows if row["outcome"] not in outcomes]
    stage.expect(not wrong, f"outcomes {wrong}, expected {outcomes}")
    worst_s = max((row["ended_at"] - since for row in rows), default=0.0)
    stage.measured["worst outcome"] = f"after {max(worst_s, _measured(stage)):.1f} s"
    expect_retries(stage, [run for run in runs if run.verb == "retried"])


def _measured(stage: Stage) -> float:
    told = stage.measured.get("worst outcome", "after 0 s")
    return float(told.split()[1])


def expect_retries(stage: Stage, runs: list[JournalRun]) -> None:
    """Those of a verb with retries have a next attempt soon after their end, unless the job's next tick comes first.

    The backoff, a second, doubles with each attempt.
    """
    period_s = stage.bounds.periods_s["retried"]
    tried_at = {row["id"]: row["ended_at"] % period_s + 2 ** (row["attempt"] - 1) for row in ends(stage, runs)}
    runs = [run for run in runs if tried_at[run.execution_id] < period_s - HEARD_S]
    if not runs:
        return

    def tried_again() -> bool:
        return all(row["retried_at"] is not None for row in ends(stage, runs))

    stage.wait_until("another attempt", tried_again, RETRIED_WITHIN_S + 4)
    for each in ends(stage, runs):
        waited_s = each["retried_at"] - each["ended_at"]
        stage.expect(
            1.0 <= waited_s <= RETRIED_WITHIN_S, f"execution {each['id']} was tried again after {waited_s:.2f} s"
        )


def by_pid(stage: Stage, runs: list[JournalRun], pid: int) -> list[JournalRun]:
    """Those that the books say were claimed for the runner with that process id."""
    own = {each["id"] for each in ends(stage, runs) if each["pid"] == pid}
    return [run for run in runs if run.execution_id in own]


@row("kill-runner", fault="kill -9 of a runner", promise=PROMISE, short_s=12, long_s=120)
def kill_runner(stage: Stage) -> None:
    # What may finish unseen holds its job until its hard timeout: its ticks aren't decided before.
    stage.bounds.periods_s = {verb: period for verb, period in PERIODS_S.items() if verb != "finishing"}
    stage.bounds.outcomes = frozenset({"completed", "lost"})
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        runs = wait_for_long_runs(stage)
        victim = max(stage.cluster.runners, key=lambda runner: len(by_pid(stage, runs, runner.pid)))
        hit = by_pid(stage, runs, victim.pid)
        began = time.time()
        victim.kill()
        stage.runner_died(victim)
        stage.fault("kill -9", f"{victim.name} with {len(hit)} long runs")
        stage.cluster.runners.remove(victim)
        stage.start_runner()
        expect_an_end(stage, hit, began, {"lost"})
        # What was claimed for the dead is in its way until it is declared lost.
        stage.excuse(began, "a runner was killed")


@row(
    "stop-runner", fault="SIGSTOP of a runner, its children running on, then SIGCONT", promise=PROMISE, short_s=14,
    long_s=120,
)  # fmt: skip
def stop_runner(stage: Stage) -> None:
    stage.bounds.outcomes = frozenset({"completed", "lost", "cancelled"})
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        runs = wait_for_long_runs(stage)
        victim = max(stage.cluster.runners, key=lambda runner: len(by_pid(stage, runs, runner.pid)))
        hit = by_pid(stage, runs, victim.pid)
        began = time.time()
        stage.freeze(victim)
        stage.fault("SIGSTOP", f"{victim.name} with {len(hit)} long runs")
        expect_an_end(stage, hit, began, {"lost"})
        stage.pass_time(max(0.0, STILL_S - (time.time() - began)))
        stage.thaw(victim)
        stage.tell("SIGCONT")
        stage.runner_was_away(began)
        stage.excuse(began, "a runner stood still")


def child_of(stage: Stage, run: JournalRun) -> int:
    """The process id of the child that it runs in, by the run's own word."""
    return next(pid for execution, pid in stage.pids() if execution == run.execution_id)


def strike_children(stage: Stage, number: int, name: str) -> None:
    """Send that signal to the child of a long run, by turns of a shared one and of one of a sync verb."""
    draw = random.Random(drawing.seed(number))
    stage.bounds.outcomes = frozenset({"completed", "failed"})
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        for verb in ("long_sync", "retried"):
            runs = wait_for_long_runs(stage)
            pid = child_of(stage, next(run for run in runs if run.verb == verb))
            stage.pass_time(draw.random() / 2)
            hit = [run for run in runs if child_of(stage, run) == pid]
            began = time.time()
            os.kill(pid, number)
            stage.child_died(pid)
            stage.fault(name, f"the child of {', '.join(run.verb for run in hit)}")
            hit = [each for each in hit if _unfinished(stage, each)]
            expect_an_end(stage, hit, began, {"failed"})
            stage.excuse(began, "a child was hit")


def _unfinished(stage: Stage, run: JournalRun) -> bool:
    """It hadn't come to its end before it was hit: nothing of it is noted any more."""
    return all(each.ended_at is None for each in stage.runs() if each.execution_id == run.execution_id)


@row("kill-child", fault="kill -9 of a child, which verbs run in", promise=PROMISE, short_s=10, long_s=120)
def kill_child(stage: Stage) -> None:
    strike_children(stage, signal.SIGKILL, "kill -9")


@row("stop-child", fault="SIGSTOP of a child", promise=PROMISE, short_s=10, long_s=120)
def stop_child(stage: Stage) -> None:
    strike_children(stage, signal.SIGSTOP, "SIGSTOP")
