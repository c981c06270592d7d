"""memory_limit and cpu_limit from annotation and command line to PostgreSQL, on a living cluster."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import until

MODULE = Path(__file__).parent / "modules" / "quotas.py"
MIB = 1 << 20


@pytest.fixture(scope="module")
def cluster(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("quotas")
    journal = folder / "journal"
    with Cluster(module_database_url, folder, {"JOURNAL": str(journal)}) as cluster:
        cluster.start_controller()
        cluster.start_runner(MODULE)
        until("the first run", journal.exists)
        yield cluster


def _run(cluster: Cluster, job: str, ends: int = 1) -> list[dict[str, Any]]:
    """Trigger it; its executions when so many have ended, the first of them first."""
    cluster.cli("jobs", "trigger", job)

    def rows() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = cluster.cli("executions", "list", "--job", job)
        return [row for row in listed if row["outcome"]]

    until(f"{job} has ended", lambda: len(rows()) == ends)
    found = [cluster.cli("executions", "get", str(row["id"])) for row in rows()]
    return sorted(found, key=lambda row: row["id"])


def test_what_ran_out_of_memory_is_recorded_so_and_retried(cluster: Cluster) -> None:
    first, second = _run(cluster, "quotas.too_much_at_first", 2)
    assert (first["outcome"], first["error_type"], first["attempt"]) == ("out_of_memory", "MemoryLimit", 1)
    assert " than its memory_limit=128MiB" in first["error_message"]
    assert first["memory_peak_bytes"] > 128 * MIB
    assert (second["outcome"], second["attempt"], second["trigger"]) == ("completed", 2, "retry")
    listed = cluster.cli("executions", "list", "--outcome", "out_of_memory")
    assert [row["id"] for row in listed] == [first["id"]]
    stats = cluster.cli("jobs", "stats", "quotas.too_much_at_first")
    assert (stats["outcomes"]["out_of_memory"], stats["outcomes"]["completed"]) == (1, 1)
    assert cluster.cli("jobs", "show", "quotas.too_much_at_first")["policy"]["memory_limit"] == "128MiB"


def test_what_ran_out_of_cpu_is_recorded_so_and_nothing_beside_it_is_harmed(cluster: Cluster) -> None:
    [burnt] = _run(cluster, "quotas.burns")
    assert (burnt["outcome"], burnt["error_type"]) == ("out_of_cpu", "CpuLimit")
    assert " than its cpu_limit=500ms" in burnt["error_message"]
    assert 500 < burnt["cpu_ms"] < 1500
    beside = cluster.cli("executions", "list", "--job", "quotas.beside", "--limit", "100")
    assert {row["outcome"] for row in beside if row["outcome"]} == {"completed"}
    assert cluster.cli("stats")["outcomes"]["out_of_cpu"] == 1


def test_a_limit_that_an_operator_sets_holds_from_the_next_run_on(cluster: Cluster) -> None:
    job = "quotas.unlimited"
    assert [row["outcome"] for row in _run(cluster, job)] == ["completed"]
    cluster.cli("jobs", "create", job, "--name", "limited", "--manual", "--memory-limit", "64MiB")
    [row] = _run(cluster, f"{job}:limited")
    assert (row["outcome"], row["memory_shared"]) == ("out_of_memory", False)
    cluster.cli("jobs", "update", f"{job}:limited", "--memory-limit", "1GiB")
    assert [row["outcome"] for row in _run(cluster, f"{job}:limited", 2)] == ["out_of_memory", "completed"]
