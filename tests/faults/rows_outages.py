"""All controllers at once: away for a minute while runs go on, or for many ticks' worth of time."""

import asyncio
import time
from collections import Counter
from typing import Any

from tests.faults.row import row
from tests.faults.stage import PERIODS_S, Stage
from tests.support.looking import look

MISSED_AFTER_S = 10  # a tick that is claimed within so long is late, and not missed (docs/schedules.md)
BACK_S = 3.0  # from ready to the first runs

SKIPPED = """
SELECT j.verb, s.reason, extract(epoch FROM s.first_tick)::float8 AS first_tick,
       extract(epoch FROM s.last_tick)::float8 AS last_tick
FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id
"""
EXECUTED = """
SELECT j.verb, e.trigger, extract(epoch FROM e.tick)::float8 AS tick
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id WHERE e.trigger IN ('schedule', 'catch_up')
"""


def kill_all(stage: Stage) -> float:
    for controller in stage.cluster.controllers:
        controller.kill()
    stage.fault("kill -9 of all controllers")
    return time.time()


def start_all(stage: Stage) -> None:
    for dead in list(stage.cluster.controllers):
        stage.cluster.restart_controller(dead)
    for controller in stage.cluster.controllers:
        stage.cluster.wait_ready(controller)
    stage.tell("all controllers are back")


def ran_since(stage: Stage, since: float) -> set[str]:
    return {run.verb for run in stage.runs() if run.started_at > since}


@row(
    "controllers-away", fault="every controller away for a while in the middle of runs, and back",
    promise="no overlap; `on_disconnect` honoured; runs survive the return of the controllers", short_s=12, long_s=60,
)  # fmt: skip
def controllers_away(stage: Stage) -> None:
    """Longer than a runner's fence: what may not run unseen is stopped, what may runs to its end."""
    stage.bounds.outcomes = frozenset({"completed", "lost", "cancelled"})
    stage.start()
    stage.wait_until(
        "long runs", lambda: all(len(stage.going_on(verb)) == 1 for verb in ("long", "long_sync", "finishing")), 25
    )
    hit = {verb: stage.going_on(verb)[0].execution_id for verb in ("long", "long_sync", "finishing")}
    began = kill_all(stage)
    stage.pass_time(2.5)
    soon = {run.execution_id: run for run in stage.runs()}
    for verb, execution in hit.items():
        run = soon[execution]
        seen_at = run.ended_at or run.seen_at or 0.0
        stage.expect(run.ended_at is not None or seen_at > began + 2, f"{verb} did not go on without controllers")
    stage.pass_time(stage.seconds - 2.5)
    start_all(stage)
    stage.excuse(began, "all controllers were away")
    runs = {run.execution_id: run for run in stage.runs()}
    stage.expect(runs[hit["finishing"]].ended_at is not None, "what may finish unseen did not")
    back = time.time()
    stage.wait_until("ticks go on", lambda: {"brief_00", "sync"} <= ran_since(stage, back), BACK_S + 7)
    stage.excuse(began, "all controllers were away")


@row(
    "outage", fault="all controllers at once, and back after ten minutes' worth of ticks",
    promise="missed policy exactly as stated", short_s=15, long_s=600,
)  # fmt: skip
def outage(stage: Stage) -> None:
    stage.bounds.outcomes = frozenset({"completed", "lost", "cancelled"})
    stage.start()
    began = kill_all(stage)
    stage.pass_time(stage.seconds)
    back = time.time()
    start_all(stage)
    missed_all = -(-int(back - began) // PERIODS_S["missed_all"])
    wanted = {verb for verb, period_s in PERIODS_S.items() if period_s == 1}
    stage.wait_until("ticks go on", lambda: wanted <= ran_since(stage, back), BACK_S + 7)
    stage.pass_time(BACK_S + 0.2 * missed_all)  # a backlog that runs one after the other
    stage.excuse(began, "all controllers were away")
    expect_policies(stage, int(began) + 2, int(back) - 1)


def expect_policies(stage: Stage, first: int, last: int) -> None:
    """Of the ticks from `first` to `last`, at none of which a controller was there."""
    ran, skipped = asyncio.run(_books(stage, first, last))
    ticks = range(first, last + 1)
    for verb in ("brief_00", "brief_13", "sync"):  # run_last: the latest one runs, the others are passed over
        stage.expect(
            skipped[verb]["superseded"] >= len(ticks) - 2 and ran[verb] <= 2,
            f"{verb}: {ran[verb]} ran, skipped {dict(skipped[verb])} of {len(ticks)}; run_last is stated",
        )
    none = skipped["missed_skipped"]
    stage.expect(
        none["missed_policy"] >= len(ticks) - MISSED_AFTER_S and ran["missed_skipped"] <= 1,
        f"missed_skipped: {ran['missed_skipped']} ran, {dict(none)} of {len(ticks)}; skip is stated",
    )
    due = len([tick for tick in ticks if tick % PERIODS_S["missed_all"] == 0])
    stage.expect(ran["missed_all"] == due, f"missed_all: {ran['missed_all']} of {due} ran; run_all is stated")
    stage.measured["by policy"] = (
        f"run_last {skipped['brief_00']['superseded']} superseded, "
        f"skip {none['missed_policy']} skipped, run_all {ran['missed_all']} caught up"
    )


async def _books(stage: Stage, first: int, last: int) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """How many of those ticks ran, and were passed over for which reason, by verb."""
    connection = await look(stage.cluster.database_url)
    try:
        executed: list[Any] = await connection.fetch(EXECUTED)
        skips: list[Any] = await connection.fetch(SKIPPED)
    finally:
        await connection.close()
    ran = Counter(each["verb"] for each in executed if first <= each["tick"] <= last)
    skipped: dict[str, Counter[str]] = {verb: Counter() for verb in PERIODS_S}
    for skip in skips:
        period_s = PERIODS_S[skip["verb"]]
        low, high = max(first, int(skip["first_tick"])), min(last, int(skip["last_tick"]))
        skipped[skip["verb"]][skip["reason"]] += max(0, high // period_s - -(-low // period_s) + 1)
    return ran, skipped
