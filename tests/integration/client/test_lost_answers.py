"""A proxy ends the connection once the request was carried out: it is done once, and told, on real controllers."""

import asyncio
from collections import Counter

from cronring.client import AsyncClient, JobSpec
from tests.integration.client.conftest import KEY
from tests.support.cluster import Cluster
from tests.support.cutting import Direction, Streams, cutting

AFTER = (1, 20, 60, 100)  # bytes of the answer: acknowledgements of HTTP/2, headers, the message, its trailers


async def test_what_was_carried_out_is_done_once_though_its_answer_was_lost(cluster: Cluster) -> None:
    first, second = cluster.controllers

    async def connect() -> Streams:
        host, _, port = first.grpc.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    cuts = 0
    for number, after in enumerate(AFTER):
        async with cutting(connect, Direction.BACK, after, armed=False) as way:
            async with AsyncClient([f"127.0.0.1:{way.port}", second.grpc]) as client:
                await client.jobs.get(KEY)
                way.armed = True
                made = await client.jobs.create("billing", "close_day", f"n{number}", JobSpec("manual"), run_now=True)
            cuts += way.has_cut
        assert made.key == f"{KEY}:n{number}"
        async with cutting(connect, Direction.BACK, after, armed=False) as way:
            async with AsyncClient([f"127.0.0.1:{way.port}", second.grpc]) as client:
                await client.jobs.get(KEY)
                way.armed = True
                assert (await client.jobs.trigger(KEY, note=f"n{number}")).job == KEY
            cuts += way.has_cut
    assert cuts == 2 * len(AFTER)
    async with AsyncClient([second.grpc]) as client:
        ended = await client.jobs.run(KEY, note="the last one")
        assert ended is not None
        assert ended.outcome == "completed"
        done = Counter(each.note for each in await client.jobs.actions(KEY) if each.action == "trigger")
        assert done == dict.fromkeys(("the last one", *(f"n{number}" for number in range(len(AFTER)))), 1)
        runs = await client.executions.list(KEY, limit=None)
        assert len(runs) == len(AFTER) + 1, "one run for each"
        for number in range(len(AFTER)):
            key = f"{KEY}:n{number}"
            assert len([each for each in await client.jobs.actions(key) if each.action == "create"]) == 1
            assert len(await client.executions.list(key, limit=None)) == 1, "made once, and run once"
