"""A real cluster for the clients: two controllers, PostgreSQL, and a runner with examples/billing.py."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S

BILLING = Path(__file__).parents[3] / "examples" / "billing.py"
KEY = "billing.close_day"


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as found:
        found.start_controller()
        found.start_controller()
        found.start_runner(BILLING)
        deadline = time.monotonic() + TIMEOUT_S
        while KEY not in {job["key"] for job in found.cli("jobs", "list")}:
            assert time.monotonic() < deadline, found.runners[0].tail()
            time.sleep(0.1)  # a poll with a deadline: a process has no other way to tell
        yield found
