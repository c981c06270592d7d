"""A burst through real processes: two controllers, a runner with its child, PostgreSQL. 2,000 jobs in the same second.

What is counted does not depend on how fast they are. How much of it goes into one batch does a little, so the bounds of
what comes by the batch are wider.
"""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import psutil

from bench.burst import LEFT
from tests.proxies.counting import calls_file
from tests.proxies.statements import CountingServer, Said, counting_server
from tests.proxies.taps import Heard, Taps
from tests.support.cluster import Cluster, free_port
from tests.support.looking import look
from tests.support.waiting import TIMEOUT_S

ROOT: Final = Path(__file__).parents[2]
JOBS: Final = 2_000
CONTROLLERS: Final = 2
PERIOD_S: Final = 6
BEFORE_S: Final = 0.4  # the burst is counted from then on
QUIET_S: Final = 0.6  # and until so long after its last end: acknowledgements, places that come back
TRIES: Final = 5  # bursts, until one is over early enough before the next
DEPLOYED: Final = "SELECT count(*) FROM cron_jobs"


class Counts(NamedTuple):
    """What has been counted until an instant."""

    mark: int
    heard: Heard
    controllers: Counter[str]
    runner: Counter[str]
    child: Counter[str]


class Burst(NamedTuple):
    """What came between two instants."""

    said: list[Said]
    heard: Heard
    controllers: Counter[str]
    runner: Counter[str]
    child: Counter[str]


class Stage:
    """The processes, each of which counts its calls."""

    def __init__(self, server: CountingServer, taps: Taps, folder: Path, url: str) -> None:
        self._server = server
        self._taps = taps
        self._folder = folder
        self._url = url
        # What counts is started in another folder, and is not installed.
        self._cluster = Cluster(url, folder, {"PYTHONPATH": str(ROOT)})

    def __enter__(self) -> "Stage":
        self._cluster.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.__exit__(None, None, None)

    def start(self) -> None:
        module = self._folder / "burst.py"
        verb = '@cron("*/{} * * * * *")\nasync def job_{}() -> None:\n    pass\n'
        verbs = [verb.format(PERIOD_S, number) for number in range(JOBS)]
        module.write_text("\n".join(["from cronring import cron\n", *verbs]))
        counting = (sys.executable, "-m", "tests.proxies.counting", str(self._folder))
        python = self._folder / "python"  # of the child
        python.write_text(f'#!/bin/sh\nexec {shlex.join([*counting, sys.executable])} "$@"\n')
        python.chmod(0o755)
        for _ in range(CONTROLLERS):
            listen = f"127.0.0.1:{free_port()}"
            self._cluster.start_controller_behind(listen, self._taps.to(listen).address, counting)
        self._cluster.start_runner(module, extra=("--python", str(python)), wrapper=counting)

    async def counts(self) -> Counts:
        runners = [runner.pid for runner in self._cluster.runners]
        children = [child.pid for pid in runners for child in psutil.Process(pid).children()]
        return Counts(
            self._server.mark(),
            self._taps.heard.copy(),
            await self._called([controller.pid for controller in self._cluster.controllers]),
            await self._called(runners),
            await self._called(children),
        )

    async def _called(self, pids: list[int]) -> Counter[str]:
        found: Counter[str] = Counter()
        files = [calls_file(self._folder, pid) for pid in pids]
        for pid, file in zip(pids, files, strict=True):
            file.unlink(missing_ok=True)
            os.kill(pid, signal.SIGWINCH)
        for file in files:
            async with asyncio.timeout(TIMEOUT_S):
                while not file.exists():
                    await asyncio.sleep(0.01)
            found.update(json.loads(file.read_text()))
        return found

    def _between(self, begins: Counts, ends: Counts) -> Burst:
        said = [each for each in self._server.said(begins.mark, ends.mark) if each.application.startswith("cronring ")]
        return Burst(
            said,
            ends.heard - begins.heard,
            ends.controllers - begins.controllers,
            ends.runner - begins.runner,
            ends.child - begins.child,
        )

    async def _deployed(self, connection: asyncpg.Connection) -> None:
        processes = [*self._cluster.controllers, *self._cluster.runners]
        async with asyncio.timeout(60):
            while await connection.fetchval(DEPLOYED) < JOBS:
                assert all(process.alive() for process in processes), [process.tail() for process in processes]
                await asyncio.sleep(0.05)

    async def burst(self) -> Burst:
        connection = await look(self._url, application_name="looks on")
        try:
            await self._deployed(connection)
            tick = _next_tick()
            await _drained(connection, tick)
            for _ in range(TRIES):
                tick = _next_tick()
                await asyncio.sleep(tick - BEFORE_S - time.time())
                begins = await self.counts()
                await _drained(connection, tick)
                await asyncio.sleep(QUIET_S)
                if time.time() < tick + PERIOD_S:
                    return self._between(begins, await self.counts())
            raise AssertionError(f"no burst of {JOBS} was over within {PERIOD_S} s")
        finally:
            await connection.close()


def _next_tick() -> int:
    return (int(time.time() + 2 * BEFORE_S) // PERIOD_S + 1) * PERIOD_S


async def _drained(connection: asyncpg.Connection, tick: int) -> None:
    """Until the last end of that tick is committed."""
    async with asyncio.timeout(60):
        while await connection.fetchval(LEFT, tick):
            await asyncio.sleep(0.05)


def play() -> Burst:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-proxies-")))
        server = stack.enter_context(counting_server())
        taps = stack.enter_context(Taps())
        stage = stack.enter_context(Stage(server, taps, folder, server.new_database()))
        stage.start()
        return asyncio.run(stage.burst())


def measure(found: Burst | None = None) -> dict[str, float]:
    """Of one execution, or ("per_1000") of a thousand."""
    found = found or play()
    named = Counter(each.name for each in found.said)
    heard = found.heard.messages
    to_runner = sum(heard[kind] for kind in ("dispatch", "reports_ack", "demands", "cancel"))
    from_runner = sum(heard[kind] for kind in ("reports", "grants"))
    sizes = found.heard.sizes
    thousands = JOBS / 1_000
    return {
        "claims_per_1000": named["StartCronJobs"] / thousands,
        "ends_per_1000": named["EndCronJob"] / thousands,
        "other_statements_per_1000": (len(found.said) - named["StartCronJobs"] - named["EndCronJob"]) / thousands,
        "commits_per_1000": sum(each.commits for each in found.said) / thousands,
        "messages_to_runner_per_1000": to_runner / thousands,
        "messages_from_runner_per_1000": from_runner / thousands,
        "bytes_to_runner": (sizes.total() - sizes["beat_ack"] - _from_runner(sizes)) / JOBS,
        "bytes_from_runner": (_from_runner(sizes) - sizes["beat"]) / JOBS,
        "controller_calls": found.controllers.total() / JOBS,
        "runner_calls": found.runner.total() / JOBS,
        "child_calls": found.child.total() / JOBS,
        "lines_to_child_per_1000": _called(found.runner, "(dumps)") / thousands,
        "lines_from_child_per_1000": _called(found.runner, "(loads)") / thousands,
        "writes_to_child_per_1000": _called(found.runner, "'send' of '_socket.socket' objects>") / thousands,
        "reads_from_child_per_1000": _called(found.runner, "'recv' of '_socket.socket' objects>") / thousands,
    }


def _from_runner(sizes: Counter[str]) -> int:
    return sizes["reports"] + sizes["grants"] + sizes["beat"]


def _called(calls: Counter[str], ending: str) -> int:
    return sum(number for name, number in calls.items() if name.endswith(ending))
