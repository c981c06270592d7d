"""Who runs into its timeout is warned of before, whichever controller lives then."""

from cronring.controller.store.connect import Connection
from tests.integration.notifications.conftest import MODULES, add, completed, in_thread, known
from tests.integration.notifications.receiver import Receiver
from tests.integration.notifications.test_deaths import holder
from tests.support.cluster import Cluster
from tests.support.waiting import wait_until


async def test_a_warning_comes_before_the_timeout_and_only_then(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    cluster.start_controller()
    await add(cluster, receiver, "all")
    await add(cluster, receiver, "warned", "--event", "timeout_near", "--job", "slow.stuck")
    await add(cluster, receiver, "elsewhere", "--event", "timeout_near", "--job", "slow.patient")
    cluster.start_runner(MODULES / "slow.py")
    await known(database, "slow.stuck")
    await in_thread(cluster, "jobs", "trigger", "slow.patient")
    await in_thread(cluster, "jobs", "trigger", "slow.stuck")
    near = await receiver.heard("timeout_near", "slow.stuck", "warned")
    assert (near["timeout_ms"], near["trigger"], near["verb"]) == (4_000, "manual", "stuck")
    assert near["claimed_at"] < near["at"] < near["timeout_at"]
    failed = await receiver.heard("failed", "slow.stuck", "all")
    assert (failed["outcome"], failed["execution_id"]) == ("timed_out", near["execution_id"])
    (also,) = receiver.of("timeout_near", path="all")
    assert also["id"] == near["id"]
    assert receiver.of("timeout_near", "slow.patient") == []
    assert {event["_path"] for event in receiver.events} == {"all", "warned"}


async def test_the_warning_survives_the_death_of_who_would_have_sent_it(
    cluster: Cluster, receiver: Receiver, database: Connection
) -> None:
    for _ in range(2):
        cluster.start_controller()
    await add(cluster, receiver, "pager", "--event", "timeout_near", "--event", "failed")
    cluster.start_runner(MODULES / "slow.py")
    await known(database, "slow.stuck")
    await in_thread(cluster, "jobs", "trigger", "slow.patient")
    await completed(database, "slow.patient", 1)
    victim = await holder(database, cluster)
    await in_thread(cluster, "jobs", "trigger", "slow.stuck")

    async def claimed() -> bool:
        return bool(await database.fetchval("SELECT count(*) FROM cron_executions WHERE outcome IS NULL"))

    await wait_until(claimed, "it does not run")
    victim.kill()
    near = await receiver.heard("timeout_near", "slow.stuck")
    failed = await receiver.heard("failed", "slow.stuck")
    assert failed["execution_id"] == near["execution_id"]
    told = await database.fetch("SELECT event_id FROM cron_deliveries WHERE event = 'timeout_near'")
    assert [row["event_id"] for row in told] == [near["id"]]
