"""`cronring drill kill-owner` on real controllers: its report against the tables, and the verbs' own journal."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cronring.client import AsyncClient
from cronring.client.drills import Phase
from cronring.client.errors import Conflict
from tests.integration.cluster import trial
from tests.integration.cluster.conftest import JOURNAL_MODULE
from tests.support.cluster import Cluster, Process
from tests.support.looking import look
from tests.support.waiting import until

SELDOM = Path(__file__).parent / "modules" / "seldom.py"
JOB = "journal.each_second"
BACKUP_DELAY_MS = 500


class Drill:
    """The command line as a user starts it, in the middle of its work."""

    def __init__(self, cluster: Cluster, *arguments: str) -> None:
        addresses = ",".join(controller.grpc for controller in cluster.controllers if controller.alive())
        command = [sys.executable, "-m", "cronring.cli.main", "drill", "kill-owner", *arguments]
        self.popen = subprocess.Popen(
            [*command, "--controllers", addresses], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=cluster.environment,
        )  # fmt: skip

    def finish(self) -> tuple[int, str, str]:
        """Exit code, output, errors."""
        output, errors = self.popen.communicate(timeout=100)
        return self.popen.returncode, output, errors


def refused(cluster: Cluster, *arguments: str) -> str:
    code, output, errors = Drill(cluster, "--yes", *arguments).finish()
    assert (code, output) == (1, ""), errors
    return errors


def gauge(controller: Process, name: str) -> float:
    with urllib.request.urlopen(f"http://{controller.http}/metrics", timeout=60) as answer:
        matched = re.search(rf"^cronring_{name} (\S+)$", answer.read().decode(), re.MULTILINE)
    assert matched, f"no {name}"
    return float(matched[1])


def statuses(members: list[dict[str, Any]]) -> set[str]:
    """Of those that have a place on the ring."""
    return {each["status"] for each in members if each["primary_slots"]}


def owners(cluster: Cluster) -> int:
    return sum(each["primary_slots"] > 0 for each in cluster.cli("cluster", "members"))


def in_drill(cluster: Cluster) -> list[Process]:
    return [each for each in cluster.controllers if each.alive() and gauge(each, "in_drill")]


def one_in_drill(cluster: Cluster) -> Process:
    """As soon as there is one."""
    found: list[Process] = []

    def look() -> bool:
        found.extend(in_drill(cluster))
        return bool(found)

    until("it is in a drill", look)
    return found[0]


def claims(database_url: str, begun: str, ended: str) -> list[tuple[str, str, float]]:
    """(job, controller, ms from run_at to the claim) of scheduled first attempts to be run within that time."""

    async def ask() -> list[tuple[str, str, float]]:
        connection = await look(database_url)
        try:
            rows = await connection.fetch(
                "SELECT j.key, e.controller_id, extract(epoch FROM e.claimed_at - e.run_at)::float * 1000"
                " FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id"
                " WHERE e.run_at BETWEEN $1 AND $2 AND e.attempt = 1 AND e.trigger IN ('schedule', 'catch_up')",
                datetime.fromisoformat(begun), datetime.fromisoformat(ended),
            )  # fmt: skip
            return [(row[0], row[1], row[2]) for row in rows]
        finally:
            await connection.close()

    return asyncio.run(ask())


def on_record(database_url: str, remark: str) -> list[tuple[str, ...]]:
    """What the audit log has of drills that somebody asked for."""

    async def ask() -> list[tuple[str, ...]]:
        connection = await look(database_url)
        try:
            rows = await connection.fetch(
                "SELECT principal, subject, after FROM cron_audit_log WHERE remark = $1"
                " AND method = '/cronring.v1.Drills/HoldDrill' AND refused IS NULL AND before IS NULL",
                remark,
            )
            return list(map(tuple, rows))
        finally:
            await connection.close()

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drill") / "journal"


@pytest.fixture(scope="module")
def cluster(module_database_url: str, journal: Path) -> Iterator[Cluster]:
    with Cluster(module_database_url, journal.parent, {"JOURNAL": str(journal)}) as started:
        trial.start(started, controllers=3, runners=0)
        started.start_runner(JOURNAL_MODULE, SELDOM)
        trial.wait_for_runs(started, journal)
        until("all three own jobs", lambda: owners(started) == 3)
        yield started


def test_others_take_over_and_the_report_says_what_the_tables_say(cluster: Cluster, journal: Path) -> None:
    ids = {member["grpc_address"]: member["id"] for member in cluster.cli("cluster", "members")}
    drill = Drill(cluster, "--job", JOB, "--for", "6s", "--yes", "-o", "json")
    primary = one_in_drill(cluster)
    code, output, errors = drill.finish()
    report: dict[str, Any] = json.loads(output)

    assert report["controller"] == ids[primary.grpc]
    assert f"its primary {report['controller']}: claims nothing for 6s" in errors
    assert (report["lost"], report["duplicates"], report["undecided"], report["cut"]) == (0, 0, [], "")
    assert 5_900 < report["lasted_ms"] < 8_000

    mine = [row for row in claims(cluster.database_url, report["begun"], report["ended"]) if row[0] in report["jobs"]]
    others = [row for row in mine if row[1] != report["controller"]]
    assert sum(job == JOB for job, _, _ in others) >= 4, mine
    assert min(late_ms for _, _, late_ms in others) > 0.8 * BACKUP_DELAY_MS, "nobody but a backup may have claimed them"
    late_itself = [late_ms for _, controller, late_ms in mine if controller == report["controller"]]
    assert len(late_itself) <= len(report["jobs"]), (
        "of each job at most the last tick is claimed by it, once it is over"
    )
    assert report["taken_over"]["ticks"] == len(others)
    assert report["itself"]["ticks"] == len(late_itself)
    assert report["by"] == {name: sum(row[1] == name for row in others) for name in report["by"]}
    assert report["of_job"]["ticks"] == sum(job == JOB for job, _, _ in others)
    assert report["taken_over"]["max_ms"] >= max(late_ms for _, _, late_ms in others)

    # Whether all began within a second is this machine's matter as well; that verdict and exit code say so, is not.
    in_time = not report["late"]
    assert all(each["lateness_ms"] > 1_000 for each in report["late"])
    assert (code, report["held"]) == (0 if in_time else 1, in_time), report["verdict"]
    assert in_drill(cluster) == []
    assert trial.verdict_when_settled(cluster, journal, []).guilty() == {}


def test_it_is_logged_and_counted_by_the_controller(cluster: Cluster) -> None:
    drill = Drill(cluster, "--for", "5s", "--yes", "--as", "ann")
    primary = one_in_drill(cluster)
    _, output, _ = drill.finish()
    notes = [json.loads(line) for line in primary.log.read_text().splitlines() if line.startswith("{")]
    begun = next(note for note in reversed(notes) if note["event"] == "in_drill")
    ended = next(note for note in reversed(notes) if note["event"] == "claiming_again")
    assert (begun["by"], begun["for_ms"], begun["level"]) == ("ann", 5_000, "warning")
    kept = on_record(cluster.database_url, "for ann")
    assert kept == [("local", f"controller {begun['controller']}", '{"drill_for_ms":5000,"forced":false}')]
    assert ended["why"] == "its time is over"
    assert gauge(primary, "node_drills_total") >= 1
    assert "LATENESS OF TICKS" in output
    assert output.splitlines()[-1].startswith(("HELD: ", "NOT HELD: ", "NOT SHOWN: "))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_it_claims_again_at_once_when_the_command_ends(cluster: Cluster, number: signal.Signals) -> None:
    drill = Drill(cluster, "--for", "60s", "--yes")
    primary = one_in_drill(cluster)
    drill.popen.send_signal(number)
    code, _, errors = drill.finish()
    assert code == (130 if number is signal.SIGINT else -9)
    assert number is signal.SIGKILL or "claims again" in errors
    until("it claims again", lambda: not in_drill(cluster))
    until("all know", lambda: statuses(cluster.cli("cluster", "members")) == {"alive"})
    notes = [json.loads(line) for line in primary.log.read_text().splitlines() if '"claiming_again"' in line]
    assert notes[-1]["why"] == "it was ended early"


def test_of_two_drills_the_second_is_refused(cluster: Cluster) -> None:
    async def both() -> str:
        members = cluster.cli("cluster", "members")
        first, second = [each for each in members if each["primary_slots"]][:2]
        async with AsyncClient((first["grpc_address"],)) as one, AsyncClient((second["grpc_address"],)) as other:
            words = one.drills.hold_drill(first["id"], 60.0, "ann")
            assert (await anext(words)).phase is Phase.BEGUN
            shown = {member.id: member.status for member in (await other.cluster.get()).members}
            assert shown[first["id"]] == "in_drill", "whomever one asks"
            assert shown[second["id"]] == "alive"
            with pytest.raises(Conflict) as refusal:
                await anext(other.drills.hold_drill(second["id"], 2.0, "bob"))
            with pytest.raises(Conflict, match="it is in a drill already"):
                await anext(one.drills.hold_drill(first["id"], 2.0, "bob"))
            with pytest.raises(Conflict, match="another process has taken its address"):
                await anext(other.drills.hold_drill(first["id"], 2.0, "bob"))
            assert first["id"] in refused(cluster, "--for", "5s")
            await words.aclose()
        return f"{first['id']} | {refusal.value}"

    told = asyncio.run(both())
    assert re.match(r"(\S+) \| \1 is in a drill already", told), told
    until("it is over", lambda: not in_drill(cluster))


def test_what_would_show_nothing_is_refused_with_what_to_do(cluster: Cluster) -> None:
    until("all know", lambda: statuses(cluster.cli("cluster", "members")) == {"alive"})
    cluster.cli("jobs", "pause", "seldom.halted")
    assert "`cronring jobs resume seldom.halted`" in refused(cluster, "--job", "seldom.halted")
    assert "Did you mean 'journal.each_second'" in refused(cluster, "--job", "journal.each_secnd")
    told = refused(cluster, "--job", "seldom.yearly")
    assert "-01-01 00:00:00Z" in told
    assert "longer --for" in told
    assert "is for clusters of `cronring dev` only" in refused(cluster, "--kill")
    assert sum(controller.alive() for controller in cluster.controllers) == 3
    assert in_drill(cluster) == []


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stands-still", "dies"])
def test_the_primary_goes_in_the_middle(cluster: Cluster, journal: Path, number: signal.Signals) -> None:
    """The last of those that share the cluster: one of its controllers is gone."""
    drill = Drill(cluster, "--job", JOB, "--for", "9s", "--yes", "-o", "json")
    primary = one_in_drill(cluster)
    time.sleep(2)  # into its middle: before, its command may not have heard yet that it began
    primary.send(number)
    code, output, errors = drill.finish()
    assert output, errors
    report = json.loads(output)
    assert "the connection to it was lost" in report["cut"]
    assert (report["lost"], report["duplicates"], report["undecided"]) == (0, 0, [])
    assert report["taken_over"]["ticks"] >= 5
    assert report["itself"]["ticks"] == 0
    assert code == (0 if report["held"] else 1)
    if number is signal.SIGSTOP:
        primary.send(signal.SIGCONT)
        until("it claims again", lambda: gauge(primary, "in_drill") == 0)
        until("it is back on the ring", lambda: owners(cluster) == 3)
    else:
        primary.kill()
    assert trial.verdict_when_settled(cluster, journal, []).guilty() == {}


def test_alone_it_is_refused_and_if_forced_its_ticks_are_late(database_url: str, tmp_path: Path) -> None:
    with Cluster(database_url, tmp_path, {"JOURNAL": str(tmp_path / "journal")}) as alone:
        trial.start(alone, controllers=1, runners=1)
        trial.wait_for_runs(alone, tmp_path / "journal")
        assert "the only controller alive" in refused(alone, "--for", "4s")
        code, output, _ = Drill(alone, "--for", "4s", "--yes", "--force", "-o", "json").finish()
        report = json.loads(output)
        assert (code, report["held"]) == (1, False)
        assert report["taken_over"]["ticks"] == 0
        assert report["lost"] == 0, "by policy the latest of each runs, and the others are in the books as superseded"
        assert report["skipped"]["superseded"] >= 2
