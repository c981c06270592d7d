"""A runner stands still; its run is ended past its hard timeout, and another takes its place. Then it goes on."""

import json
import signal
from pathlib import Path

from cronring.client import AsyncClient
from cronring.controller.store.connect import connect
from tests.support.cluster import Cluster
from tests.support.waiting import wait_until

MODULE = Path(__file__).parent / "modules" / "fenced.py"


async def test_a_zombie_does_not_commit_beside_its_successor(database_url: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    environment = {"JOURNAL": str(journal), "BOOKS": database_url}

    def steps(execution_id: int) -> list[str]:
        lines = map(json.loads, journal.read_text().splitlines() if journal.exists() else [])
        return [line["step"] for line in lines if line["execution"] == execution_id]

    with Cluster(database_url, tmp_path, environment) as cluster:
        for _ in range(2):
            cluster.start_controller("--hard-timeout-grace", "18s")
        connection = await connect(database_url, "books")
        await connection.execute("CREATE TABLE public.invoices (fence bigint)")
        cluster.start_runner(MODULE)
        async with AsyncClient(cluster.addresses.split(",")) as client:

            async def run() -> int:
                await wait_until(deployed, "it isn't deployed", 40)
                latest = await client.executions.list("fenced.invoice", limit=1)
                after_id = latest[0].id if latest else 0
                await client.jobs.trigger("fenced.invoice")
                found: list[int] = []

                async def begun() -> bool:
                    rows = await client.executions.list("fenced.invoice", after_id=after_id)
                    found[:] = [row.id for row in rows]
                    return bool(found) and "written" in steps(found[0])

                await wait_until(begun, "it doesn't begin", 40)
                return found[0]

            async def deployed() -> bool:
                return bool(await client.jobs.list(module="fenced"))

            async def outcome(execution_id: int) -> str | None:
                return (await client.executions.get(execution_id)).outcome

            zombie = await run()
            cluster.runners[0].send(signal.SIGSTOP)

            async def taken_for_dead() -> bool:
                return await outcome(zombie) is not None

            await wait_until(taken_for_dead, "nobody ends it", 40)
            assert await outcome(zombie) == "timed_out"
            (tmp_path / "quick").touch()
            cluster.start_runner(MODULE)
            successor = await run()
            await wait_until(lambda: "committed" in steps(successor), "its successor doesn't commit", 20)
            assert successor > zombie, "fences grow"
            (tmp_path / "go").touch()
            await wait_until(lambda: len(steps(zombie)) > 1, "the zombie doesn't go on", 20)
        assert steps(zombie) == ["written", "refused"]
        assert [row[0] for row in await connection.fetch("SELECT fence FROM public.invoices")] == [successor]
        await connection.close()
