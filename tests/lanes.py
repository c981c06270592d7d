"""Which tests are long: those of `make test-long`. All others are `make test`, which people run before each commit.

A file or folder is listed when it waits for real processes through minutes, or draws many seeds. So are those that only
prove that a benchmark can be run, and those that cost more than a quarter of a minute of CPU. Each area keeps quick
ones.

Of tests that are parametrised over PostgreSQL servers, those on an older release than 18 are long. They were a quarter
of the CPU of `make test`. The same tests, with the same assertions, stay there on PostgreSQL 18 and on the store in
memory.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
LONG: Final = (
    "acceptance/test_crontab.py",
    "acceptance/test_demo_healing.py",
    "acceptance/test_dev_database.py",
    "acceptance/test_dev_life.py",
    "acceptance/test_distributions.py",
    "acceptance/test_drill.py",
    "acceptance/test_exit_codes.py",
    "acceptance/test_terminals.py",
    "attacks/test_hostile_controllers.py",
    "attacks/test_http_proxies.py",
    "attacks/test_sizes.py",
    "attacks/test_slow_handshakes.py",
    "attacks/test_worst_requests.py",
    "conformance/test_clock_lane.py",
    "conformance/test_one_value.py",
    "conformance/test_storms.py",
    "conformance/test_storms_of_rows.py",
    "console",
    "docs",
    "faults/test_clocks.py",
    "faults/test_consumers.py",
    "faults/test_liars.py",
    "faults/test_network.py",
    "faults/test_outages.py",
    "faults/test_overload.py",
    "faults/test_patroni.py",
    "faults/test_postgres.py",
    "faults/test_processes.py",
    "faults/test_queues.py",
    "faults/test_runners.py",
    "faults/test_upgrades.py",
    "integration/api/test_rest_schema_long.py",
    "integration/api/test_rest_walks_long.py",
    "integration/bench",
    "integration/browser",
    "integration/client",
    "integration/cluster",
    "integration/controller/test_jobs_api.py",
    "integration/controller/test_members.py",
    "integration/identity/test_login.py",
    "integration/interval_jobs",
    "integration/notifications/test_deaths.py",
    "integration/notifications/test_events.py",
    "integration/notifications/test_near_timeouts.py",
    "integration/operations/test_doctor.py",
    "integration/operations/test_drill.py",
    "integration/operations/test_restore.py",
    "integration/operations/test_truth.py",
    "integration/queues",
    "integration/runner/test_hostile.py",
    "integration/runner/test_quotas.py",
    "integration/runner/test_told.py",
    "integration/trust/test_clock_skew.py",
    "integration/trust/test_letting_in.py",
    "integration/trust/test_outage.py",
    "integration/trust/test_rotation.py",
    "oracle/test_days.py",
    "oracle/test_walk.py",
    "plans/test_execution_lists.py",
    "plans/test_queue_of_a_million.py",
    "proxies/test_burst.py",
    "simulation/test_cancels.py",
    "simulation/test_long_world.py",
    "simulation/test_places.py",
    "simulation/test_seeds.py",
    "simulation/test_swim_simulation.py",
    "simulation/test_table_faults.py",
    "simulation/test_year.py",
    "simulation/test_year_checkers.py",
    "unit/cli/test_breaking_connections.py",
    "unit/test_regular_expressions.py",
    "unit/virtual/test_leaps.py",
)
OLDER: Final = ("postgres15", "postgres16")  # as parameters of tests name them
BY_SERVER: Final = ("conformance", "migration", "plans")  # folders of such tests, which both lanes read
_PATHS: Final = frozenset(TESTS / name for name in LONG)


def is_long(file: Path) -> bool:
    """Of a test's file: it, or a folder above it, is listed."""
    return not _PATHS.isdisjoint((file, *file.parents))


def is_of_an_older_server(file: Path, parameters: Iterable[object]) -> bool:
    """Of a test with these parameters, in a folder of BY_SERVER."""
    return _is_by_server(file) and any(each in OLDER for each in parameters)


def _is_by_server(file: Path) -> bool:
    return any(TESTS / folder in file.parents for folder in BY_SERVER)


def is_passed_over(file: Path, expression: str) -> bool:
    """Whether a run of the tests that `expression` (pytest's -m) marks has no use for that file.

    Each worker reads the files that it is to try tests of. Those of the other lane cost each of them half a minute.
    """
    if "long" not in expression or not file.name.startswith("test_"):
        return False
    if "not long" in expression:
        return is_long(file)
    return not is_long(file) and not _is_by_server(file)
