"""Whoever dies, no event is lost and none is in the log twice."""

import asyncio
import signal
import time
from typing import Any

from cronring.controller.runtime.webhooks import NO_ANSWER
from cronring.controller.store.connect import Connection
from tests.integration.notifications.conftest import MODULES, add, completed, in_thread
from tests.integration.notifications.receiver import Receiver
from tests.support.cluster import Cluster, Process
from tests.support.waiting import wait_until


async def holder(database: Connection, cluster: Cluster) -> Process:
    """The controller that reads the books now, among the living."""
    found: list[Process] = []

    async def known() -> bool:
        row = await database.fetchrow(
            "SELECT c.pid FROM cron_notifier n JOIN controllers c ON c.id = n.holder WHERE n.lease_until > now()"
        )
        found[:] = [each for each in cluster.controllers if each.alive() and row is not None and each.pid == row["pid"]]
        return bool(found)

    await wait_until(known, "nobody reads the books")
    return found[0]


async def failed_ids(database: Connection) -> set[int]:
    rows = await database.fetch(
        "SELECT id FROM cron_executions WHERE outcome IN ('failed', 'lost', 'timed_out') AND retry_at IS NULL"
    )
    return {row["id"] for row in rows}


async def told_ids(database: Connection) -> list[int]:
    rows = await database.fetch(
        "SELECT (body::jsonb -> 'data' ->> 'execution_id')::bigint AS id FROM cron_deliveries WHERE event = 'failed'"
    )
    return [row["id"] for row in rows]


async def test_the_notifier_is_killed_again_and_again(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    for _ in range(3):
        cluster.start_controller()
    await add(cluster, receiver, "pager", "--event", "failed")
    cluster.start_runner(MODULES / "failing.py")
    await receiver.heard("failed")
    for _ in range(3):
        victim = await holder(database, cluster)
        victim.kill()
        before = len(receiver.events)
        await receiver.more_than(before + 4)
        cluster.wait_ready(cluster.restart_controller(victim))
    await in_thread(cluster, "jobs", "pause", "--module", "failing", "--yes")

    async def all_told() -> bool:
        running = await database.fetchval("SELECT count(*) FROM cron_executions WHERE outcome IS NULL")
        told = await told_ids(database)
        return running == 0 and await failed_ids(database) == set(told)

    await wait_until(all_told, "some failures are not in the log")
    told = await told_ids(database)
    assert len(told) == len(set(told)) > 20
    heard: dict[int, Any] = {}

    def all_heard() -> bool:
        heard.update({event["execution_id"]: event["id"] for event in receiver.events})
        return set(heard) == set(told)

    await wait_until(all_heard, "some were not delivered")
    log = await database.fetch(
        "SELECT event_id, (body::jsonb -> 'data' ->> 'execution_id')::bigint AS id FROM cron_deliveries"
    )
    assert {row["id"]: row["event_id"] for row in log} == heard
    # The same id at each try, of whichever controller.
    assert {event["id"] for event in receiver.events} == {row["event_id"] for row in log}


async def just_before_a_tick() -> None:
    """Of modules/timely.py: nobody can have noticed by then what happens now."""
    await wait_until(lambda: 4.8 <= time.time() % 5 < 4.95, "there is such an instant every 5 s")


async def past_late_after() -> None:
    """Of the tick that has just come: whoever starts it now starts it late, however quick it is."""
    await wait_until(lambda: 1.2 <= time.time() % 5 < 4.0, "there is such an instant every 5 s")


def all_late(receiver: Receiver) -> bool:
    return {event["job"] for event in receiver.of("late")} == {f"timely.job_{number}" for number in range(20)}


async def test_a_tick_is_late_though_both_its_owners_stand_still(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    for _ in range(3):
        cluster.start_controller()
    await add(cluster, receiver, "pager", "--event", "late")
    cluster.start_runner(MODULES / "timely.py")
    await completed(database, "timely.job_0", 2)
    await just_before_a_tick()
    for each in cluster.controllers:
        each.send(signal.SIGSTOP)
    await past_late_after()
    cluster.controllers[2].send(signal.SIGCONT)
    # One of the others may stand still in the middle of reading the books: its transaction has 8 s.
    await wait_until(lambda: all_late(receiver), "not all are told of")
    late = receiver.of("late")[0]
    assert late["late_after_ms"] == 1_000
    assert late["lateness_ms"] >= 1_000
    keys = [(event["job"], event["tick"]) for event in receiver.events]
    assert len(keys) == len(set(keys))


async def test_a_tick_is_late_though_the_only_controller_is_dead(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    only = cluster.start_controller()
    await add(cluster, receiver, "pager", "--event", "late")
    cluster.start_runner(MODULES / "timely.py")
    await completed(database, "timely.job_0", 2)
    await just_before_a_tick()
    only.kill()
    await past_late_after()
    cluster.restart_controller(only)
    await wait_until(lambda: all_late(receiver), "not all are told of")
    keys = [(event["job"], event["tick"]) for event in receiver.events]
    assert len(keys) == len(set(keys))


async def test_a_receiver_that_was_down_gets_everything_after_a_while(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    cluster.start_controller()
    await add(cluster, receiver, "pager", "--event", "failed")
    await receiver.stop()
    cluster.start_runner(MODULES / "failing.py")

    async def tried_twice() -> bool:
        return bool(await database.fetchval("SELECT count(*) >= 1 FROM cron_deliveries WHERE attempts >= 2"))

    await wait_until(tried_twice, "nothing is tried again")
    row = await database.fetchrow("SELECT * FROM cron_deliveries ORDER BY id LIMIT 1")
    assert row is not None
    assert (row["state"], row["last_status"]) == ("waiting", None)
    assert row["last_error"] == NO_ANSWER
    await in_thread(cluster, "jobs", "pause", "--module", "failing", "--yes")
    await receiver.start()

    async def all_delivered() -> bool:
        waiting = await database.fetchval("SELECT count(*) FROM cron_deliveries WHERE state <> 'delivered'")
        return bool(waiting == 0)

    await wait_until(all_delivered, "some still wait")
    assert {event["execution_id"] for event in receiver.events} >= await failed_ids(database)


async def test_a_receiver_that_hangs_holds_up_no_other(cluster: Cluster, receiver: Receiver) -> None:
    cluster.start_controller()
    receiver.holding.clear()
    await add(cluster, receiver, "slow", "--event", "failed")
    await add(cluster, receiver, "quick", "--event", "failed")
    cluster.start_runner(MODULES / "failing.py")
    await wait_until(lambda: len(receiver.of("failed", path="quick")) >= 30, "the quick one waits for the slow")
    slow = sum(1 for event in receiver.events if event["_path"] == "slow")
    assert slow == 0
    receiver.holding.set()


async def test_who_says_410_is_told_no_more_until_it_is_enabled(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    cluster.start_controller()
    receiver.answers = [(429, {"retry-after": "3"}), (410, {}), (204, {})]
    await add(cluster, receiver, "pager", "--job", "failing.one")
    cluster.start_runner(MODULES / "failing.py")

    async def disabled() -> bool:
        reason = await database.fetchval("SELECT disabled_reason FROM cron_webhooks")
        return bool(reason == "its receiver answered 410 Gone")

    await wait_until(disabled, "it was not disabled")
    first_at, first_id = receiver.tries[0]
    again = [at for at, event_id in receiver.tries[1:] if event_id == first_id]
    assert all(at - first_at >= 3 for at in again), "Retry-After is heeded"
    tries = len(receiver.tries)
    enabled = await in_thread(cluster, "webhook", "enable", "pager")
    assert enabled["disabled_at"] is None
    await wait_until(lambda: len(receiver.tries) > tries, "nothing comes after it was enabled")
    given_up = [row["id"] for row in await in_thread(cluster, "webhook", "deliveries", "pager", "--state", "failed")]
    assert len(given_up) >= 1
    await asyncio.to_thread(cluster_redeliver, cluster, given_up[0])
    await wait_until(lambda: bool(receiver.of("failed")), "nothing is delivered")

    async def delivered() -> bool:
        state = await database.fetchval("SELECT state FROM cron_deliveries WHERE id = $1", given_up[0])
        return bool(state == "delivered")

    await wait_until(delivered, "it was not delivered again")


def cluster_redeliver(cluster: Cluster, delivery_id: int) -> None:
    assert cluster.cli("webhook", "redeliver", "pager", str(delivery_id))["redelivered"] == 1
