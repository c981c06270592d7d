"""What comes, what has just been, and what a change would do: by the command line, at a real cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.support.cluster import Cluster
from tests.support.databases import run_coroutine
from tests.support.waiting import wait_until

MODULE = '''"""Twelve at one instant, and one each second."""

from cronring import cron, every


@every("1s")
async def often() -> None:
    """Each second."""

'''
NIGHTLY = '''
@cron("30 3 * * *", timezone="Europe/Berlin")
async def nightly_{0}() -> None:
    """With all others."""

'''


@pytest.fixture(scope="module")
def cluster(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("ahead")
    file = folder / "ahead.py"
    file.write_text(MODULE + "\n".join(NIGHTLY.format(number) for number in range(12)))
    with Cluster(module_database_url, folder) as made:
        made.start_controller()
        made.start_runner(file)
        run_coroutine(wait_until(lambda: has_run(made), "nothing ran"))
        yield made


def has_run(cluster: Cluster) -> bool:
    """Nobody knows of its jobs before a runner has come."""
    return any(run["outcome"] == "completed" for run in cluster.cli("executions", "list"))


def at_noon() -> str:
    """A zone whose clocks show twelve: what is of a day, or of a night, is hours away."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"  # in these names, west is plus


def test_what_comes_is_told_with_its_herds(cluster: Cluster) -> None:
    found = cluster.cli("upcoming")
    assert len(found["steps"]) == 96
    assert found["jobs"] == 13
    assert sum(step["starts"] for step in found["steps"]) >= 86_000
    shown = cluster.shown("upcoming")
    assert "herd: 1" in shown
    assert "ahead.nightly_" in shown
    assert max(map(len, shown.splitlines()[:13])) <= 80, "the table fits a screen"


def test_the_latest_time_is_told_alone(cluster: Cluster) -> None:
    found = cluster.cli("stats", "--within", "1h")
    assert found["outcomes"]["completed"] > 0
    assert found["lateness_p50_ms"] is not None
    assert "completed" in cluster.shown("stats", "--within", "1h")


def test_days_are_those_of_the_zone_that_is_asked_for(cluster: Cluster) -> None:
    zone = at_noon()
    days = cluster.cli("jobs", "days", "ahead.often", "--days", "3", "--timezone", zone)
    assert [day["runs"] > 0 for day in days] == [False, False, True]
    midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    assert days[-1]["from_at"] == midnight.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert days[-1]["day"] == midnight.date().isoformat()


def test_a_change_of_one_job_is_shown_and_not_made(cluster: Cluster) -> None:
    made = ("jobs", "create", "ahead.nightly_0", "--name", "mine", "--cron", "30 2 * * *", "--timezone", at_noon())
    cluster.cli(*made)
    change = ("jobs", "update", "ahead.nightly_0:mine", "--cron", "0 4 * * *", "--retries", "2", "--dry-run")
    preview = cluster.cli(*change)
    assert preview["ticks"]["shift_ms"] == 90 * 60 * 1_000
    assert {each["field"]: each["new"] for each in preview["fields"]}["policy.retries"] == "2"
    assert "7 ticks -> 7: 7 move, each 1h30m later" in cluster.shown(*change)
    assert cluster.cli("jobs", "get", "ahead.nightly_0:mine")["schedule"] == "30 2 * * *"


def test_a_job_that_would_be_made_is_shown_and_not_made(cluster: Cluster) -> None:
    asked = ("jobs", "create", "ahead.nightly_0", "--name", "new", "--every", "6h", "--dry-run")
    preview = cluster.cli(*asked)
    assert (preview["key"], preview["ticks"]["after"], preview["etag"]) == ("ahead.nightly_0:new", 28, "")
    assert "+ ahead.nightly_0:new: every 6h, 28 ticks" in cluster.shown(*asked)
    of_queue = ("jobs", "create", "--queue", "reports", "--cron", "0 6 * * *", "--dry-run")
    assert "+ @reports.-:default: 0 6 * * *, 7 ticks" in cluster.shown(*of_queue)
    keys = {job["key"] for job in cluster.cli("jobs", "list", "--limit", "100")}
    assert not keys & {"ahead.nightly_0:new", "@reports.-:default"}


def test_what_a_job_comes_to_is_said_with_what_its_verb_takes(cluster: Cluster) -> None:
    said = cluster.cli("jobs", "explain", "ahead.nightly_0", "-n", "3")
    assert (len(said["ticks"]), said["kind"], said["verb"]["request"]) == (3, "fixed-time", "Unit")
    text = cluster.shown("jobs", "explain", "ahead.nightly_0")
    assert "next ticks:" in text
    assert "payload" in text
