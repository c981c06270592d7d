"""Events go on when a controller is killed: nothing is left out, nothing is told twice; for both clients."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from cronring.client import AsyncClient, Client, Event, EventKind
from tests.integration.client.conftest import KEY
from tests.support import programs
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S

RUNS = 12
# As a user has it: no address, no token, only the environment.
SCRIPT = f"""
from cronring.client import Client
with Client.from_env() as client:
    run = client.jobs.run({KEY!r})
    print(run.outcome, run.output.startswith("closed the day"))
"""


async def test_events_go_on_when_their_controller_is_killed(cluster: Cluster) -> None:
    first, second = cluster.controllers
    told: list[Event] = []

    async def listen() -> None:
        async with AsyncClient([first.grpc, second.grpc]) as client:
            async for event in client.events():
                told.append(event)  # noqa: PERF401 - it is read meanwhile

    listening = asyncio.create_task(listen())
    async with asyncio.timeout(TIMEOUT_S):
        while not told:  # the cluster as it is comes first: from then on nothing is left out
            await asyncio.sleep(0.05)
    async with AsyncClient([second.grpc]) as client:
        for number in range(RUNS):
            if number == RUNS // 3:
                await asyncio.to_thread(first.kill)
            assert await client.jobs.run(KEY) is not None
        runs = {each.id for each in await client.executions.list(KEY, limit=None)}
        assert len(runs) == RUNS
        async with asyncio.timeout(TIMEOUT_S):
            while ends(told).keys() != runs:
                await asyncio.sleep(0.05)
    listening.cancel()
    begun = Counter(each.execution.id for each in told if each.kind is EventKind.EXECUTION_STARTED and each.execution)
    assert begun == dict.fromkeys(runs, 1)
    assert ends(told) == dict.fromkeys(runs, 1)
    assert not [each for each in told if each.kind is EventKind.RESYNC]
    assert all(each.position for each in told)
    with Client([first.grpc, second.grpc]) as waiting:
        again = await asyncio.to_thread(_until, waiting, told[0].position, runs)
    assert again == ends(told), "by a position that another controller gave out"
    async with AsyncClient([second.grpc]) as client:
        page = await client.poll_events(told[0].position)
        assert ends(list(page.events)) == ends(told)
        assert [each.kind async for each in _first(client, "none of its positions")] == [EventKind.RESYNC]


async def test_a_script_finds_its_cluster_in_the_environment(cluster: Cluster, tmp_path: Path) -> None:
    environment = {**os.environ, "CRONRING_CONTROLLERS": f"127.0.0.1:1,{cluster.addresses}"}
    script = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = await asyncio.to_thread(
        subprocess.run, script, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "completed True\n", "")
    position = tmp_path / "seen"
    command = ("events", "--position", str(position))
    said = []
    for run in (False, True, False):
        if run:
            async with AsyncClient(cluster.addresses.split(",")) as client:
                await client.jobs.run(KEY)
        asked = await asyncio.to_thread(programs.run, command, environment)
        assert asked.returncode == 0, asked.stderr
        said.append((asked.stdout, asked.stderr))
    assert said[0] == ("", "from here on: the next time this tells what has happened since\n")
    assert f"of {KEY} (manual)" in said[1][0]
    assert f"of {KEY}: completed after" in said[1][0]
    assert f"of {KEY}: completed after" not in said[2][0]


def ends(events: list[Event]) -> Counter[int]:
    return Counter(each.execution.id for each in events if each.kind is EventKind.EXECUTION_ENDED and each.execution)


def _until(client: Client, position: str, runs: set[int]) -> Counter[int]:
    heard: list[Event] = []
    for event in client.events(position):
        heard.append(event)
        if ends(heard).keys() == runs:
            break
    return ends(heard)


async def _first(client: AsyncClient, after: str) -> AsyncIterator[Event]:
    async for event in client.events(after):
        yield event
        return
