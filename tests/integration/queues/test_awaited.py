"""Executions that await consumers, at a real controller: what consumers say of messages ends them."""

from datetime import timedelta

import pytest

from cronring.client import AsyncClient
from cronring.client.model import Execution, Job
from cronring.client.queues import Lease
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("cluster")
HOLD = timedelta(seconds=30)
SHORT = timedelta(seconds=1)


async def begun(client: AsyncClient, queue: str, workspace: str = "ws", **policy: int | str) -> Job:
    """A job that awaits its consumers, with one run by hand."""
    job = await client.schedule(queue, manual=True, workspace=workspace, payload=7, awaited=True, policy=policy)
    await client.jobs.trigger(job.key)
    return job


async def taken(client: AsyncClient, queue: str, hold: timedelta = HOLD) -> Lease:
    """The next message, once it is there."""
    found: list[Lease] = []

    async def take() -> bool:
        lease = await client.queues.take(queue, "c1", hold=hold)
        found.extend([lease] if lease.number else [])
        return bool(found)

    await wait_until(take, f"{queue} has no message")
    assert len(found[0].messages) == 1
    return found[0]


async def ended(client: AsyncClient, job: Job, attempt: int = 1) -> Execution:
    found: list[Execution] = []

    async def look() -> bool:
        every = await client.executions.list(job=job.key, limit=10)
        found[:] = [each for each in every if each.attempt == attempt and each.outcome]
        return bool(found)

    await wait_until(look, f"attempt {attempt} of {job.key} has not ended")
    return found[0]


async def test_done_completes_the_execution(client: AsyncClient, queue: str) -> None:
    job = await begun(client, queue)
    lease = await taken(client, queue)
    (message,) = lease.messages
    assert (message.payload, message.workspace, message.job, message.attempt) == ("7", "ws", job.key, 1)
    (running,) = await client.executions.list(job=job.key, limit=10)
    assert (running.id, running.outcome) == (message.execution_id, None)
    assert await client.queues.finish(lease, [message.id], '{"rows": 3}') == {message.id: "done"}
    execution = await client.executions.get((await ended(client, job)).id)
    assert (execution.outcome, execution.output) == ("completed", '{"rows": 3}')
    assert await client.queues.messages(queue) == []


async def test_the_last_failed_delivery_fails_it_and_its_policy_tries_again(client: AsyncClient, queue: str) -> None:
    await client.queues.set(queue, max_deliveries=2)
    job = await begun(client, queue, retries=1, backoff="1s")
    for delivery, state in ((1, "waits"), (2, "ended")):
        lease = await taken(client, queue)
        (message,) = lease.messages
        assert (message.delivery, message.attempt) == (delivery, 1)
        told = await client.queues.retry(lease, [message.id], "no paper", "Printer", delay=timedelta())
        assert told == {message.id: state}
    first = await client.executions.get((await ended(client, job)).id)
    assert (first.outcome, first.error_type, first.error_message) == ("failed", "Printer", "no paper")
    lease = await taken(client, queue)
    (again,) = lease.messages
    assert (again.delivery, again.attempt, again.payload) == (1, 2, "7")
    assert await client.queues.finish(lease, [again.id]) == {again.id: "done"}
    assert (await ended(client, job, 2)).outcome == "completed"
    assert await client.queues.dead_letters(queue) == []


async def test_a_lease_that_runs_out_too_often_loses_it(client: AsyncClient, queue: str) -> None:
    await client.queues.set(queue, max_deliveries=1)
    job = await begun(client, queue)
    lease = await taken(client, queue, SHORT)
    (message,) = lease.messages

    async def lost() -> bool:
        """Whoever looks for messages next finds out."""
        assert not (await client.queues.take(queue, "c2")).messages
        return bool((await client.executions.get(message.execution_id)).outcome)

    await wait_until(lost, "the execution does not end")
    execution = await ended(client, job)
    assert (execution.outcome, execution.error_type) == ("lost", "LeaseExpired")
    assert await client.queues.finish(lease, [message.id]) == {message.id: "refused"}


async def test_a_consumer_is_told_that_its_execution_is_cancelled(client: AsyncClient, queue: str) -> None:
    job = await begun(client, queue)
    lease = await taken(client, queue)
    (message,) = lease.messages
    assert await client.queues.extend(lease, HOLD) == {message.id: "held"}
    await client.executions.cancel(message.execution_id)
    assert (await ended(client, job)).outcome == "cancelled"
    assert await client.queues.extend(lease, HOLD) == {message.id: "gone"}
    assert await client.queues.finish(lease, [message.id]) == {message.id: "gone"}


async def test_the_end_of_a_workspace_is_that_of_its_messages(client: AsyncClient, queue: str) -> None:
    """Those that executions await go with these, and their consumers are told."""
    job = await begun(client, queue, workspace=queue)
    lease = await taken(client, queue)
    (message,) = lease.messages
    for _ in range(2):
        await client.queues.put(queue, 1, queue)
    await client.queues.put(queue, 2, "another")
    found = await client.workspaces.get(queue)
    assert (found.running, found.messages) == (1, 2)
    deleted = await client.workspaces.delete(queue, expected=1)
    assert (deleted.deleted, deleted.messages) == (1, 2)
    assert (await ended(client, job)).outcome == "cancelled"
    assert await client.queues.extend(lease, HOLD) == {message.id: "gone"}
    assert [each.workspace for each in await client.queues.messages(queue)] == ["another"]
    assert (await client.workspaces.get(queue)).messages == 0
