"""Three times what the runners have room for, in real processes: judged from the books and the verbs' own journal."""

from pathlib import Path

import pytest

from tests.faults.overload_load import JOBS, environment, overload
from tests.support.cluster import Cluster

SECONDS = 15.0


@pytest.mark.timeout(180)
def test_what_has_no_place_waits_in_its_row_and_what_is_claimed_runs_at_once(database_url: str, tmp_path: Path) -> None:
    with Cluster(database_url, tmp_path, environment(tmp_path / "journal")) as cluster:
        figures = overload(cluster, SECONDS)
    assert figures.guilty == {}, figures
    # On a machine that has nothing else to do: 0.97, 0.02 and 0.1 s. Without places they wait for up to three seconds.
    assert figures.used > 0.75, figures
    assert figures.waited_p50_s < 0.25, figures
    assert figures.waited_p99_s < 1.0, figures
    assert figures.most_claimed_at_once <= 8, figures
    assert figures.waiting_for_place >= JOBS / 3, figures
    assert figures.jobs_that_ran == JOBS, figures
    assert set(figures.skipped) <= {"superseded", "overlap"}, figures
    assert max(figures.grew_mib.values()) < 8, figures
