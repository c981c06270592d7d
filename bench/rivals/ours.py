"""cronring as one more contender: controllers, a runner and its children, as many processes as a rival has.

Async verbs that only note their start, as the rivals' do. One-shots are verbs with `@once`, deployed before and all due
at the same instant. What deploying takes is not measured, as inserting isn't of the rivals. A rival's queue is payloads
of one task. What comes nearest is a job for each payload, `jobs create --at T --payload`: the same rows as these and so
the same work from T on, but made one by one, and by gRPC. A trigger (`jobs trigger --payload`) is an operator's order,
answered when its run has begun, and no queue: it isn't measured.
"""

import asyncio
import shutil
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.rivals.contenders import Scene
from cronring.client import AsyncClient
from cronring.schema.validate import VERBS_LIMIT
from tests.support.cluster import Cluster
from tests.support.databases import run_coroutine

CHILDREN = 2  # of a runner, for the async verbs of a module
SPARE_S = 6.0
DEPLOYED_S = 120.0
STOPPED_S = 30.0
_HEAD = """
import os
import struct
import time
from cronring import {decorator}

starts = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
record = struct.Struct("<dI")
"""
_VERB = """
@{decorator}({schedule!r})
async def job_{number}() -> None:
    os.write(starts, record.pack(time.time(), {number}))
"""


def module(starts: Path, decorator: str, schedule: str, numbers: range) -> str:
    """Its text: a verb for each number."""
    verbs = (_VERB.format(decorator=decorator, schedule=schedule, number=number) for number in numbers)
    return _HEAD.format(path=str(starts), decorator=decorator) + "".join(verbs)


class Ours:
    """One cluster. Of one-shots each burst is deployed by a runner of its own, in place of the runner before: as a
    queue's, the jobs are new, and the rows of those before stay.
    """

    # Asked for often, in a table that grows: by way of what is unfinished, and of what is due.
    unfinished = (
        "SELECT EXISTS (SELECT FROM cron_jobs WHERE next_execution <= now()) OR EXISTS (SELECT FROM cron_executions "
        "WHERE outcome IS NULL AND controller_id > '')"
    )

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cluster = Cluster(scene.database_url, scene.folder)
        self._bursts = 0
        self._deploy_s = 0.004  # a job's share, reckoned generously until it is known
        setpriv = shutil.which("setpriv")
        self._wrapper = (
            (setpriv, "--pdeathsig", "KILL") if setpriv else ()
        )  # else a kill -9 of this process spares them

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._cluster.controllers + self._cluster.runners]

    def prepare(self) -> None:
        """Nothing: its tables are there, and a runner deploys the rest."""

    def start(self) -> None:
        for _ in range(max(1, self._scene.processes - 1 - CHILDREN)):
            self._cluster.start_controller(wrapper=self._wrapper)
        if (slot := self._scene.slot) is not None:
            self._deploy("cron", f"{slot.second} {slot.minutes} * * * *", self._scene.jobs)

    def _deploy(self, decorator: str, schedule: str, jobs: int) -> None:
        """In as many modules as that takes. Raises TimeoutError when they aren't deployed after two minutes."""
        files = []
        for first in range(0, jobs, VERBS_LIMIT):
            files.append(self._scene.folder / f"burst_{self._bursts}_{first}.py")
            numbers = range(first, min(first + VERBS_LIMIT, jobs))
            files[-1].write_text(module(self._scene.starts, decorator, schedule, numbers))
        self._bursts += 1
        self._cluster.start_runner(*files, wrapper=self._wrapper)
        run_coroutine(self._wait_deployed({file.stem for file in files}))

    async def _wait_deployed(self, modules: set[str]) -> None:
        """Asked for by name: a list of all counts the jobs of each, those of former bursts among them."""
        addresses = [controller.grpc for controller in self._cluster.controllers]
        async with asyncio.timeout(DEPLOYED_S), AsyncClient(addresses) as client:
            for module in modules:
                while not any(one.runners for one in await client.deployments.list(module=module, active_only=True)):
                    await asyncio.sleep(0.1)

    def enqueue(self, jobs: int) -> float:
        for runner in list(self._cluster.runners):
            runner.send(signal.SIGTERM)
            runner.popen.wait(timeout=STOPPED_S)
            self._cluster.runners.remove(runner)
        begun = time.time()
        due = int(begun + SPARE_S + jobs * self._deploy_s)
        self._deploy("once", datetime.fromtimestamp(due, UTC).isoformat(), jobs)
        taken = time.time() - begun
        self._deploy_s = 1.5 * taken / jobs
        assert time.time() < due, f"deploying {jobs} jobs took {taken:.0f} s, longer than reckoned with"
        return due

    def died(self) -> str:
        for process in self._cluster.controllers + self._cluster.runners:
            if not process.alive():
                return f"{process.name} ended: {process.tail(5)}"
        return ""

    def stop(self) -> None:
        self._cluster.__exit__(None, None, None)
