"""Every policy on a living cluster: two controllers, a runner, PostgreSQL, and the real command line."""

import asyncio
import datetime
import itertools
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cronring.client import AsyncClient
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.waiting import until

MODULE = Path(__file__).parent / "modules" / "policies.py"
LASTS_S = 14.0
Line = dict[str, Any]
OVERLAPPED = """
SELECT extract(epoch FROM s.first_tick)::bigint, extract(epoch FROM s.last_tick)::bigint
FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id WHERE j.verb = $1 AND s.reason = 'overlap'"""


class Story:
    """A cluster that has run the module for a while, and what its verbs wrote."""

    def __init__(self, cluster: Cluster, journal: Path, once_at: float) -> None:
        self.cluster = cluster
        self.once_at = once_at
        self._journal = journal

    def lines(self, name: str, **wanted: object) -> list[Line]:
        lines = [json.loads(line) for line in self._journal.read_text().splitlines()]
        return [
            line
            for line in lines
            if line["job"] == f"policies.{name}" and all(line[key] == value for key, value in wanted.items())
        ]

    def job(self, name: str) -> Line:
        row: Line = self.cluster.cli("jobs", "show", f"policies.{name}")
        return row

    def skipped(self, name: str) -> dict[str, int]:
        ticks: dict[str, int] = self.job(name)["skipped"]
        return ticks

    def executions(self, name: str) -> list[Line]:
        rows: list[Line] = self.cluster.cli("executions", "list", "--job", f"policies.{name}", "--limit", "100")
        return rows

    def overlapped(self, name: str) -> set[int]:
        """Ticks of each second that were skipped since a run went on."""

        async def found() -> list[Any]:
            connection = await look(self.cluster.database_url)
            try:
                return list(await connection.fetch(OVERLAPPED, name))
            finally:
                await connection.close()

        return {tick for first, last in asyncio.run(found()) for tick in range(first, last + 1)}


@pytest.fixture(scope="module")
def story(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("policies")
    journal = folder / "journal"
    once_at = int(time.time()) + 15
    at = datetime.datetime.fromtimestamp(once_at, datetime.UTC).isoformat()
    with Cluster(module_database_url, folder, {"JOURNAL": str(journal), "ONCE_AT": at}) as cluster:
        for _ in range(2):
            cluster.start_controller()
        cluster.start_runner(MODULE)
        told = Story(cluster, journal, once_at)
        until("the first run", journal.exists)
        time.sleep(LASTS_S)  # what is watched is what happens in this time
        yield told


def test_a_zone_is_that_of_the_tick_on_the_wall(story: Story) -> None:
    assert {line["zone"][-6:] for line in story.lines("plain")} == {"+05:45"}


def test_a_failing_tick_is_tried_again_with_its_attempts(story: Story) -> None:
    ticks = {line["tick"] for line in story.lines("retried", attempt=3)}
    assert ticks
    for tick in ticks:
        attempts = story.lines("retried", tick=tick)
        assert [line["attempt"] for line in attempts] == [1, 2, 3]
        assert [line["trigger"] for line in attempts] == ["schedule", "retry", "retry"]
        waits = [later["at"] - line["at"] for line, later in itertools.pairwise(attempts)]
        assert waits[0] >= 0.5
        assert waits[1] >= 1.0


def test_each_attempt_has_the_trace_that_its_verb_is_told(story: Story) -> None:
    told = {line["id"]: line["traceparent"].split("-")[1] for line in story.lines("retried")}
    known = {row["id"]: row["trace_id"] for row in story.executions("retried")}
    assert len(set(known.values())) == len(known) > 3
    assert told.items() <= known.items()
    shown = story.cluster.cli("executions", "get", str(max(told)))
    assert (shown["trace_id"], shown["trace_url"]) == (told[max(told)], "")


def test_a_job_that_keeps_failing_is_paused_and_says_why(story: Story) -> None:
    job = story.job("failing")
    assert job["status"] == "paused"
    assert len(story.lines("failing")) == 3
    assert job["paused"]["by"] == "cronring"
    assert "3" in job["paused"]["note"]


def test_buffer_one_runs_the_latest_tick_as_soon_as_the_run_ends(story: Story) -> None:
    begins, ends = story.lines("buffered", step="begin"), story.lines("buffered", step="end")
    assert len(begins) >= 3
    for end, begin in zip(ends, begins[1:], strict=False):
        assert -0.05 < begin["at"] - end["at"] < 1.0
        # The latest as the end is committed: on a busy machine one more may have come since the verb wrote its line.
        assert end["at"] - 1.2 < begin["tick"] <= begin["at"]
    assert story.skipped("buffered")["overlap"] > 0


def test_cancel_running_makes_way_for_the_next_tick(story: Story) -> None:
    begins = story.lines("cut", step="begin")
    assert len(begins) >= 3
    assert all(later["tick"] - line["tick"] in {2.0, 4.0} for line, later in itertools.pairwise(begins))
    outcomes = [row["outcome"] for row in story.executions("cut") if row["outcome"]]
    assert set(outcomes) == {"cancelled"}


def test_allow_runs_two_at_once_and_no_third(story: Story) -> None:
    events = sorted(
        [(line["at"], 1) for line in story.lines("beside", step="begin")]
        + [(line["at"], -1) for line in story.lines("beside", step="end")]
    )
    running, most = 0, 0
    for _, change in events:
        running += change
        most = max(most, running)
    assert most == 2
    assert story.skipped("beside")["overlap"] > 0


def test_outside_its_window_a_job_does_not_run_and_has_one_row_of_skips(story: Story) -> None:
    if story.lines("hardly"):
        pytest.skip("it is one minute past midnight in Apia")
    assert story.skipped("hardly")["outside_window"] > 5


def test_jitter_goes_both_ways_within_its_bounds_and_both_instants_are_kept(story: Story) -> None:
    off = [line["run_at"] - line["tick"] for line in story.lines("spread")]
    assert all(-0.8 <= each <= 0.8 for each in off)
    assert any(off)
    assert all(line["at"] >= line["run_at"] for line in story.lines("spread"))
    rows = story.executions("spread")
    assert all({"tick", "run_at"} <= row.keys() for row in rows)


def test_a_verb_moves_its_own_next_run(story: Story) -> None:
    lines = story.lines("follows")
    assert len(lines) >= 3
    assert all(3.0 <= later["tick"] - line["at"] <= 4.2 for line, later in itertools.pairwise(lines))


def test_once_is_once_at_its_instant(story: Story) -> None:
    until("it ran", lambda: story.lines("only"))
    (line,) = story.lines("only")
    assert line["tick"] == story.once_at
    until("it is done", lambda: story.job("only")["status"] == "completed")


def test_a_manual_job_runs_when_it_is_triggered_and_only_then(story: Story) -> None:
    assert story.lines("by_hand") == []
    story.cluster.cli("jobs", "trigger", "policies.by_hand", "--wait")
    (line,) = story.lines("by_hand")
    assert line["trigger"] == "manual"


def test_a_job_through_the_api_runs_with_its_payload_changes_and_goes(story: Story) -> None:
    cli = story.cluster.cli
    cli("jobs", "create", "policies.order", "--name", "acme", "--every", "1s",
        "--payload", '{"customer": "acme"}', "--label", "team=sales")  # fmt: skip
    name = "order:acme"
    until("its first run", lambda: story.lines(name))
    assert {(line["customer"], line["amount"]) for line in story.lines(name)} == {("acme", 1)}
    cli("jobs", "update", "policies.order:acme", "--every", "2s", "--payload", '{"customer": "acme", "amount": 7}')
    changed = time.time()
    until("two runs of the new schedule", lambda: len(story.lines(name, amount=7)) >= 2)
    new = story.lines(name, amount=7)
    assert new[1]["tick"] - new[0]["tick"] == 2.0
    assert all(line["tick"] <= changed + 0.5 for line in story.lines(name, amount=1))
    cli("jobs", "delete", "policies.order:acme")
    assert "policies.order:acme" not in [row["key"] for row in cli("jobs", "list")]


def test_pause_and_resume_leave_their_ticks_in_the_books(story: Story) -> None:
    story.cluster.cli("jobs", "pause", "policies.plain", "--note", "a test")
    paused = time.time()
    time.sleep(3)  # three ticks that must not run
    story.cluster.cli("jobs", "resume", "policies.plain")
    resumed = time.time()
    until("it ticks again", lambda: any(line["tick"] > resumed for line in story.lines("plain")))
    between = [line["tick"] for line in story.lines("plain") if paused + 0.5 < line["tick"] < resumed - 0.5]
    assert between == []
    assert story.skipped("plain")["paused"] >= 2


def test_a_backfill_runs_the_ticks_that_did_not(story: Story) -> None:
    skipped = story.skipped("plain").get("paused", 0)
    if not skipped:
        pytest.skip("runs after the test that pauses")
    story.cluster.cli("jobs", "backfill", "policies.plain", "--from", "-60s", "--to", "now", "--wait")
    filled = story.lines("plain", trigger="backfill")
    assert len(filled) >= 2
    ticks = [line["tick"] for line in filled]
    assert ticks == sorted(ticks)
    done = {line["tick"] for line in story.lines("plain", trigger="schedule")}
    assert not done & set(ticks)


def freeze(cluster: Cluster) -> tuple[float, float]:
    """All controllers stand still for longer than what counts as late; from when, until when."""
    for controller in cluster.controllers:
        controller.send(signal.SIGSTOP)
    stopped = time.time()
    time.sleep(13)
    for controller in cluster.controllers:
        controller.send(signal.SIGCONT)
    return stopped, time.time()


def test_an_outage_is_made_up_for_as_each_job_says(story: Story) -> None:
    stopped, resumed = freeze(story.cluster)

    def made_up_for() -> list[Line]:
        """A busy machine may have been late before."""
        return [line for line in story.lines("plain", trigger="catch_up") if line["tick"] > stopped]

    def is_overlap() -> bool:
        """A run whose claim the freeze met starts after it: what came due meanwhile is an overlap, not missed."""
        return any(stopped < tick < resumed for tick in story.overlapped("plain"))

    def ticks_again() -> bool:
        return any(line["tick"] > resumed for line in story.lines("plain"))

    for _ in range(3):
        until("it ticks again", ticks_again)
        if made_up_for() or not is_overlap():
            break
        stopped, resumed = freeze(story.cluster)
    assert made_up_for(), (story.skipped("plain"), story.lines("plain")[-5:])
    first = made_up_for()[0]
    assert first["missed"] >= 8
    assert first["previous_tick"] < first["tick"] - 8

    def caught_up() -> bool:
        return any(line["tick"] > resumed for line in story.lines("each"))

    until("every missed tick ran", caught_up)
    ran = [line["tick"] for line in story.lines("each") if line["tick"] > stopped - 2]
    assert len(ran) == len(set(ran))
    wanted = set(range(int(min(ran)), int(max(ran)) + 1))
    assert {tick for tick in wanted if tick < resumed - 10} <= set(ran), "what counts as late runs without exception"
    assert wanted - set(ran) <= story.overlapped("each"), "a run may have taken longer than a second"


def test_the_audit_is_clean(story: Story) -> None:
    async def is_clean() -> bool:
        addresses = [controller.grpc for controller in story.cluster.controllers]
        async with AsyncClient(addresses) as client:
            return (await client.ledger.audit(thorough=True)).clean

    until("the books close", lambda: asyncio.run(is_clean()))
