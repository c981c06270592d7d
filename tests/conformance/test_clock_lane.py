"""What reads and locks partitions of days, at hours at which now, an hour ago and an hour ahead lie in different ones.

The suite runs at whatever hour it is: a defect of the first hour of a day (docs/decisions/0001) would show one run in
twenty-four. Here a part of it runs in a process of its own, with servers of its own, by a clock that is set.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.faked_clocks import is_faked, missing, set_to

ROOT = Path(__file__).parents[2]
CONCURRENCY = "test_concurrency.py::test_ends_adoptions_renewals_and_redeployments_never_deadlock[postgres18]"
CROSSING = (
    CONCURRENCY,
    "test_after.py::test_a_backfill_is_followed_once_for_each_tick[postgres18]",
    "test_after.py::test_many_ends_at_once_are_each_followed_once[postgres18]",
    "test_retention.py::test_what_goes_is_in_the_books_and_the_newest_stay[postgres18]",
)

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"needs {missing()} (Debian: faketime)"),
    pytest.mark.skipif(is_faked(), reason="runs under a faked clock already"),
]


# Days to come. Where libfaketime sets a clock back, PostgreSQL ended statements by their timeout after a second or two:
# seen on the first of these days, when it was not yet over (2026-11-25).
@pytest.mark.parametrize("hour", ["2027-11-25 00:30", "2027-11-25 23:55", "2028-02-29 23:55"])
def test_it_holds_when_ticks_lie_in_two_days(hour: str) -> None:
    at = datetime.fromisoformat(hour).replace(tzinfo=UTC)
    done = subprocess.run(
        [*set_to(at), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         *(f"tests/conformance/{name}" for name in CROSSING)],
        cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert f"{len(CROSSING)} passed" in done.stdout, done.stdout[-2_000:]


def _environment() -> dict[str, str]:
    """Without what tells this pytest of its own options and workers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
