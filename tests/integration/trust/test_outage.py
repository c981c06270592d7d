"""PostgreSQL is away, and a runner has to connect anew: by its certificate alone, or its runs would be stopped."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.trust.test_rotation import replaced
from tests.support.cluster import READY_S
from tests.support.databases import PostgresServer, running_server
from tests.support.secured import SecuredCluster

AWAY_S = 12.0  # longer than the fence of 8 s, after which a runner without contact stops its runs
MODULE = """import time
from cronring import cron


@cron("0 0 1 1 *")
def export() -> None:
    time.sleep(40)
"""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_server("postgres18") as made:
        yield made


@pytest.fixture
def cluster(server: PostgresServer, tmp_path: Path) -> Iterator[SecuredCluster]:
    with SecuredCluster(server.url(server.create_database()), tmp_path) as made:
        made.migrate()
        made.start_controller()
        made.environment["CRONRING_TOKEN"] = made.on_database(
            "token", "create", "--name", "root", "--role", "admin", "--namespace", "*"
        )
        granted = made.ask("runner-grant", "create", "--name", "tests", "--certificate-only", "--may-activate")
        assert granted.returncode == 0, granted.stderr
        (tmp_path / "long.py").write_text(MODULE)
        made.start_runner(tmp_path / "long.py")
        yield made


def until(what: str, cluster: SecuredCluster, *command: str, seconds: float = READY_S) -> str:
    """What a command says once that holds `what`."""
    deadline = time.monotonic() + seconds
    while what not in (said := cluster.ask(*command).stdout):
        assert time.monotonic() < deadline, f"{what!r} is not in {said}\n{cluster.runners[0].tail()}"
        time.sleep(0.3)  # a poll with a deadline: another process does it
    return said


@pytest.mark.timeout(200)
def test_a_run_goes_on_though_its_runner_connects_anew(cluster: SecuredCluster, server: PostgresServer) -> None:
    until("long.export", cluster, "jobs", "list")
    triggered = cluster.ask("jobs", "trigger", "long.export")
    assert triggered.returncode == 0, triggered.stderr
    until("running", cluster, "jobs", "list")
    runner, controller = cluster.runners[0], cluster.controllers[0]
    before = replaced(runner), runner.log.read_text().count("controller_disconnected")
    server.stop()
    cluster.pki.renew_all()
    stopped = time.monotonic()
    while replaced(runner) <= before[0]:
        assert time.monotonic() < stopped + READY_S, runner.tail()
        time.sleep(0.2)  # a poll with a deadline: a log has no other way to tell
    moved = time.monotonic()
    while time.monotonic() < moved + AWAY_S:  # that it is away for so long is what is tried
        assert controller.alive(), controller.tail()
        time.sleep(0.2)
    assert runner.log.read_text().count("controller_disconnected") > before[1], "it has connected anew"
    server.start()
    said = until('"outcome": "', cluster, "executions", "list", "-o", "json", seconds=90)
    (run,) = json.loads(said)
    assert (run["outcome"], run["attempt"]) == ("completed", 1), run
    assert "contact_lost" not in runner.log.read_text()
