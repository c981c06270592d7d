"""What verbs can find out of their runner's environment: no secret of ours."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import READY_S, Cluster

SECRETS = {
    "CRONRING_TOKEN": "crt_hunter2-token",
    "CRONRING_DATABASE_URL": "postgresql://ann:hunter2-url@127.0.0.1:9/nothing",
    "CRONRING_WEBHOOK_SECRET": "whsec_hunter2-webhook",
}
MODULE = """import os
from pathlib import Path
from cronring import every


def of(pid):
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")


@every("1s")
def look() -> None:
    parent = os.getppid()
    Path("seen").write_text(repr(dict(os.environ)) + of("self") + of(parent) + str(parent))
"""


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as made:
        made.start_controller()
        yield made


def test_no_verb_reads_a_secret_of_its_runner(cluster: Cluster) -> None:
    (cluster.folder / "looks.py").write_text(MODULE)
    cluster.environment |= SECRETS | {"OWN_SETTING": "is theirs"}
    runner = cluster.start_runner(cluster.folder / "looks.py")
    seen, deadline = cluster.folder / "seen", time.monotonic() + READY_S
    while not (seen.exists() and str(runner.pid) in seen.read_text()):
        assert time.monotonic() < deadline, runner.tail()
        time.sleep(0.1)  # a poll with a deadline: another process writes it
    told = seen.read_text()
    assert "is theirs" in told
    assert "hunter2" not in told, json.dumps(told)
    assert "starts anew without" in runner.log.read_text()
    assert "hunter2" not in runner.log.read_text()
