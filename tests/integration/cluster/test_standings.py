"""A runner that stays connected learns when another version takes over, goes back, or nothing is active any more."""

import re
from pathlib import Path

from tests.support.cluster import Cluster, Process
from tests.support.waiting import until

CRAWLER = Path(__file__).parent / "modules" / "crawler.py"


def until_it_says(runner: Process, event: str) -> None:
    """It is what the runner said last of how its version stands."""
    events = r"deployment_(?:in)?active|module_registered"
    until(lambda: f"{runner.tail()}\n{event}", lambda: re.findall(events, runner.log.read_text())[-1:] == [event])


def test_a_runner_says_when_its_version_is_replaced_and_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_controller()
    cluster.start_controller()
    old = cluster.start_runner(CRAWLER)
    until_it_says(old, "module_registered")
    newer = tmp_path / "newer" / "crawler.py"
    newer.parent.mkdir()
    newer.write_text(CRAWLER.read_text().replace("yearly", "monthly"))
    new = cluster.start_runner(newer)
    until_it_says(old, "deployment_inactive")
    cluster.cli("rollback", "crawler", "--yes")
    until_it_says(old, "deployment_active")
    until_it_says(new, "deployment_inactive")
    cluster.cli("undeploy", "crawler", "--yes")
    until_it_says(old, "deployment_inactive")
    cluster.cli("deploy", str(newer), "--yes")
    until_it_says(new, "deployment_active")
