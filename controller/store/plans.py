"""What controller.core.orders.redeploy and cronring.controller.core.orders.control have planned, written: parts of a
transaction.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from cronring.controller.core.orders.orphaning import Orphan, Return
from cronring.controller.core.orders.redeploy import Carried, Removed
from cronring.controller.errors import CircleOfJobs
from cronring.controller.store.pool import Transaction
from cronring.controller.store.rows import count_ticks, skip_columns, specs_columns
from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.execution import Skipped
from cronring.schema.job import JobSpec
from cronring.schema.policy import parse_policy
from cronring.sql.parameters import (
    AddSkips,
    BringCronJobsBack,
    CarryCronJobsOver,
    GetFollowed,
    OrphanCronJobs,
    RemoveCronJobs,
)

_TIMING: Final = {"schedules", "anchors", "policies"}  # what a job's ticks follow from


def policy_columns(specs: Iterable[JobSpec]) -> tuple[list[int], list[int]]:
    """The parts of policies that statements need: concurrencies, and after how many failures a job is paused."""
    parsed = [parse_policy(spec.policy) for spec in specs]
    return [policy.concurrency for policy in parsed], [policy.pause_after_failures for policy in parsed]


async def carry_jobs_over(transaction: Transaction, deployment_id: int, carried: Sequence[Carried]) -> None:
    """Jobs as a new deployment, or an operator, wants them; skips close the books of those that are rescheduled."""
    if not carried:
        return
    specs = [job.spec for job in carried]
    concurrencies, pause_afters = policy_columns(specs)
    columns = specs_columns(CarryCronJobsOver, specs)
    for name in columns.keys() - _TIMING:
        columns[name] = [None if job.keeps else value for job, value in zip(carried, columns[name], strict=True)]
    await transaction.fetch(
        CarryCronJobsOver(
            deployment_id=deployment_id,
            closes_ats=[job.closes_at for job in carried],
            job_ids=[job.job_id for job in carried],
            rescheduled=[job.rescheduled for job in carried],
            next_ticks=[job.next_tick for job in carried],
            next_run_ats=[job.next_run_at for job in carried],
            **columns,
            concurrencies=concurrencies,
            pause_afters=pause_afters,
            paused_ticks=[job.paused_tick for job in carried],
            ahead_froms=[job.ahead_from for job in carried],
            ahead_untils=[job.ahead_until for job in carried],
            orphaned_ticks=[job.orphaned_tick for job in carried],
        )
    )
    await add_skips(transaction, ((job.job_id, job.skipped) for job in carried))


async def refuse_cycles(transaction: Transaction, keys: list[str]) -> None:
    """Raises CircleOfJobs if one of these jobs, as just written, would in the end run after itself."""
    after = await who_follows(transaction, keys)
    for key in sorted(keys):
        cycle = cycle_of(key, after)
        if cycle:
            raise CircleOfJobs(cycle_fault(cycle), cycle)


async def who_follows(transaction: Transaction, keys: list[str]) -> dict[str, str]:
    """follower -> followed, of these jobs, of the jobs that they follow, and so on."""
    return dict(map(tuple, await transaction.fetch(GetFollowed(keys=keys)))) if keys else {}


async def remove_jobs(transaction: Transaction, removed: Sequence[Removed], now: int) -> None:
    if removed:
        closes_at = [job.closes_at for job in removed]
        await transaction.fetch(RemoveCronJobs(job_ids=[job.job_id for job in removed], now=now, closes_ats=closes_at))
        await add_skips(transaction, ((job.job_id, job.skipped) for job in removed))


async def orphan_jobs(transaction: Transaction, orphaned: list[Orphan], now: int) -> None:
    """Jobs that have lost their verb. Their books get nothing until the verb is back."""
    if orphaned:
        await transaction.fetch(
            OrphanCronJobs(
                now=now,
                job_ids=[job.job_id for job in orphaned],
                orphaned_ticks=[job.tick for job in orphaned],
            )
        )


async def bring_back(transaction: Transaction, deployment_id: int, back: list[Return], now: int) -> None:
    """Orphaned jobs whose verb this deployment has."""
    if not back:
        return
    await transaction.fetch(
        BringCronJobsBack(
            deployment_id=deployment_id,
            now=now,
            job_ids=[job.job_id for job in back],
            next_ticks=[job.next_tick for job in back],
            next_run_ats=[job.next_run_at for job in back],
        )
    )
    await add_skips(transaction, ((job.job_id, job.skipped) for job in back))


async def add_skips(
    transaction: Transaction,
    skips: Iterable[tuple[int, tuple[Skipped, ...]]],
    *,
    by: str = "",
    again: bool = False,
) -> None:
    """Ranges of ticks, by job. `by`: the controller that decided; "": none did. `again`: these ranges are rests of
    counted ones, so they aren't counted again.
    """
    found = [(job_id, skipped) for job_id, ranges in skips for skipped in ranges]
    if found:
        columns = skip_columns([skipped for _, skipped in found])
        await transaction.fetch(
            AddSkips(
                job_ids=[job_id for job_id, _ in found],
                reasons=columns.reasons,
                first_ticks=columns.first_ticks,
                last_ticks=columns.last_ticks,
                tick_counts=columns.tick_counts,
                controller_id=by,
            )
        )
        if not again:
            count_ticks(transaction.skipped, (skipped for _, skipped in found))
