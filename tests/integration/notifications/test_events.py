"""What happens to jobs of a real cluster arrives at a real receiver: signed, filtered, once in the log."""

import asyncio
from datetime import datetime
from pathlib import Path

from cronring.controller.store.connect import Connection
from tests.integration.notifications.conftest import MODULES, add, completed, in_thread
from tests.integration.notifications.receiver import Receiver
from tests.support.cluster import Cluster

ORPHANING = str(MODULES.parents[1] / "cluster" / "modules" / "crawler.py")


async def test_failures_recoveries_pauses_and_skips_arrive(cluster: Cluster, receiver: Receiver, switch: Path) -> None:
    cluster.start_controller()
    added = await add(cluster, receiver, "all")
    await add(cluster, receiver, "only-moody", "--job", "noisy.moody", "--event", "failed")
    await add(cluster, receiver, "elsewhere", "--module", "other")
    await add(cluster, receiver, "paused-skips", "--event", "skipped", "--reason", "paused")
    for name in ("moody", "fragile", "retried"):
        (switch / name).touch()
    cluster.start_runner(MODULES / "noisy.py")

    failed = await receiver.heard("failed", "noisy.moody", "all", 30)
    assert (failed["outcome"], failed["error_type"], failed["error_message"]) == (
        "failed", "RuntimeError", "moody is broken",
    )  # fmt: skip
    assert failed["execution_id"] > 0
    assert (failed["attempt"], failed["namespace"], failed["verb"]) == (1, "default", "moody")
    assert datetime.fromisoformat(failed["at"]) >= datetime.fromisoformat(failed["tick"])
    assert (await receiver.heard("failed", "noisy.moody", "only-moody"))["id"] == failed["id"]

    pause = await receiver.heard("paused", "noisy.fragile", "all")
    assert pause["failures"] == 2
    # Not each retry: the attempt that ended the tick.
    retried = await receiver.heard("failed", "noisy.retried", "all")
    assert retried["attempt"] == 2
    assert {event["attempt"] for event in receiver.of("failed", "noisy.retried")} == {2}

    for name in ("moody", "fragile", "retried"):
        (switch / name).unlink()
    recovered = await receiver.heard("recovered", "noisy.moody", "all")
    assert recovered["execution_id"] > recovered["failed_execution_id"] >= failed["execution_id"]
    await in_thread(cluster, "jobs", "resume", "noisy.fragile")
    await receiver.heard("recovered", "noisy.fragile", "all")

    # Outside of its window since the deployment: one event, however many ticks there were.
    skip = await receiver.heard("skipped", "noisy.nightly", "all")
    assert (skip["reason"], skip["ticks"] >= 1) == ("outside_window", True)
    by_pause = await receiver.heard("skipped", "noisy.fragile", "paused-skips")
    assert by_pause["reason"] == "paused"
    assert len(receiver.of("skipped", "noisy.nightly", "all")) == 1
    late = [event for event in receiver.of("late") if event["lateness_ms"] < 2_000]
    assert late == [], "a busy machine may start a run later than that"

    assert {event["_path"] for event in receiver.events} == {"all", "only-moody", "paused-skips"}
    assert {event["job"] for event in receiver.events if event["_path"] == "only-moody"} == {"noisy.moody"}
    assert {event["reason"] for event in receiver.events if event["_path"] == "paused-skips"} == {"paused"}
    ids = [event["id"] for event in receiver.events if event["_path"] == "all"]
    assert len(ids) == len(set(ids))

    log = await in_thread(cluster, "webhook", "deliveries", "all", "--limit", "1000")
    assert failed["id"] in {row["event_id"] for row in log if row["state"] == "delivered"}
    listed = await in_thread(cluster, "webhook", "list")
    assert added["secret"] not in str(listed)
    assert {row["name"]: row["failed"] for row in listed} == {
        "all": 0, "only-moody": 0, "elsewhere": 0, "paused-skips": 0,
    }  # fmt: skip


async def test_completed_is_told_to_who_names_it_and_failed_by_outcome(
    cluster: Cluster, receiver: Receiver, switch: Path
) -> None:
    cluster.start_controller()
    await add(cluster, receiver, "all")
    await add(cluster, receiver, "done", "--job", "noisy.punctual", "--event", "completed", "--event", "failed")
    await add(cluster, receiver, "failures", "--event", "failed", "--outcome", "failed", "--outcome", "lost")
    await add(cluster, receiver, "timeouts", "--event", "failed", "--outcome", "timed_out")
    await add(cluster, receiver, "no-label", "--event", "completed", "--label", "team=none")
    (switch / "moody").touch()
    cluster.start_runner(MODULES / "noisy.py")
    done = await receiver.heard("completed", "noisy.punctual", "done")
    assert (done["outcome"], done["trigger"], done["verb"]) == ("completed", "schedule", "punctual")
    failed = await receiver.heard("failed", "noisy.moody", "failures")
    assert (await receiver.heard("failed", "noisy.moody", "all"))["id"] == failed["id"]
    await receiver.more_than(len(receiver.events) + 3)
    # Nothing times out, and no job has that label.
    assert {event["_path"] for event in receiver.events} == {"all", "done", "failures"}
    assert {event["event"] for event in receiver.events if event["_path"] == "done"} == {"completed"}
    assert receiver.of("completed", path="all") == []
    ran = [event["execution_id"] for event in receiver.of("completed", path="done")]
    assert len(ran) == len(set(ran))


async def test_what_is_orphaned_and_brought_back_arrives(cluster: Cluster, receiver: Receiver) -> None:
    cluster.start_controller()
    await in_thread(cluster, "deploy", ORPHANING)
    await in_thread(cluster, "jobs", "create", "crawler.site", "--name", "docs", "--payload", '"x"', "--manual")
    await add(cluster, receiver, "verbs", "--event", "orphaned", "--event", "brought_back")
    await in_thread(cluster, "undeploy", "crawler", "--yes", "--as", "ada", "--note", "moved")
    orphaned = await receiver.heard("orphaned", "crawler.site:docs")
    assert (orphaned["by"], orphaned["note"], orphaned["verb"]) == ("ada", "moved", "site")
    await in_thread(cluster, "rollback", "crawler", "--as", "eve")
    back = await receiver.heard("brought_back", "crawler.site:docs")
    assert (back["by"], back["deployment"]) == ("eve", orphaned["deployment"])
    assert len(receiver.events) == 2


async def test_a_test_event_is_sent_and_its_answer_shown(cluster: Cluster, receiver: Receiver) -> None:
    cluster.start_controller()
    await add(cluster, receiver, "trial")
    found = await in_thread(cluster, "webhook", "test", "trial")
    assert (found["delivered"], found["status"]) == (True, 204)
    assert "answer" not in found, "it may be an internal service's"
    assert receiver.of("test")[0]["id"] == found["event_id"]
    receiver.answers = [(302, {"location": receiver.url("elsewhere")})]
    done = await asyncio.to_thread(cluster.ask, "webhook", "test", "trial")
    assert done.returncode == 1
    assert "redirects are not followed" in done.stdout
    assert len(receiver.tries) == 2


async def test_a_tick_is_late_though_every_runner_is_dead(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    cluster.start_controller()
    await add(cluster, receiver, "late", "--event", "late", "--event", "skipped")
    runner = cluster.start_runner(MODULES / "noisy.py")
    await completed(database, "noisy.punctual", 1)
    runner.kill()
    late = await receiver.heard("late", "noisy.punctual")
    assert (late["late_after_ms"], late["started"]) == (2_000, False)
    assert late["lateness_ms"] >= 2_000
    assert late["cluster"]
    await receiver.heard("skipped", "noisy.punctual")
    ticks = [event["tick"] for event in receiver.of("late", "noisy.punctual")]
    assert len(ticks) == len(set(ticks))
