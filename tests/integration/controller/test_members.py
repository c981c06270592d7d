"""Controllers that find each other through PostgreSQL, agree on the ring, and mend it."""

import asyncio
import signal

import pytest

from cronring.protos.cronring.v1 import cluster_pb2, schema_pb2
from cronring.protos.cronring.v1.jobs_pb2 import JobEvent, ListJobsRequest, WatchJobsRequest
from tests.integration.controller.conftest import Clients, exit_code, get, start, wait_agreed
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S, wait_until

MODULE = schema_pb2.Module(
    name="billing",
    verbs=[
        schema_pb2.Verb(name="close_month", schedule="0 6 1 * *"),
        schema_pb2.Verb(name="refresh", schedule="every 30m"),
        schema_pb2.Verb(name="helper"),
    ],
)


async def test_three_controllers_agree_on_one_ring_and_on_the_owner_of_a_job(
    cluster: Cluster, clients: Clients
) -> None:
    everyone = [await clients.of(process) for process in await start(cluster, 3)]

    async def all_alive() -> bool:
        """On a busy machine somebody may be a suspect for a moment, and refute it."""
        return all([{member.status for member in (await each.view()).members} == {"alive"} for each in everyone])

    await wait_until(all_alive, "somebody stays a suspect")
    views = await wait_agreed(everyone, 3)
    for view, process in zip(views, cluster.controllers, strict=True):
        assert len(view.members) == 3
        assert sum(member.share for member in view.members) == pytest.approx(1.0)
        (own,) = [member for member in view.members if member.id == view.answered_by]
        assert (own.grpc_address, own.http_address, own.pid) == (process.grpc, process.http, process.pid)
        assert own.HasField("lease_expires_at")
        assert abs(view.clock_offset_ms) < 1_000
    assert len({view.cluster_id for view in views} - {""}) == 1
    await everyone[0].deploy(MODULE, "a" * 64)
    await wait_agreed(everyone, 3)  # who had no time for a while may have been a suspect again
    owners = [
        await client.cluster.GetOwners(cluster_pb2.GetOwnersRequest(job="billing.refresh")) for client in everyone
    ]
    ring = await everyone[1].cluster.GetRing(cluster_pb2.GetRingRequest())
    assert owners[0] == owners[1] == owners[2]
    assert ring.members[ring.primary[owners[0].slot]] == owners[0].primary
    assert ring.members[ring.backup[owners[0].slot]] == owners[0].backup != owners[0].primary
    assert len(ring.primary) == len(ring.backup) == 4096


async def test_a_module_deployed_through_one_is_seen_through_all(cluster: Cluster, clients: Clients) -> None:
    one, other = [await clients.of(process) for process in await start(cluster, 2)]
    watch = other.jobs.WatchJobs(WatchJobsRequest())
    async with asyncio.timeout(TIMEOUT_S):
        listed = await watch.read()
        assert isinstance(listed, JobEvent)
        assert listed == JobEvent(kind=JobEvent.KIND_LISTED, resume_token=listed.resume_token)
        deployed = await one.deploy(MODULE, "a" * 64)
        seen = [await watch.read() for _ in range(2)]
    assert deployed.created
    assert list(deployed.jobs_added) == ["billing.close_month", "billing.refresh"]
    assert (deployed.deployment.active, deployed.deployment.jobs) == (True, 2)
    assert "verb close_month(Unit) Unit" in deployed.deployment.schema_text
    assert all(isinstance(event, JobEvent) and event.kind == JobEvent.KIND_CHANGED for event in seen)
    assert {event.job.key for event in seen if isinstance(event, JobEvent)} == set(deployed.jobs_added)
    resumed = one.jobs.WatchJobs(WatchJobsRequest(resume_token=listed.resume_token))
    async with asyncio.timeout(TIMEOUT_S):
        told = [await resumed.read() for _ in range(2)]
    assert {event.job.key for event in told if isinstance(event, JobEvent)} == set(deployed.jobs_added)
    jobs = (await other.jobs.ListJobs(ListJobsRequest())).jobs
    assert [(job.key, job.schedule, job.status) for job in jobs] == [
        ("billing.close_month", "0 6 1 * *", "scheduled"),
        ("billing.refresh", "every 30m", "scheduled"),
    ]
    assert all(job.schedule_words and job.HasField("next_execution") for job in jobs)
    again = await other.deploy(MODULE, "a" * 64)
    assert not again.created
    assert again.deployment.key == deployed.deployment.key


async def test_a_killed_controller_is_out_of_every_ring(cluster: Cluster, clients: Clients) -> None:
    """Within five seconds, says the simulation's clock (tests/simulation/test_swim_simulation.py)."""
    first, second, third = await start(cluster, 3)
    survivors = [await clients.of(process) for process in (first, third)]
    await wait_agreed(survivors, 3)
    second.kill()
    views = await wait_agreed(survivors, 2)
    for view in views:
        assert second.grpc not in {member.grpc_address for member in view.members if member.primary_slots}


async def test_a_controller_asked_to_stop_leaves_at_once_and_cleanly(cluster: Cluster, clients: Clients) -> None:
    leaving, staying = await start(cluster, 2)
    client = await clients.of(staying)
    await wait_agreed([client, await clients.of(leaving)], 2)
    leaving.send(signal.SIGTERM)
    assert await exit_code(leaving) == 0
    await wait_agreed([client], 1)
    assert '"event": "left"' in leaving.tail()
    assert "Traceback" not in leaving.tail(1_000)


async def test_a_stopped_and_resumed_controller_comes_back(cluster: Cluster, clients: Clients) -> None:
    paused, other = await start(cluster, 2)
    client = await clients.of(other)
    await wait_agreed([client], 2)
    paused.send(signal.SIGSTOP)
    await wait_agreed([client], 1)
    paused.send(signal.SIGCONT)
    await wait_agreed([client, await clients.of(paused)], 2)
    await wait_until(lambda: _is_ready(get(paused, "/readyz")), "its lease did not come back")


async def _is_ready(answer) -> bool:  # get()'s own
    return bool((await answer)[0] == 200)


async def test_a_peer_given_by_join_is_greeted(cluster: Cluster, clients: Clients) -> None:
    (first,) = await start(cluster, 1)
    (second,) = await start(cluster, 1, "--join", first.grpc)
    await wait_agreed([await clients.of(first), await clients.of(second)], 2)
