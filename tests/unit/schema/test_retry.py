"""Retries by example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.policy import Policy, read_policy
from cronring.schema.retry import backoff_us, retry_at

S = 1_000_000
HOUR = 3600 * S
NOON = 1_795_262_400 * S


@pytest.mark.parametrize(
    ("policy", "attempt", "outcome", "error", "next_in", "expected"),
    [
        (Policy(), 1, "failed", "ValueError", HOUR, None),
        (Policy(retries=1), 1, "failed", "ValueError", HOUR, NOON + 10 * S),
        (Policy(retries=1), 2, "failed", "ValueError", HOUR, None),
        (Policy(retries=3), 2, "failed", "ValueError", HOUR, NOON + 20 * S),
        (Policy(retries=3), 3, "failed", "ValueError", HOUR, NOON + 40 * S),
        (Policy(retries=3, backoff="500ms"), 1, "failed", "ValueError", HOUR, NOON + S // 2),
        (Policy(retries=100), 100, "failed", "ValueError", None, NOON + HOUR),
        # outcomes
        (Policy(retries=1), 1, "timed_out", "", HOUR, NOON + 10 * S),
        (Policy(retries=1), 1, "lost", "", HOUR, NOON + 10 * S),
        (Policy(retries=1), 1, "completed", "", HOUR, None),
        (Policy(retries=1), 1, "cancelled", "", HOUR, None),
        (Policy(retries=1), 1, "cancelled", "Cancelled", HOUR, None),
        (Policy(retries=1), 1, "cancelled", "RunnerStopped", HOUR, NOON + 10 * S),  # as if it had been killed
        (Policy(retries=1), 1, "cancelled", "Disconnected", HOUR, NOON + 10 * S),
        (Policy(retries=1), 1, "completed", "RunnerStopped", HOUR, None),
        # the next tick supersedes it
        (Policy(retries=1), 1, "failed", "ValueError", 10 * S, None),
        (Policy(retries=1), 1, "failed", "ValueError", 9 * S, None),
        (Policy(retries=1), 1, "failed", "ValueError", 10 * S + 1, NOON + 10 * S),
        (Policy(retries=1), 1, "failed", "ValueError", None, NOON + 10 * S),
        (Policy(), 1, "failed", "ValueError", 9 * S, None),
    ],
)
def test_retry(policy: Policy, attempt: int, outcome: str, error: str, next_in: int | None, expected: int | None):
    next_run_at = None if next_in is None else NOON + next_in
    assert retry_at(policy, attempt, outcome, error, NOON, next_run_at) == expected


@pytest.mark.parametrize(
    ("own", "default", "attempt", "retried"),
    [
        (None, 0, 1, False),
        (None, 2, 1, True),
        (None, 2, 2, True),
        (None, 2, 3, False),
        (0, 2, 1, False),
        (1, 2, 2, False),
        (3, 2, 3, True),
    ],
)
def test_the_default_is_of_who_says_nothing(own: int | None, default: int, attempt: int, retried: bool):
    policy = read_policy({"retries": own, "backoff": "5s"})
    answer = retry_at(policy, attempt, "failed", "ValueError", NOON, None, default_retries=default)
    assert (answer is not None) is retried


@pytest.mark.parametrize(
    ("retry_on", "outcome", "error", "retried"),
    [
        (["ConnectionError"], "failed", "ConnectionError", True),
        (["ConnectionError"], "failed", "ValueError", False),
        (["ConnectionError"], "failed", "requests.exceptions.ConnectionError", True),
        (["requests.exceptions.ConnectionError"], "failed", "requests.exceptions.ConnectionError", True),
        (["requests.ConnectionError"], "failed", "requests.exceptions.ConnectionError", True),
        (["requests.ConnectionError"], "failed", "requestsx.exceptions.ConnectionError", False),
        (["requests.ConnectionError"], "failed", "ConnectionError", False),
        (["exceptions.ConnectionError"], "failed", "requests.exceptions.ConnectionError", False),
        (["Error"], "failed", "ConnectionError", False),
        (["ConnectionError"], "lost", "", False),
        (["ConnectionError", "lost"], "lost", "", True),
        (["timed_out"], "timed_out", "", True),
        (["timed_out"], "failed", "TimeoutError", False),
        (["failed"], "failed", "whatever.Happened", True),
        (["failed"], "lost", "", False),
        (["lost"], "cancelled", "RunnerStopped", True),
        (["RunnerStopped"], "cancelled", "RunnerStopped", True),
        (["ConnectionError"], "cancelled", "Disconnected", False),
    ],
)
def test_retry_on(retry_on: list[str], outcome: str, error: str, retried: bool):
    policy = read_policy({"retries": 1, "retry_on": retry_on})
    assert (retry_at(policy, 1, outcome, error, NOON, None) is not None) is retried


@pytest.mark.parametrize(
    ("listed", "retried"),
    [
        ("ConnectionError", True),
        ("OSError", True),
        ("Exception", True),
        ("urllib3.HTTPError", True),
        ("ValueError", False),
    ],
)
def test_retry_on_catches_what_except_would(listed: str, retried: bool):
    policy = read_policy({"retries": 1, "retry_on": [listed]})
    bases = ("urllib3.exceptions.HTTPError", "ConnectionError", "OSError", "Exception", "BaseException")
    answer = retry_at(policy, 1, "failed", "mod.Refused", NOON, None, bases)
    assert (answer is not None) is retried


@given(st.integers(1, 3_600_000), st.integers(1, 100))
def test_backoff_doubles_up_to_an_hour(base_ms: int, attempt: int):
    policy = read_policy({"retries": 100, "backoff": f"{base_ms}ms"})
    assert backoff_us(policy, attempt) == min(base_ms * 1_000 * 2 ** (attempt - 1), HOUR)
