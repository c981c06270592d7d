"""What the drill says: before it begins, and of what came of it."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from cronring.cli.drill.findings import LATE_AFTER_MS, Findings, Late, Lateness
from cronring.cli.drill.plan import DrillPlan
from cronring.cli.output import aligned, milliseconds, short_instant
from cronring.schema.duration import measured

SHOWN_MAX: Final = 5
NOBODY: Final = "nobody"


def announced(plan: DrillPlan) -> list[str]:
    """What is about to happen, to be agreed to."""
    primary, deed = plan.primary, f"claims nothing for {measured(plan.wanted.for_s * 1_000)}; what runs goes on"
    ends = "by itself; at once with Ctrl-C, or when this command dies, or nobody else is left"
    beside = "retries and runs by hand that only this controller knows of wait until it is over"
    if plan.wanted.kill:
        deed = f"process {primary.pid} is killed (kill -9)"
        ends = "never: `cronring dev` starts no other in its place"
        beside = "what runs goes on at its runner; another controller adopts it"
    late = "half a second late" if plan.others else "late by as much as that, as their policy for missed ticks says"
    return [
        f"job         {plan.job.key}, {plan.job.schedule_words}{f' ({plan.chosen})' if plan.chosen else ''}",
        f"controller  its primary {primary.id}: {deed}",
        f"affected    about {plan.ticks} ticks of {_jobs(len(plan.ahead))} ({_named(plan)}), {late}",
        f"takes over  {_backups(plan)}",
        f"beside it   {beside}",
        f"ends        {ends}",
    ]


def told(plan: DrillPlan, found: Findings) -> list[str]:
    """What came of it, the verdict last."""
    what = "was killed" if plan.wanted.kill else f"claimed nothing for {measured(found.lasted_ms)}"
    lines = [f"{plan.primary.id} {what}, from {short_instant(found.begun)} to {short_instant(found.ended)}", ""]
    lines += table(plan, found)
    by = ", ".join(f"{controller} {ticks}" for controller, ticks in found.by.items()) or NOBODY
    skipped = ", ".join(f"{reason} {ticks}" for reason, ticks in found.skipped.items() if ticks)
    lines += [
        "",
        f"taken over by  {by}",
        f"lost           {found.lost}  (audit of the {found.ticks} ticks of all jobs in that time)",
        f"duplicates     {found.duplicates}",
        f"skipped        {sum(found.skipped.values())}{f' ({skipped})' if skipped else ''}",
    ]
    return [*lines, *(f"note: {each}" for each in remarks(found)), verdict(plan, found)]


def table(plan: DrillPlan, found: Findings) -> list[str]:
    rows: list[tuple[str, Lateness]] = [("before", found.before), ("taken over", found.taken_over)]
    if len(plan.ahead) > 1:
        rows.append((f"  {plan.job.key}", found.of_job))
    if found.itself.ticks:
        rows.append(("by itself", found.itself))
    cells = [
        [name, str(each.ticks), *map(milliseconds, (each.p50_ms, each.p99_ms, each.max_ms))] for name, each in rows
    ]
    return list(aligned([["LATENESS OF TICKS", "TICKS", "P50", "P99", "MAX"], *cells], [False, *[True] * 4]))


def remarks(found: Findings) -> list[str]:
    """What makes the figures say less, or something else, than they seem to."""
    said = [f"it was over early: {found.cut}"] if found.cut else []
    if found.ring_changed:
        said.append("the ring changed meanwhile: some slots have other owners now")
    elif found.on_time:
        said.append(f"{found.on_time} of these were claimed on time by others, who took themselves for the primary")
    if found.running:
        said.append(f"{found.running} of these still run or wait at their runner, and count by their claim")
    return said


def verdict(plan: DrillPlan, found: Findings) -> str:
    """One line. What was not as it must be comes first."""
    wrong = faults(found)
    if wrong:
        return f"NOT HELD: {'; '.join(wrong)}"
    if not found.taken_over.ticks:
        return (
            "NOT SHOWN: no tick was taken over. Give a longer --for, or a --job that ticks more often; "
            f"`cronring why {plan.job.key}` says what became of its ticks"
        )
    if not found.shown:
        return "NOT SHOWN: nothing was left lying, so no backup was needed; try again in a minute"
    latest_ms = max(found.taken_over.max_ms or 0.0, found.itself.max_ms or 0.0)
    return f"HELD: every tick ended in the books once, none began more than {measured(latest_ms)} late"


def faults(found: Findings) -> list[str]:
    wrong = []
    if not found.clean:
        wrong.append(
            f"{found.lost} lost and {found.duplicates} duplicate ticks (`cronring audit --since "
            f"{short_instant(found.begun).replace(' ', 'T')}` names them)"
        )
    if found.undecided:
        wrong.append(f"nobody has claimed a tick of {_some(found.undecided)} (`cronring why` says what it waits for)")
    if found.late:
        worst = found.late[0]
        wrong.append(
            f"{len(found.late)} ticks began more than {measured(LATE_AFTER_MS)} late, the worst {worst.job}'s of "
            f"{short_instant(worst.tick)}, {measured(worst.lateness_ms)}: {_where(worst)}"
        )
    return wrong


def _where(late: Late) -> str:
    """Which part of it was slow."""
    if late.claimed_ms > LATE_AFTER_MS:
        return "it was claimed so late; was that controller short of CPU, or PostgreSQL busy? `cronring top` shows more"
    return f"it was claimed {measured(late.claimed_ms)} late, and its runner took the rest: is that short of CPU?"


def _backups(plan: DrillPlan) -> str:
    shares = Counter(each.backup or NOBODY for each in plan.ahead)
    return ", ".join(f"{backup} ({_jobs(jobs)})" for backup, jobs in shares.most_common()) or NOBODY


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"


def _named(plan: DrillPlan) -> str:
    return _some([each.job for each in sorted(plan.ahead, key=lambda each: -each.ticks)])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more
