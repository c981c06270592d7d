"""After PostgreSQL was away: did each job's overdue ticks go the way that its `on_missed` says, tick by tick?

The rules are those of docs/schedules.md, written down here a second time. Of the ticks missed, run_last (also what is
not given) runs the latest alone. skip runs the latest alone unless it is ten seconds old, and calls older ones missed
by policy. run_all runs each, the oldest first.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.stage import Stage
from tests.support.judge import EXECUTIONS, SKIPS, instant
from tests.support.looking import look

RUN_LAST: Final = ("brief_00", "brief_07", "brief_13", "sync")
SKIP: Final = "missed_skipped"
RUN_ALL: Final = "missed_all"
TOO_LATE_S: Final = 10.0  # of on_missed="skip"
DECIDED_WITHIN_S: Final = 3.0  # of the return: claims are answered within that
SLACK_S: Final = 1.0  # between the decision and the claim that carries it out, a second may begin


@dataclass(frozen=True)
class Missed:
    """Of one verb: the overdue ticks that ran afterwards, in the order of claims, and why the others did not."""

    executions: Sequence[Any]
    reasons: dict[int, str]


def judge_missed(stage: Stage, began: float, back: float) -> None:
    """`began`, `back`: from when to when (epoch seconds) nothing could be claimed."""
    executions, skips = asyncio.run(_rows(stage.cluster.database_url))
    for verb in (*RUN_LAST, SKIP, RUN_ALL):
        period_s = stage.bounds.periods_s[verb]
        due = range(math.ceil((began + SLACK_S) / period_s) * period_s, math.floor(back) + 1, period_s)
        missed = _missed(verb, due, executions, skips)
        for problem in _all_ran(missed, due) if verb == RUN_ALL else _latest_ran(missed, due, verb == SKIP, back):
            stage.expect(False, f"{verb}: {problem}")
    _judge_kept(stage, executions, began, back)
    ran = sum(1 for row in executions if row["tick"] <= back < row["claimed_at"] < back + DECIDED_WITHIN_S)
    stage.measured["caught up"] = str(ran)


def _judge_kept(stage: Stage, executions: list[Any], began: float, back: float) -> None:
    """What ended by its own word while nothing could be committed is in the books by now, as completed."""
    outcomes = {row["id"]: row["outcome"] for row in executions}
    kept = [run for run in stage.runs() if run.ended_at is not None and began + SLACK_S < run.ended_at < back]
    stage.measured["ended meanwhile and kept"] = str(len(kept))
    stage.expect(bool(kept), "nothing ended meanwhile, so nothing was kept")
    for run in kept:
        outcome = outcomes.get(run.execution_id)
        stage.expect(outcome == "completed", f"{run.verb} ended meanwhile, and is {outcome} in the books")


async def _rows(database_url: str) -> tuple[list[Any], list[Any]]:
    connection = await look(database_url)
    try:
        return await connection.fetch(EXECUTIONS), await connection.fetch(SKIPS)
    finally:
        await connection.close()


def _missed(verb: str, due: range, executions: list[Any], skips: list[Any]) -> Missed:
    own = sorted(
        (row for row in executions if row["verb"] == verb and round(row["tick"]) in due),
        key=lambda row: float(row["claimed_at"]),
    )
    reasons = {
        tick: skip["reason"]
        for skip in skips if skip["verb"] == verb
        for tick in due if skip["first_tick"] <= tick <= skip["last_tick"]
    }  # fmt: skip
    return Missed(own, reasons)


def _latest_ran(missed: Missed, due: range, skips_old: bool, back: float) -> list[str]:
    """What is wrong with a job of which the latest tick runs alone. The latest may have come after the return."""
    problems = []
    if len(missed.executions) > 1:
        problems.append(f"{len(missed.executions)} of its missed ticks ran, not the latest alone")
    problems += [
        f"{instant(row['tick'])} ran at {instant(row['claimed_at'])}, when it was not the latest"
        for row in missed.executions if row["claimed_at"] - row["tick"] > SLACK_S + 1.0
    ]  # fmt: skip
    for tick, reason in missed.reasons.items():
        too_late = skips_old and tick < back - TOO_LATE_S
        clear = not skips_old or abs(tick - (back - TOO_LATE_S)) > DECIDED_WITHIN_S
        wanted = "missed_policy" if too_late else "superseded"
        if clear and reason != wanted:
            problems.append(f"{instant(tick)} is {reason}, not {wanted}")
    accounted = set(missed.reasons) | {round(row["tick"]) for row in missed.executions}
    return problems + [f"{instant(tick)} is in no books" for tick in due if tick not in accounted]


def _all_ran(missed: Missed, due: range) -> list[str]:
    ran = [round(row["tick"]) for row in missed.executions]
    if ran != list(due):
        return [f"of {len(due)} missed ticks ran {list(map(instant, ran))}, in this order; {missed.reasons}"]
    return []
