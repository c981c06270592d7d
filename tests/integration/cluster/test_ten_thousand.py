"""Ten thousand jobs through every door of a real cluster: made and read by each, ticking, and removed by label.

10,000 is also as much as one call of gRPC or REST takes, and as one set may hold.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import asyncpg
import pytest

from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec
from cronring.schema.filters import JobQuery
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.rested import CRON
from tests.support.waiting import until

MANY: Final = 10_000
TICKING: Final = 100  # of each door: the first ones are due while the test looks
PAGE: Final = 1_000
PATIENCE_S: Final = 120.0
MODULE: Final = """
from cronring import verb

@verb
async def run(payload: dict[str, int]) -> None:
    pass
"""
ENDED: Final = """
SELECT count(DISTINCT j.key) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
WHERE e.outcome = 'completed' AND j.labels @> $1::jsonb
"""
Schedules = dict[str, str]
"""Of jobs, by their keys."""


def wanted(door: str) -> Schedules:
    return {f"doors.run:{door}-{number}": schedule(number) for number in range(MANY)}


def schedule(number: int) -> str:
    return "every 5s" if number < TICKING else f"{number % 60} {number % 24} 1 1 *"


def spec(door: str, number: int) -> JobSpec:
    return JobSpec(schedule(number), payload={"n": number}, labels={"door": door})


def timed(number: int) -> dict[str, str]:
    """As commands and files have it."""
    return {"every": "5s"} if number < TICKING else {"cron": schedule(number)}


class Doors(NamedTuple):
    """Of one cluster."""

    cluster: Cluster
    folder: Path
    client: AsyncClient
    rest: aiohttp.ClientSession
    database: "asyncpg.Connection[asyncpg.Record]"

    async def command(self, *arguments: str) -> Any:
        done = await asyncio.to_thread(self.cluster.ask, *arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    async def make_by_grpc(self, door: str) -> None:
        jobs = [JobToMake("doors", "run", f"{door}-{number}", spec(door, number)) for number in range(MANY)]
        made = await self.client.jobs.create_many(jobs)
        assert (made.changed, made.failed) == (MANY, 0)

    async def make_by_rest(self, door: str) -> None:
        def job(number: int) -> dict[str, Any]:
            spec = {"schedule": schedule(number), "payload": f'{{"n": {number}}}', "labels": {"door": door}}
            return {"module": "doors", "verb": "run", "name": f"{door}-{number}", "spec": spec}

        body = BytesIO(json.dumps({"jobs": list(map(job, range(MANY)))}).encode())
        async with self.rest.post(
            f"{CRON}/jobs:create", data=body, headers={"Content-Type": "application/json"}
        ) as answer:
            made = await answer.json()
            assert (answer.status, made["changed"], made["failed"]) == (201, MANY, 0), made

    async def make_by_import(self, door: str) -> None:
        file = self.folder / "jobs.ndjson"
        common = {"verb": "doors.run", "labels": {"door": door}}
        lines = [common | {"name": f"{door}-{each}", "payload": {"n": each}} | timed(each) for each in range(MANY)]
        file.write_text("\n".join(map(json.dumps, lines)))
        told = await self.command("jobs", "import", "--stream", str(file))
        assert (told["made"], told["failed"]) == (MANY, 0)

    async def make_by_apply(self, door: str) -> None:
        file = self.folder / "jobs.toml"
        jobs = [
            f'[[jobs]]\nverb = "doors.run"\nname = "{door}-{number}"\nlabels = {{door = "{door}"}}\n'
            f"payload = {{n = {number}}}\n" + "".join(f'{key} = "{value}"\n' for key, value in timed(number).items())
            for number in range(MANY)
        ]
        file.write_text(f'set = "{door}"\n' + "".join(jobs))
        (told,) = await self.command("apply", str(file))
        assert (told["created"], told["refused"]) == (MANY, 0)

    async def read_by_grpc(self, door: str) -> Schedules:
        query = JobQuery(labels={"door": door})
        assert await self.client.jobs.count(query) == MANY
        return {each.key: each.schedule for each in await self.client.jobs.find(query)}

    async def read_by_rest(self, door: str) -> Schedules:
        found: list[tuple[str, str]] = []
        asked = {"filter.labels.door": door, "page_size": str(PAGE), "total": "true", "page_token": ""}
        while len(found) < 2 * MANY:
            async with self.rest.get(f"{CRON}/jobs", params=asked) as answer:
                page = await answer.json()
            assert (answer.status, page["total"]["count"]) == (200, str(MANY)), page
            found += [(each["key"], each["schedule"]) for each in page["jobs"]]
            asked["page_token"] = page["next_page_token"]
            if not asked["page_token"]:
                break
        assert len(found) == MANY, "each stands on one page"
        return dict(found)

    async def read_by_command(self, door: str) -> Schedules:
        rows = await self.command("jobs", "list", "--label", f"door={door}", "--limit", str(2 * MANY))
        return {each["key"]: each["schedule"] for each in rows}

    async def read_by_sql(self, door: str) -> Schedules:
        rows = await self.database.fetch(
            "SELECT key, schedule FROM cron_job_status WHERE labels @> $1::jsonb", json.dumps({"door": door})
        )
        return {row["key"]: row["schedule"] for row in rows}

    async def remove_by_grpc(self, door: str) -> int:
        told = [each async for each in self.client.jobs.control("delete", labels={"door": door}, expected=MANY)]
        return sum(each.done for each in told)

    async def remove_by_rest(self, door: str) -> int:
        asked = {"action": "ACTION_DELETE", "filter": {"labels": {"door": door}}, "expected": MANY}
        async with self.rest.post(f"{CRON}/jobs:control", json=asked) as answer:
            lines = [json.loads(line) async for line in answer.content if line.strip()]
        return sum(each["done"] for each in lines)

    async def remove_by_command(self, door: str) -> int:
        few = await asyncio.to_thread(
            self.cluster.ask, "jobs", "delete", "--label", f"door={door}", "--expect", str(MANY - 1), "--yes"
        )
        assert (few.returncode, f"{MANY - 1} are expected" in few.stderr) == (1, True), few.stderr
        told = await self.command("jobs", "delete", "--label", f"door={door}", "--expect", str(MANY), "--yes")
        return int(told["done"])

    async def ended(self, door: str) -> int:
        """Jobs of which a run has completed."""
        return int(await self.database.fetchval(ENDED, json.dumps({"door": door})))


Make = Callable[[Doors, str], Coroutine[Any, Any, None]]
Read = Callable[[Doors, str], Coroutine[Any, Any, Schedules]]
Remove = Callable[[Doors, str], Coroutine[Any, Any, int]]
WAYS: Final[dict[str, tuple[Make, Read, Remove]]] = {  # by whom they are made, read, and removed
    "grpc": (Doors.make_by_grpc, Doors.read_by_rest, Doors.remove_by_grpc),
    "rest": (Doors.make_by_rest, Doors.read_by_command, Doors.remove_by_rest),
    "import": (Doors.make_by_import, Doors.read_by_grpc, Doors.remove_by_command),
    "apply": (Doors.make_by_apply, Doors.read_by_sql, Doors.remove_by_command),
}


def ready(cluster: Cluster, folder: Path) -> None:
    file = folder / "doors.py"
    file.write_text(MODULE)
    for _ in range(2):
        cluster.start_controller()
    cluster.start_runner(file)
    until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"), PATIENCE_S)


async def until_all_tick(doors: Doors, door: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await doors.ended(door) < TICKING:
            await asyncio.sleep(0.2)


@pytest.mark.timeout(560)
async def test_ten_thousand_jobs_go_through_every_door(cluster: Cluster, tmp_path: Path) -> None:
    await asyncio.to_thread(ready, cluster, tmp_path)
    database = await look(cluster.database_url)
    async with (
        AsyncClient(cluster.addresses.split(","), insecure=True) as client,
        aiohttp.ClientSession(f"http://{cluster.controllers[0].http}") as rest,
    ):
        doors = Doors(cluster, tmp_path, client, rest, database)
        for door, (make, _, _) in WAYS.items():
            await make(doors, door)
        for door, (_, read, _) in WAYS.items():
            assert await doors.read_by_sql(door) == wanted(door)
            assert await read(doors, door) == wanted(door), read.__name__
        for door in WAYS:
            await until_all_tick(doors, door)
            assert await doors.ended(door) == TICKING, "no other is due yet"
        for door, (_, _, remove) in WAYS.items():
            assert await remove(doors, door) == MANY
            assert await doors.read_by_sql(door) == {}
    assert (await database.fetchval("SELECT count(*) FROM cron_job_status WHERE module = 'doors'")) == 0
    await database.close()
    assert "clean" in (await asyncio.to_thread(cluster.ask, "audit")).stdout
