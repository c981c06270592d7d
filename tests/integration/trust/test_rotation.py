"""Certificates are replaced under load, leaves and then the CA itself: no run is lost, and nobody is cut off."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cronring.schema.spiffe import runner_name
from cronring.trust.certificates import new_authority
from cronring.trust.holding import RELOAD_S
from tests.attacks.test_strangers import gossips
from tests.support.cluster import READY_S, Process
from tests.support.forging import shown
from tests.support.secured import CLUSTER, SecuredCluster

VERBS = 40
MODULE = "import time\nfrom cronring import every\n" + "".join(
    f"\n\n@every('1s')\ndef beat{number}() -> None:\n    time.sleep(0.2)\n" for number in range(VERBS)
)


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[SecuredCluster]:
    """Two controllers, a runner with a folder of certificates, and one that enrolled."""
    with SecuredCluster(database_url, tmp_path) as made:
        for _ in range(2):
            made.start_controller()
        made.environment["CRONRING_TOKEN"] = made.on_database(
            "token", "create", "--name", "root", "--role", "admin", "--namespace", "*"
        )
        (tmp_path / "beats.py").write_text(MODULE)
        for name, more in (("tests", ["--certificate-only"]), ("joined", [])):
            granted = made.ask("runner-grant", "create", "--name", name, "--may-activate", *more)
            assert granted.returncode == 0, granted.stderr
        join = tmp_path / "join"
        join.write_text(granted.stdout)
        made.start_runner(tmp_path / "beats.py")
        made.start_runner(tmp_path / "beats.py", extra=("--join-token-file", str(join), "--ca", str(made.pki.ca)))
        wait_hosted(made)
        yield made


def wait_hosted(cluster: SecuredCluster) -> None:
    """Until both runners are there, with what they were started with."""
    deadline = time.monotonic() + READY_S
    while len(json.loads(cluster.ask("cluster", "runners", "-o", "json").stdout)) < 2:
        assert time.monotonic() < deadline, [each.tail(5) for each in cluster.runners]
        time.sleep(0.2)


def replaced(process: Process) -> int:
    return process.log.read_text(errors="replace").count("certificates_replaced")


def wait_replaced(processes: list[Process], before: dict[str, int]) -> None:
    """Until each has taken what is new."""
    deadline = time.monotonic() + 4 * RELOAD_S
    while any(replaced(each) <= before[each.name] for each in processes):
        assert time.monotonic() < deadline, [each.tail(5) for each in processes if replaced(each) <= before[each.name]]
        time.sleep(0.2)  # a poll with a deadline: a log has no other way to tell


def outcomes(cluster: SecuredCluster) -> dict[str, Any]:
    told = cluster.ask("audit", "--since", "-10m", "-o", "json")
    assert told.returncode == 0, told.stdout + told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


@pytest.mark.timeout(240)
def test_leaves_and_then_the_ca_are_replaced_under_load(cluster: SecuredCluster) -> None:
    pki, members = cluster.pki, [*cluster.controllers, cluster.runners[0]]
    # What somebody has who was forgotten.
    old = shown(pki.issue(runner_name(CLUSTER, "default", "tests"), where="kept"), b"")

    def step(change: Any) -> None:
        before = {each.name: replaced(each) for each in members}
        change()
        wait_replaced(members, before)

    step(pki.renew_all)  # leaves
    first, second = pki.pair, new_authority(CLUSTER)
    pki.trusted = second.certificate + first.certificate
    step(pki.spread)  # both CAs count
    old = old._replace(roots=pki.trusted)
    pki.pair = second
    pki.save()
    step(pki.renew_all)  # leaves of the new one
    assert asyncio.run(gossips(cluster.peers[0], old, "c9-000000")) is grpc.StatusCode.PERMISSION_DENIED
    pki.trusted = second.certificate
    step(pki.spread)  # and the old one counts no more
    assert asyncio.run(gossips(cluster.peers[0], old, "c9-000000")) is grpc.StatusCode.UNAVAILABLE
    for runner in cluster.runners:
        log = runner.log.read_text(errors="replace")
        assert "contact_lost" not in log, runner.tail()
        assert "Traceback" not in log, runner.tail(40)
    told = json.dumps(outcomes(cluster))
    assert '"lost"' not in told, told
    assert "no_runner" not in told, told
    runners = json.loads(cluster.ask("cluster", "runners", "-o", "json").stdout)
    assert [each["id"].partition(".")[0] for each in runners if each["alive"]], runners
