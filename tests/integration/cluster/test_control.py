"""Operators at work on three living controllers: races over gRPC, ends of pauses, versions; and the judge."""

import asyncio
import json
import math
import random
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cronring.client import AsyncClient
from cronring.client.errors import Conflict
from cronring.client.model import Job, SkippedTick
from tests.integration.cluster.conftest import JOURNAL_MODULE
from tests.integration.cluster.trial import start, verdict_when_settled, wait_for_runs
from tests.support.cluster import Cluster
from tests.support.waiting import until

EACH = "journal.each_second"
ROUNDS = 10
ADDED = '\n\n@cron("0 0 1 1 *")\nasync def added(ctx: Context) -> None:\n    """New."""\n'


def lines(journal: Path, verb: str = "each_second") -> list[dict[str, Any]]:
    found = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for line in found if line["verb"] == verb and line["event"] == "start"]


def instant(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def test_a_pause_ends_by_itself_on_its_tick_whoever_died_meanwhile(cluster: Cluster, journal: Path) -> None:
    start(cluster, 3, 1)
    wait_for_runs(cluster, journal)
    owner = cluster.cli("cluster", "owners", EACH)["primary"]
    ends = int(time.time()) + 10  # a command takes seconds on a busy machine
    paused = cluster.cli("jobs", "pause", EACH, "--until", instant(ends).isoformat(), "--note", "maintenance")
    assert (paused["status"], paused["paused"]["note"]) == ("paused", "maintenance")
    first = datetime.fromisoformat(paused["next_tick"]).timestamp()
    assert first == ends
    members = {member["id"]: member["grpc_address"] for member in cluster.cli("cluster", "members")}
    next(each for each in cluster.controllers if each.grpc == members[owner]).kill()
    until("the first run after the pause", lambda: any(line["tick"] >= ends for line in lines(journal)))
    after = min(line["tick"] for line in lines(journal) if line["tick"] >= ends)
    assert after == ends
    begun = {line["tick"] for line in lines(journal)}
    paused_at = datetime.fromisoformat(paused["paused"]["at"]).timestamp()
    assert not [tick for tick in begun if paused_at + 0.1 < tick < ends]
    assert cluster.cli("jobs", "show", EACH)["status"] in {"scheduled", "running"}
    verdict = verdict_when_settled(cluster, journal, [])
    assert verdict.guilty() == {}, str(verdict)
    assert verdict.skipped["paused"] >= ends - math.ceil(paused_at + 0.1) >= 1


async def outcome(attempt: Awaitable[Any]) -> Any:
    try:
        return await attempt
    except Conflict as error:
        return error


async def race(clients: list[AsyncClient], chance: random.Random) -> None:
    """A pause, a resume and two who skip the same tick, each through another controller, while it ticks each second."""
    next_tick = instant(int(time.time()) + 1)
    await asyncio.sleep(max(0.0, next_tick.timestamp() - time.time() - chance.random() * 0.03))
    first, second, third = chance.sample(clients, 3)
    attempts = [
        outcome(first.jobs.skip_next(EACH, next_tick, "race", "one")),
        outcome(second.jobs.skip_next(EACH, next_tick, "race", "two")),
        outcome(third.jobs.pause(EACH, "race", "three")),
        outcome(first.jobs.resume(EACH, "four")),
    ]
    chance.shuffle(attempts)
    done = await asyncio.gather(*attempts)
    skipped = [each for each in done if isinstance(each, SkippedTick) and each.skipped]
    assert len(skipped) <= 1, "two who mean the same tick skip one"
    told = [str(each) for each in done if isinstance(each, Conflict)]
    known = ("has begun as execution", "it is paused", "was skipped already: paused", "the next tick of")
    assert all(any(words in each for words in known) for each in told), told
    await clients[0].jobs.resume(EACH, "after the race")


def test_operators_who_race_each_other_and_the_ticks_have_one_outcome(cluster: Cluster, journal: Path) -> None:
    start(cluster, 3, 2)
    wait_for_runs(cluster, journal)

    async def story() -> None:
        clients = [AsyncClient((controller.grpc,)) for controller in cluster.controllers]
        try:
            chance = random.Random(3)
            for _ in range(ROUNDS):
                await race(clients, chance)
        finally:
            for client in clients:
                await client.close()

    asyncio.run(story())
    verdict = verdict_when_settled(cluster, journal, [])
    assert verdict.guilty() == {}, str(verdict)
    actions = cluster.cli("jobs", "actions", EACH)
    assert {action["actor"] for action in actions} >= {"three"}
    skips = [action for action in actions if action["action"] == "skip_next"]
    assert len({action["details"]["tick"] for action in skips}) == len(skips), "each tick was skipped by one of them"


def test_many_jobs_are_paused_resumed_and_cancelled_at_once(cluster: Cluster, journal: Path) -> None:
    start(cluster, 3, 1)
    wait_for_runs(cluster, journal)
    shown = cluster.ask("jobs", "pause", "--module", "journal", "--dry-run")
    assert (shown.returncode, EACH in shown.stdout) == (0, True), shown.stderr
    assert {job["status"] for job in cluster.cli("jobs", "list")} <= {"scheduled", "running"}
    cluster.cli("jobs", "pause", "--module", "journal", "--yes", "--note", "all of it", "--as", "ada")
    jobs = cluster.cli("jobs", "list")
    assert {(job["status"], job["paused"]["by"], job["paused"]["note"]) for job in jobs} == {
        ("paused", "ada", "all of it")
    }
    again = cluster.cli("jobs", "pause", "--module", "journal", "--yes")
    assert (again["done"], again["unchanged"], again["failed"]) == (0, 3, [])
    cluster.cli("jobs", "resume", "--module", "journal", "--yes")
    cluster.cli("jobs", "cancel", "journal.longer_than_its_period", "--note", "too long")
    failed = cluster.ask("jobs", "pause", "--module", "journal", "--yes")
    assert failed.returncode == 1
    assert "journal.longer_than_its_period: can't pause" in failed.stderr
    assert "2 of 3 jobs are paused, 1 failed" in failed.stdout
    cluster.cli("jobs", "resume", "--module", "journal", "--status", "paused", "--yes")
    running = lambda: cluster.cli("executions", "list", "--job", "journal.longer_than_its_period", "--limit", "5")  # noqa: E731
    until("what ran of it has stopped", lambda: all(row["outcome"] for row in running()))
    restored = cluster.cli("jobs", "restore", "journal.longer_than_its_period")
    assert restored["next_tick"]
    verdict = verdict_when_settled(cluster, journal, [], periods_s={"each_second": 1, "each_second_sync": 1})
    assert verdict.guilty() == {}, str(verdict)


def test_an_older_version_ticks_again_and_never_beside_the_newer(
    cluster: Cluster, journal: Path, tmp_path: Path
) -> None:
    start(cluster, 3, 1)
    wait_for_runs(cluster, journal)
    (old,) = cluster.cli("deployments", "list", "--active")
    newer = tmp_path / "newer" / "journal.py"
    newer.parent.mkdir()
    newer.write_text(JOURNAL_MODULE.read_text() + ADDED)
    cluster.start_runner(newer)
    until("the newer version is active", lambda: cluster.cli("deployments", "list", "--active")[0]["key"] != old["key"])
    (new,) = cluster.cli("deployments", "list", "--active")
    until("it has a runner", lambda: cluster.cli("deployments", "get", new["key"])["runners"] == 1)
    for expected, previous in ((old, new), (new, old), (old, new)):
        told = cluster.cli("rollback", "journal", "--yes", "--note", "there and back", "--as", "ada")
        assert (told["deployment"]["key"], told["previous"]["key"]) == (expected["key"], previous["key"])
        assert [each["key"] for each in cluster.cli("deployments", "list", "--active")] == [expected["key"]]
        since = time.time()
        until("it ticks", lambda at=since: [line for line in lines(journal) if line["tick"] > at + 1])  # type: ignore[misc]  # a default binds it
    again = cluster.ask("rollback", "journal", "--to", old["key"])
    assert "was active already" in again.stdout
    history = cluster.cli("deployments", "list", "--module", "journal")
    assert {row["key"]: row["active"] for row in history} == {old["key"]: True, new["key"]: False}
    actions = cluster.cli("jobs", "actions", "--deployment", old["key"])
    assert [(row["action"], row["actor"]) for row in actions][:2] == [("activate", "ada"), ("activate", "ada")]
    verdict = verdict_when_settled(cluster, journal, [])
    assert verdict.guilty() == {}, str(verdict)


def test_a_version_that_nobody_hosts_is_told(cluster: Cluster, journal: Path, tmp_path: Path) -> None:
    start(cluster, 1, 1)
    wait_for_runs(cluster, journal)
    (old,) = cluster.cli("deployments", "list", "--active")
    newer = tmp_path / "newer" / "journal.py"
    newer.parent.mkdir()
    newer.write_text(JOURNAL_MODULE.read_text() + ADDED)
    deployed: Job = cluster.cli("deploy", str(newer))["deployment"]
    assert cluster.cli("deployments", "list", "--active")[0]["key"] == deployed["key"]  # type: ignore[index]  # JSON
    back = cluster.ask("rollback", "journal", "--yes")
    assert old["key"] in back.stdout
    assert "no runner hosts it" not in back.stdout
    forth = cluster.ask("rollback", "journal", "--yes")
    assert "no runner hosts it" in forth.stdout
