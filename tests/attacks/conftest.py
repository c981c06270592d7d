"""One real controller for all attacks of a file: what an earlier one broke shows in a later one."""

from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, Process


@pytest.fixture(scope="module", autouse=True)
def anew(fresh_programs: None) -> None:
    """What a process holds, and shows to others in /proc, is what is attacked."""


@pytest.fixture(scope="module")
def attacked(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With one controller in it."""
    with Cluster(module_database_url, tmp_path_factory.mktemp("attacked")) as cluster:
        cluster.start_controller()
        yield cluster


@pytest.fixture
def victim(attacked: Cluster) -> Iterator[Process]:
    """It lives through each attack, without a traceback."""
    process = attacked.controllers[0]
    yield process
    assert process.alive(), process.tail()
    assert "Traceback" not in process.log.read_text(errors="replace"), process.tail(60)
