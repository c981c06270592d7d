"""An execution as its runner gets it: the only place that makes a Run of an Execution. Hot: once for each dispatch."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Execution
from cronring.schema.execution import Run, ScheduleKind, Trigger
from cronring.schema.policy import parse_policy

_as_run: Callable[[Iterable[Any]], Run] = partial(tuple.__new__, Run)  # Run._make, without its Python
_KINDS: Final = {"every": ScheduleKind.INTERVAL, "at": ScheduleKind.ONCE, "manual": ScheduleKind.MANUAL}


def run_of(execution: Execution, place_epoch: int = 0) -> Run:
    """`place_epoch`: of the place that it takes; 0: none."""
    job = execution.job
    timezone, memory_limit, cpu_limit_us, priority = "", 0, 0, 0
    if job.policy:
        policy = parse_policy(job.policy)
        timezone = policy.timezone
        if policy.memory_limit or policy.cpu_limit:
            memory_limit, cpu_limit_us = policy.memory_limit_bytes, policy.cpu_limit_us
    if job.policy or execution.trigger == Trigger.BACKFILL:
        priority = ticks.priority(job, execution.trigger)
    return _as_run((
        execution.execution_id,
        job.job_id,
        job.key,
        execution.deployment,
        job.verb,
        execution.tick,
        execution.run_at,
        execution.claimed_at,
        execution.claimed_at + job.timeout_ms * 1_000,
        execution.attempt,
        execution.trigger,
        job.on_disconnect == "finish",
        execution.missed,
        execution.previous_tick or 0,
        execution.previous_success or 0,
        execution.payload or job.payload or "",
        timezone,
        _kind(job.schedule),
        memory_limit,
        cpu_limit_us,
        priority,
        place_epoch,
    ))  # fmt: skip


@lru_cache(maxsize=10_000)
def _kind(schedule: str) -> ScheduleKind:
    return _KINDS.get(schedule.partition(" ")[0], ScheduleKind.CRON)
