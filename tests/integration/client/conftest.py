"""A real cluster for the clients: two controllers, PostgreSQL, and a runner with examples/billing.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import until

BILLING = Path(__file__).parents[3] / "examples" / "billing.py"
KEY = "billing.close_day"


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as found:
        found.start_controller()
        found.start_controller()
        found.start_runner(BILLING)
        until(found.runners[0].tail, lambda: KEY in {job["key"] for job in found.cli("jobs", "list")})
        yield found
