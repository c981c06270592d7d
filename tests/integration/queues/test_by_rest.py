"""A consumer that has HTTP alone: put, take, extend, finish; and what is refused."""

import asyncio
from typing import Any

import aiohttp
from yarl import URL

from cronring.client import AsyncClient
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S

TIMEOUT = aiohttp.ClientTimeout(total=TIMEOUT_S)


class Caller:
    def __init__(self, cluster: Cluster) -> None:
        self._root = f"http://{cluster.controllers[0].http}/api/v1/queues"

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, session.post(
            f"{self._root}/{path}", json=body
        ) as answer:  # fmt: skip
            return answer.status, await answer.json(content_type=None)

    async def get(self, path: str) -> tuple[int, Any]:
        url = URL(f"{self._root}/{path}", encoded=True)
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, session.get(url) as answer:
            return answer.status, await answer.json(content_type=None)


async def test_a_message_is_put_taken_and_finished(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    caller = Caller(cluster)
    waiting = asyncio.ensure_future(
        caller.post(f"default/{queue}/messages:take", consumer="curl", wait_ms=20_000, most=5)
    )  # fmt: skip
    status, put = await caller.post(f"default/{queue}/messages", payload='{"a":1}', workspace="w")
    assert status == 201
    status, taken = await waiting
    (message,) = taken["messages"]
    assert (status, message["id"], message["payload"], message["workspace"]) == (200, put["id"], '{"a":1}', "w")
    lease = f"default/leases/{taken['lease']}"
    held = {"messages": [{"id": put["id"], "state": "held"}]}
    assert await caller.post(f"{lease}:extend", hold_ms=5_000) == (200, held)
    for state in ("done", "refused"):
        _, told = await caller.post(f"{lease}:finish", message_ids=[put["id"]])
        assert told == {"messages": [{"id": put["id"], "state": state}]}
    assert await client.queues.messages(queue) == []


async def test_what_is_wrong_is_refused(cluster: Cluster, queue: str) -> None:
    caller = Caller(cluster)
    assert (await caller.post(f"default/{queue}/messages:take"))[0] == 400
    assert (await caller.post(f"default/{queue}/messages", payload="{"))[0] == 400
    assert (await caller.post("default/leases/0:finish", message_ids=[1]))[0] == 400
    status, told = await caller.post("default/leases/77777777:finish", message_ids=[1])
    assert (status, told["messages"]) == (200, [{"id": "1", "state": "refused"}])


async def test_queues_are_metrics(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    await client.queues.put(queue, 1)
    line = f'cronring_queue_messages{{namespace="default",queue="{queue}"}} 1.0'
    async with asyncio.timeout(TIMEOUT_S):
        while line not in (await asyncio.to_thread(cluster.http, cluster.controllers[0], "/metrics"))[1].splitlines():
            await asyncio.sleep(0.5)  # a poll with a deadline: figures are read anew every 15 s
