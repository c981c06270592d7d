"""`cronring defaults` at a real cluster: a verb that says no timeout is stopped by it, and nothing is deployed anew."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.programs import run
from tests.support.waiting import until

KEY, STATED = "endless.unstated", "endless.stated"
MODULE = """
import asyncio

from cronring import every


@every("1h", jitter="off", overlap="allow")
async def unstated() -> None:
    await asyncio.Event().wait()


@every("1h", jitter="off", timeout="1h")
async def stated() -> None:
    pass
"""


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Any:
    with Cluster(database_url, tmp_path) as found:
        yield found


def shown(cluster: Cluster, key: str) -> dict[str, str]:
    lines = cluster.ask("jobs", "show", key).stdout.splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition("  ") for line in lines)}


def ended(cluster: Cluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cluster.cli("executions", "list", "--job", KEY)
    return [row for row in rows if row["outcome"]]


def test_a_default_stops_what_says_no_timeout(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "endless.py"
    file.write_text(MODULE)
    for _ in range(2):
        cluster.start_controller()
    cluster.start_runner(file)
    until("the jobs", lambda: len(cluster.cli("jobs", "list")) == 2)
    assert "not set" in cluster.ask("defaults", "show").stdout
    assert shown(cluster, KEY)["timeout"] == "5m (built in)"
    cluster.cli("jobs", "trigger", KEY)
    first = until("the first run", lambda: cluster.cli("executions", "list", "--job", KEY))[0]
    values = ("timeout=2s", "late_after=30s", "retries=2")
    told = cluster.ask("defaults", "set", *values, "--as", "ada", "--note", "a try")
    assert (told.returncode, told.stderr) == (0, "")
    assert "2s" in told.stdout
    assert "by ada: a try" in told.stdout
    assert shown(cluster, KEY)["timeout"] == "2s (cluster default)"
    assert shown(cluster, KEY)["late_after"].startswith("30s (cluster default)")
    assert shown(cluster, KEY)["retries"].startswith("2 (cluster default)")
    assert shown(cluster, STATED)["timeout"] == "1h"
    assert cluster.cli("defaults", "unset", "retries")["retries"] == 0

    cluster.cli("jobs", "trigger", KEY)
    rows = until("the second run is stopped", lambda: ended(cluster))
    assert {row["outcome"] for row in rows} == {"timed_out"}
    assert first["id"] not in {row["id"] for row in ended(cluster)}, "what runs keeps what it had"
    found = cluster.cli("defaults", "unset", "timeout")
    assert (found["timeout_ms"], found["late_after"], found["revision"]) == (None, "30s", 3)
    stale = cluster.ask("defaults", "set", "timeout=1m", "--if-match", "other")
    assert (stale.returncode, "changed since" in stale.stderr) == (1, True)
    assert shown(cluster, KEY)["timeout"] == "5m (built in)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("set", "backoff=2s"), "timeout, late_after, retries"),
        (("set", "retries=few"), "few"),
        (("set", "retries=-1"), "-1"),
        (("set", "timeuot=2m"), "do you mean timeout?"),
        (("set", "timeout"), "write timeout=VALUE"),
        (("set", "timeout="), "cronring defaults unset"),
        (("set", "timeout=1m", "timeout=2m"), "given twice"),
        (("set", "timeout=soon"), "soon"),
        (("unset", "late-afterr"), "do you mean late_after?"),
        (("set",), "NAME=VALUE"),
    ],
)
def test_what_is_no_default_is_told_before_anybody_is_asked(arguments: tuple[str, ...], words: str) -> None:
    done = run(("defaults", *arguments, "--controllers", "127.0.0.1:1"))
    assert done.returncode == 2, done.stderr
    assert words in " ".join(done.stderr.split())
