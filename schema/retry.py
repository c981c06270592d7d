"""Retries: whether a failed run is tried again, and when. A retry belongs to its tick; the next tick supersedes it."""

from typing import Final

from cronring.schema.duration import parse_duration
from cronring.schema.execution import FAILURES
from cronring.schema.policy_model import Policy

# docs/decisions/0030: nobody wanted these cancelled
STOPPED_BY_RUNNER: Final = ("Disconnected", "RunnerStopped")
"""Error types of runs that nobody wanted cancelled: their runner was cut off, or left. They count as lost."""
BACKOFF_US: Final = 10_000_000
BACKOFF_LIMIT_MS: Final = 3_600_000


def retry_at(
    policy: Policy,
    attempt: int,
    outcome: str,
    error_type: str,
    ended_at: int,
    next_run_at: int | None,
    error_bases: tuple[str, ...] = (),
    default_retries: int = 0,
) -> int | None:
    """When to try again after the end of `attempt` (1 is the first), in microseconds. None: not at all.

    `next_run_at`: of the job's next tick, if it has one; a retry that would come no earlier is not made.
    `error_bases`: the base classes of the exception; `except` would catch it by each of them.
    `default_retries`: the cluster's.
    """
    error_types = (error_type, *error_bases)
    if outcome == "cancelled" and error_type in STOPPED_BY_RUNNER:
        outcome = "lost"
    if attempt > policy.retries_by(default_retries) or outcome not in FAILURES:
        return None
    if not _is_listed(policy.retry_on, outcome, error_types):
        return None
    at = ended_at + backoff_us(policy, attempt)
    if next_run_at is not None and at >= next_run_at:
        return None
    return at


def backoff_us(policy: Policy, attempt: int) -> int:
    """How long to wait after `attempt`: the base x 2^(attempt - 1), at most an hour."""
    base = parse_duration(policy.backoff) * 1_000 if policy.backoff else BACKOFF_US
    return min(base << attempt - 1, BACKOFF_LIMIT_MS * 1_000)


def _is_listed(retry_on: tuple[str, ...], outcome: str, error_types: tuple[str, ...]) -> bool:
    if not retry_on or outcome in retry_on:
        return True
    return any(_names(listed, error_type) for listed in retry_on for error_type in error_types)


def _names(listed: str, error_type: str) -> bool:
    """Whether an author means this exception: by its whole name, its last part, or by package and last part.

    The last as packages show exceptions elsewhere than they define them: `requests.Timeout` is requests.exceptions'.
    """
    package, _, name = error_type.rpartition(".")
    if listed in {error_type, name}:
        return True
    listed_package, _, listed_name = listed.rpartition(".")
    return bool(listed_package) and listed_name == name and package.startswith(f"{listed_package}.")
