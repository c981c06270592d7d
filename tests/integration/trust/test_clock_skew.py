"""Controllers whose clocks are wrong judge certificates by them: some minutes are allowed, and more cuts nobody off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.integration.trust.conftest import said
from tests.support.faked_clocks import missing, wrong_by
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

HOUR_S: Final = 3_600.0
# Certificates begin 5 minutes before they are made, and end here after a day.
ALLOWED_S: Final = -240.0
TOO_EARLY_S: Final = -HOUR_S
TOO_LATE_S: Final = 48 * HOUR_S
MODULE: Final = """from cronring import every


@every("1s")
def each_second() -> None: ...
"""
RUNS: Final = 8

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"needs Debian's {missing()}")


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[SecuredCluster]:
    """Controllers by their clocks: right, allowed, too early, too late."""
    with SecuredCluster(database_url, tmp_path) as made:
        for offset_s in (0.0, ALLOWED_S, TOO_EARLY_S, TOO_LATE_S):
            made.start_controller(wait=False, wrapper=wrong_by(offset_s) if offset_s else ())
        for each in made.controllers[:2]:
            made.wait_ready(each)
        made.let_in()
        yield made


async def test_a_runner_stays_with_those_whose_clocks_are_right(cluster: SecuredCluster) -> None:
    (cluster.folder / "ticks.py").write_text(MODULE)
    runner = cluster.start_runner(cluster.folder / "ticks.py")
    for peer in cluster.peers[:2]:
        await said(runner, "controller_connected", peer)
    for peer in cluster.peers[2:]:
        await said(runner, "controller_not_connected", peer)
    async with cluster.client() as client:
        first = (await client.executions.list(limit=1))[:1]
        last = first[0].id if first else 0

        async def have_run() -> bool:
            found = await client.executions.list("ticks.each_second", limit=100)
            return sum(each.id > last and each.outcome == "completed" for each in found) >= RUNS

        await wait_until(have_run, runner.tail)
        found = await client.executions.list("ticks.each_second", limit=200)
        assert {each.outcome for each in found} <= {"completed", "", None}, found
        assert len({each.tick for each in found}) == len(found), "each tick once"
        audited = await client.ledger.audit()
    assert not audited.findings, audited
    assert "contact_lost" not in runner.log.read_text(), runner.tail()
    for controller, off in zip(cluster.controllers[2:], ("1h behind", "2d ahead of"), strict=True):
        await said(controller, "host_clock_off", f"{off} PostgreSQL's")
    assert "host_clock_off" not in cluster.controllers[0].log.read_text()
    for controller in cluster.controllers:
        assert controller.alive(), controller.tail()
        assert "Traceback" not in controller.log.read_text(), controller.tail(60)
