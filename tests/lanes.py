"""Which tests are long: those of `make test-long`. All others are `make test`, which people run before each commit.

A file or folder is listed when it waits for real processes through minutes, or draws many seeds. So are those that only
prove that a benchmark can be run.
"""

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
LONG: Final = (
    "acceptance/test_dev_database.py",
    "acceptance/test_drill.py",
    "attacks/test_sizes.py",
    "attacks/test_slow_handshakes.py",
    "conformance/test_clock_lane.py",
    "conformance/test_storms.py",
    "conformance/test_storms_of_rows.py",
    "docs",
    "faults/test_clocks.py",
    "faults/test_liars.py",
    "faults/test_network.py",
    "faults/test_outages.py",
    "faults/test_overload.py",
    "faults/test_patroni.py",
    "faults/test_postgres.py",
    "faults/test_processes.py",
    "faults/test_runners.py",
    "faults/test_upgrades.py",
    "integration/bench",
    "integration/cluster",
    "integration/notifications/test_deaths.py",
    "integration/operations/test_drill.py",
    "integration/operations/test_restore.py",
    "integration/trust/test_clock_skew.py",
    "integration/trust/test_outage.py",
    "integration/trust/test_rotation.py",
    "proxies/test_burst.py",
    "simulation/test_long_world.py",
    "simulation/test_seeds.py",
    "simulation/test_swim_simulation.py",
    "simulation/test_table_faults.py",
    "simulation/test_year.py",
    "simulation/test_year_checkers.py",
)
_PATHS: Final = frozenset(TESTS / name for name in LONG)


def is_long(file: Path) -> bool:
    """Of a test's file: it, or a folder above it, is listed."""
    return not _PATHS.isdisjoint((file, *file.parents))
