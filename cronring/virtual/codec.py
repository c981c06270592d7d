"""What a controller and a runner would say to each other in protobuf, from the one's values to the other's."""

from functools import lru_cache

from cronring.controller.core.model import Execution, Outcome, Report
from cronring.runner.core.model import Result, Run
from cronring.schema.policy import parse_policy
from cronring.schema.schedule import is_interval


def run_of(execution: Execution) -> Run:
    """A dispatched execution, as its runner takes it."""
    job = execution.job
    return Run(
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
        str(execution.trigger),
        job.on_disconnect == "finish",
        execution.missed,
        execution.previous_tick or 0,
        execution.previous_success or 0,
        execution.payload,
        _timezone(job.policy),
        _is_interval(job.schedule),
        *_limits(job.policy),
    )


def report_of(result: Result) -> Report:
    """A run's result, as its controller takes it."""
    return Report(
        result.execution_id,
        result.job_id,
        result.claimed_at_us,
        Outcome(str(result.outcome)),
        result.started_at_us,
        result.ended_at_us,
        result.error_type,
        result.error_message,
        result.output,
        result.next_in_ms,
        result.error_bases,
        result.stack,
        result.cpu_us,
        result.memory_peak_bytes,
        result.memory_shared,
        result.metrics,
    )


@lru_cache(maxsize=1_000)
def _timezone(policy: str) -> str:
    return parse_policy(policy).timezone if policy else ""


@lru_cache(maxsize=1_000)
def _limits(policy: str) -> tuple[int, int]:
    parsed = parse_policy(policy)
    return parsed.memory_limit_bytes, parsed.cpu_limit_us


@lru_cache(maxsize=1_000)
def _is_interval(schedule: str) -> bool:
    return is_interval(schedule)
