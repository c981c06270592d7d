"""cronring.testing, as an author uses it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.testing import ClusterFactory, Execution, ModuleError, VirtualCluster
from tests.unit.virtual import author

START = "2026-03-28"


@pytest.fixture
def cluster(cronring_cluster: ClusterFactory) -> VirtualCluster:
    author.told.clear()
    return cronring_cluster(author, start=START)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_weekend_on_which_the_clocks_change(cluster: VirtualCluster) -> None:
    cluster.run_for("3d")
    nights = cluster.executions("nightly")
    assert [each.tick for each in nights] == [at("2026-03-28T01:30"), at("2026-03-29T01:00"), at("2026-03-30T00:30")]
    assert nights[1].output == "night 2026-03-29T03:00:00+02:00, charged\nINFO author.nightly: logged\n"
    assert nights[0].ended is not None
    assert nights[0].started == nights[0].run_at == nights[0].tick
    assert nights[0].ended - nights[0].tick == timedelta(minutes=2), "sleeping takes virtual time"


def test_failures_are_tried_again_in_virtual_time(cluster: VirtualCluster) -> None:
    cluster.run_until("2026-03-28T06:01")
    first, second = cluster.executions("fragile")
    assert (first.outcome, first.error, first.attempt) == ("failed", "ConnectionError", 1)
    assert "hung up" in first.error_message
    assert "/virtual/calling.py" not in first.stack, "the author's frames only"
    assert "author.py" in first.stack
    assert first.metrics == {}
    assert (second.outcome, second.error, second.trigger, second.attempt) == ("completed", None, "retry", 2)
    assert first.started is not None
    assert second.started == first.started + timedelta(minutes=1)


def test_an_outage_of_the_database_and_what_each_policy_makes_of_it(cluster: VirtualCluster) -> None:
    cluster.outage("database", "3h30m", start="2026-03-28T04:45")
    cluster.run_until("2026-03-28T09:00")
    caught_up = [each.tick for each in cluster.executions("hourly") if each.trigger == "catch_up"]
    assert caught_up == [at("2026-03-28T05:00"), at("2026-03-28T06:00"), at("2026-03-28T07:00"), at("2026-03-28T08:00")]
    [skip] = cluster.skips("lazy")
    assert (skip.reason, skip.ticks, skip.first_tick) == ("superseded", 3, at("2026-03-28T05:00"))
    assert ("missed 3", at("2026-03-28T08:00")) in author.told
    started = [each.started for each in cluster.executions("lazy")]
    assert started[-2] is not None
    assert at("2026-03-28T08:15") <= started[-2] < at("2026-03-28T08:15:10")


def test_while_the_database_is_away_operators_hear_so(cluster: VirtualCluster) -> None:
    cluster.outage("database", "1h")
    cluster.run_for("1m")
    with pytest.raises(StoreUnavailable):
        cluster.trigger("by_hand")


def test_runners_that_are_away_leave_ticks_without_one(cluster: VirtualCluster) -> None:
    cluster.outage("runners", "2h30m", start="2026-03-28T00:30")
    cluster.run_until("2026-03-28T03:30")
    assert [each.tick for each in cluster.executions("lazy")] == [at("2026-03-28T03:00")]
    assert sum(skip.ticks for skip in cluster.skips("lazy", reason="no_runner")) == 2


def test_a_run_is_lost_with_its_runner(cluster: VirtualCluster) -> None:
    cluster.outage("runners", "10m", start="2026-03-28T01:31")
    cluster.run_until("2026-03-28T01:35")
    [night] = cluster.executions("nightly")
    assert (night.outcome, night.error) == ("lost", "RunnerLost")
    assert night.ended is not None
    assert night.ended - at("2026-03-28T01:31") < timedelta(seconds=12)


def test_controllers_that_are_away_come_back_to_what_they_left(cluster: VirtualCluster) -> None:
    cluster.outage("controllers", "2m", start="2026-03-28T01:31")
    cluster.run_until("2026-03-28T02:30")
    [night] = cluster.executions("nightly")
    assert night.outcome == "cancelled", "no controller could renew its runner's lease for 8 s"
    assert [each.outcome for each in cluster.executions("hourly")] == ["completed"] * 2


def test_timeouts_cancel_in_virtual_time(cluster: VirtualCluster) -> None:
    cluster.run_until("2026-03-28T00:30")
    [run] = cluster.executions("endless")
    assert (run.outcome, run.error) == ("timed_out", "TimedOut")
    assert run.ended == at("2026-03-28T00:20")


def test_durations_make_runs_overlap_and_time_out(cluster: VirtualCluster) -> None:
    cluster.duration("lazy", "4m")
    cluster.duration("hourly", "90m")
    cluster.run_until("2026-03-28T02:30")
    assert [each.ended for each in cluster.executions("lazy")] == [at("2026-03-28T01:04"), at("2026-03-28T02:04")]
    timed_out = cluster.executions("hourly", outcome="timed_out")
    assert [each.ended for each in timed_out] == [at("2026-03-28T01:05"), at("2026-03-28T02:05")]
    with pytest.raises(LookupError, match="did you mean 'lazy'"):
        cluster.duration("lasy", "1m")


def test_a_job_that_keeps_failing_pauses_itself(cluster: VirtualCluster) -> None:
    cluster.run_until("2026-03-29T13:00")
    assert len(cluster.executions("hopeless")) == 2
    assert cluster.is_paused("hopeless")
    assert cluster.next_run("hopeless") is None


def test_pause_and_resume(cluster: VirtualCluster) -> None:
    cluster.run_until("2026-03-28T01:30")
    cluster.pause("lazy", "maintenance")
    cluster.run_until("2026-03-28T04:30")
    assert len(cluster.executions("lazy")) == 1
    cluster.resume("lazy")
    cluster.run_until("2026-03-28T05:00")
    [skip] = cluster.skips("lazy")
    assert (skip.reason, skip.first_tick, skip.last_tick, skip.ticks) == (
        "paused", at("2026-03-28T02:00"), at("2026-03-28T04:00"), 3,
    )  # fmt: skip
    assert len(cluster.executions("lazy")) == 2


def test_a_verb_moves_its_own_next_run(cluster: VirtualCluster) -> None:
    cluster.run_until("2026-03-28T07:30")
    ticks = [f"{each.tick:%H:%M}" for each in cluster.executions("busy")]
    assert ticks[3:] == ["04:00", "05:00", "05:10", "05:20", "05:30", "05:40", "05:50", "06:00", "07:00"]


def test_triggered_by_hand_it_has_run_at_once(cluster: VirtualCluster) -> None:
    cluster.run_for("10m")
    cluster.trigger("by_hand", {"order": 7})
    [run] = cluster.executions("by_hand")
    assert (run.trigger, run.outcome, run.output) == ("manual", "completed", "{'order': 7}\n")
    assert run.started == cluster.now == at("2026-03-28T00:10")


def test_names_of_jobs(cluster: VirtualCluster) -> None:
    cluster.run_for("1h")
    assert cluster.executions("author.lazy") == cluster.executions("lazy")
    assert [each.job for each in cluster.executions()] == [
        "author.endless",
        "author.hourly",
        "author.lazy",
        "author.busy",
    ]
    with pytest.raises(LookupError, match="did you mean 'nightly'"):
        cluster.executions("nighly")


def test_what_is_monkeypatched_counts(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(author, "charge", lambda: "not charged")
    replaced = Mock(return_value=None)
    monkeypatch.setattr(author, "lazy", replaced)
    cluster.run_until("2026-03-28T02:00")
    assert "not charged" in cluster.executions("nightly")[0].output
    assert [call.args[0].tick for call in replaced.call_args_list] == [at("2026-03-28T01:00"), at("2026-03-28T02:00")]


async def test_inside_a_running_event_loop(cluster: VirtualCluster) -> None:
    await asyncio.sleep(0)
    cluster.run_until("2026-03-28T01:40")
    assert cluster.executions("nightly")[0].outcome == "completed"


def test_the_same_start_tells_the_same_story(cronring_cluster: ClusterFactory) -> None:
    def story() -> list[Execution]:
        cluster = cronring_cluster(author, start=START, default_jitter="1m:10s")
        cluster.outage("database", "2h", start="2026-03-28T05:00")
        cluster.outage("controllers", "1h", start="2026-03-28T09:00")
        cluster.run_for("1d")
        return cluster.executions()

    first = story()
    assert any(each.run_at != each.tick for each in first), "with jitter"
    assert first == story()


def test_cost_grows_with_what_is_due(cronring_cluster: ClusterFactory, tmp_path: Path) -> None:
    (tmp_path / "daily_reports.py").write_text(
        "from cronring import cron\n@cron('0 9 * * 1-5', timezone='Europe/Berlin')\ndef report() -> None: ...\n"
    )
    cluster = cronring_cluster(tmp_path / "daily_reports.py", start="2026-01-01")
    before = time.process_time()
    cluster.run_until("2027-01-01")
    assert time.process_time() - before < 5.0  # each second of the year would take minutes
    runs = cluster.executions("report")
    assert len(runs) == 261
    assert {each.tick.hour for each in runs} == {7, 8}
    assert cluster.skips() == []


def test_what_check_refuses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong_times.py").write_text("from cronring import cron\n@cron('0 25 * * *')\ndef report(): ...\n")
    with pytest.raises(ModuleError, match=r"wrong_times\.py:2: verb report"):
        VirtualCluster(tmp_path / "wrong_times.py", start=START)
    with pytest.raises(ModuleError, match="No such file"):
        VirtualCluster(tmp_path / "absent.py", start=START)


def test_time_only_goes_on(cluster: VirtualCluster) -> None:
    with pytest.raises(ValueError, match="in the past"):
        cluster.run_until("2026-03-27")
    with pytest.raises(ValueError, match="in the past"):
        cluster.outage("runners", "1h", start="2026-03-27")
    with pytest.raises(ValueError, match="there are database, controllers, runners"):
        cluster.outage("network", "1h")
    with pytest.raises(ValueError, match="names no time zone"):
        cluster.run_until(datetime(2026, 3, 30))  # noqa: DTZ001
