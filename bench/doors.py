"""Reads and writes per second of one controller's doors, and their p99 beside a herd.

The same job is read, or the same label of it is changed, over gRPC, over REST, and through the floor: a bare aiohttp
and asyncpg handler (bench/doors_floor.py) on the same PostgreSQL. So many callers ask at once, each the next one once
it has its answer, each of a job of its own. A write of ours has its checks, its books, its row in the audit log and
its NOTIFY. The floor's is one UPDATE. The herd is so many async no-op verbs that are due together, every
five seconds, on one runner.
"""

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, NamedTuple

import aiohttp
import asyncpg
import click
import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from bench import doors_floor
from bench.fleet import NO_OP_MODULE, Fleet, end_runners, fleet
from bench.machine import machine
from bench.results import head, rows, show
from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.cronring.v1.jobs_pb2_grpc import JobsStub
from tests.support.looking import look

CALLERS: Final = 8
SECONDS: Final = 10.0
HERD: Final = 500
PERIOD_S: Final = 5
DEPLOYED_S: Final = 120.0
KINDS: Final = ("read", "write")
Ask = Callable[[str, int], Awaitable[None]]
"""Of a key, and the how-manieth time; raises where it is not answered well."""


class Door(NamedTuple):
    name: str
    read: Ask
    write: Ask


class Sample(NamedTuple):
    per_s: float
    p50_ms: float
    p99_ms: float


def key(caller: int) -> str:
    return f"doors.run:n{caller}"


async def sampled(ask: Ask, seconds: float) -> Sample:
    """What the callers get together."""
    took: list[float] = []
    begun = time.perf_counter()

    async def call(caller: int) -> None:
        number = 0
        while (at := time.perf_counter()) - begun < seconds:
            await ask(key(caller), number)
            took.append(time.perf_counter() - at)
            number += 1

    await asyncio.gather(*map(call, range(CALLERS)))
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    per_s = len(took) / (time.perf_counter() - begun)
    return Sample(round(per_s), round(1_000 * cuts[49], 1), round(1_000 * cuts[98], 1))


def over_grpc(channel: grpc.aio.Channel) -> Door:
    stub: Any = JobsStub(channel)
    mask = FieldMask(paths=["labels.n"])

    async def read(job: str, _: int) -> None:
        await stub.GetJob(jobs_pb2.GetJobRequest(key=job))

    async def write(job: str, number: int) -> None:
        spec = jobs_pb2.JobSpec(labels={"n": str(number % 2)})
        await stub.UpdateJob(jobs_pb2.UpdateJobRequest(key=job, spec=spec, update_mask=mask))

    return Door("gRPC", read, write)


def over_http(name: str, session: aiohttp.ClientSession, base: str) -> Door:
    async def read(job: str, _: int) -> None:
        async with session.get(f"{base}/jobs/{job}") as answer:
            await answer.read()
            answer.raise_for_status()

    async def write(job: str, number: int) -> None:
        asked = {"spec": {"labels": {"n": str(number % 2)}}, "update_mask": "labels.n"}
        async with session.patch(f"{base}/jobs/{job}", json=asked) as answer:
            await answer.read()
            answer.raise_for_status()

    return Door(name, read, write)


@contextlib.contextmanager
def floor(url: str) -> Iterator[str]:
    """Its base address."""
    command = [sys.executable, doors_floor.__file__, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()
        process.wait(timeout=DEPLOYED_S)


async def deployed(connection: asyncpg.Connection, module: str, jobs: int) -> None:
    async with asyncio.timeout(DEPLOYED_S):
        asked = "SELECT count(*) FROM deployments WHERE module = $1 AND min_replicas > 0"
        while not await connection.fetchval(asked, module):
            await asyncio.sleep(0.1)
        if jobs:
            began = "SELECT count(*) FROM cron_executions WHERE outcome = 'completed'"
            while await connection.fetchval(began) < jobs:
                await asyncio.sleep(0.1)


def herd_module(herd: int) -> str:
    verbs = [f'@cron("*/{PERIOD_S} * * * * *")\nasync def job_{each}() -> None:\n    pass\n' for each in range(herd)]
    return "\n".join(["from cronring import cron", "", *verbs])


def by_kind(read: Sample, write: Sample) -> dict[str, Any]:
    return {"read": read._asdict(), "write": write._asdict()}


async def measured(running: Fleet, base: str, seconds: float, herd: int) -> dict[str, Any]:
    controller = running.cluster.controllers[0]
    connection = await look(running.url)
    (running.folder / "doors.py").write_text(NO_OP_MODULE)
    (running.folder / "herd.py").write_text(herd_module(herd))
    running.start_runners(1, [running.folder / "doors.py"])
    await deployed(connection, "doors", 0)
    spec = JobSpec("5 4 1 1 *", payload={"n": 1})
    async with (
        AsyncClient([controller.grpc], insecure=True) as client,
        grpc.aio.insecure_channel(controller.grpc) as channel,
        aiohttp.ClientSession() as session,
    ):
        made = await client.jobs.create_many([JobToMake("doors", "run", f"n{each}", spec) for each in range(CALLERS)])
        assert made.changed == CALLERS, made.results[0]
        doors = (
            over_grpc(channel), over_http("REST", session, f"http://{controller.http}/api/v1/cron"),
            over_http("aiohttp + asyncpg", session, base),
        )  # fmt: skip
        for each in doors:  # what is done for the first time, is done
            await sampled(each.read, 1.0)
            await sampled(each.write, 1.0)
        alone = [(each.name, await sampled(each.read, seconds), await sampled(each.write, seconds)) for each in doors]
        before = running.start_runners(1, [running.folder / "herd.py"])
        await deployed(connection, "herd", herd)
        beside = [(await sampled(each.read, seconds), await sampled(each.write, seconds)) for each in doors]
        end_runners(running.cluster.runners + before)
    server = machine(str(await connection.fetchval("SHOW server_version")))
    await connection.close()
    cases = [
        {"door": name, "alone": by_kind(*quiet), "beside": by_kind(*herded)}
        for (name, *quiet), herded in zip(alone, beside, strict=True)
    ]
    return {"machine": server, "cases": cases}


def doors(seconds: float = SECONDS, herd: int = HERD) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with fleet(1) as running, floor(running.url) as base:
        result = asyncio.run(measured(running, base, seconds, herd))
    return {
        "name": "doors",
        "shape": {"callers": CALLERS, "seconds each": seconds, "verbs in the herd": herd},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {
            f"{each['door'].split()[0]}_{kind}": each["alone"][kind]["per_s"]
            for each in result["cases"]
            for kind in KINDS
        },
    }


def shown(samples: dict[str, dict[str, float]]) -> Iterator[str]:
    for kind in KINDS:
        each = samples[kind]
        yield from (f"{each['per_s']:,.0f}", f"{each['p50_ms']:g}, {each['p99_ms']:g}")


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each door."""
    columns = ["door"]
    for named in ("reads/s", "writes/s", "reads/s beside a herd", "writes/s beside a herd"):
        columns += [named, "p50, p99 (ms)"]
    cells = [[each["door"], *shown(each["alone"]), *shown(each["beside"])] for each in result["cases"]]
    load = result["load"]
    return "\n".join(
        [*head(result), *rows(columns, cells), "", f"Load {load['before']} before, {load['after']} after."]
    )


@click.command()
@click.option("--seconds", default=SECONDS, show_default=True, help="Of each kind of call.")
@click.option("--herd", default=HERD, show_default=True, help="Verbs that are due together.")
@click.option("--keep", "kept", is_flag=True, help="Write bench/results/doors.json and .md.")
def main(seconds: float, herd: int, kept: bool) -> None:
    """What gRPC and REST answer in a second, beside a bare handler, and how long it takes while a herd runs.

    \b
    Examples:
      python -m bench.doors
      python -m bench.doors --seconds 3 --herd 100
    """
    result = doors(seconds, herd)
    show(result, table(result), kept=kept)


if __name__ == "__main__":
    main()
