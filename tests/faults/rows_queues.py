"""Jobs whose target is a queue: who dies between a tick's claim, its message, and what its consumer says."""

import asyncio
import random
import time
from collections.abc import Callable

from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec
from tests import drawing
from tests.faults.bounds import Bounds
from tests.faults.queue_judge import Consumers, judge_messages, note_messages
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.server_faults import wait_until_it_answers

PROMISE = "each tick that runs has exactly one message, and what consumers say is recorded once"
WORKSPACES = 12
PAUSE_S = 2.0


def _play(stage: Stage, strike: Callable[[random.Random], None], seed: int) -> None:
    """Three controllers, no runner, and consumers. Half of the jobs await these."""
    draw = random.Random(drawing.seed(seed))
    stage.on_time = False  # what is late here, no verb tells
    stage.bounds = Bounds({}, outcomes=frozenset({"completed", "failed", "timed_out"}))
    for _ in range(3):
        stage.cluster.start_controller(wait=False)
    for controller in stage.cluster.controllers:
        stage.cluster.wait_ready(controller)
    note_messages(stage)
    with Consumers(stage.cluster.database_url):
        asyncio.run(_make_jobs(stage))
        ends = time.monotonic() + stage.seconds
        while time.monotonic() < ends:
            # Half of the time when what has come due is being claimed.
            stage.pass_time(PAUSE_S + draw.random())
            if draw.random() < 0.5:
                stage.pass_time(1 - time.time() % 1 + draw.uniform(0.0, 0.03))
            strike(draw)
        stage.pass_time(PAUSE_S)
        judge_messages(stage)


async def _make_jobs(stage: Stage) -> None:
    awaited: dict[str, str | int | list[str]] = {"completes": "consumed", "retries": 1, "backoff": "1s"}
    jobs = [
        JobToMake(
            "", "", "n", JobSpec("* * * * * *", awaited if number % 2 else {}, payload=number), queue="reports",
            workspace=f"ws_{number}",
        )
        for number in range(WORKSPACES)
    ]  # fmt: skip
    async with AsyncClient([each.grpc for each in stage.cluster.controllers]) as client:
        done = await client.jobs.create_many(jobs, all_or_nothing=True)
    stage.expect(done.changed == WORKSPACES, f"jobs were not made: {done.results}")


@row("queue-controller", fault="kill -9 of any controller, at any instant", promise=PROMISE, short_s=14, long_s=120)
def queue_controller(stage: Stage) -> None:
    def strike(draw: random.Random) -> None:
        dead = draw.choice([each for each in stage.cluster.controllers if each.alive()])
        dead.kill()
        stage.fault("kill -9", dead.name)
        stage.pass_time(draw.random())
        stage.cluster.wait_ready(stage.cluster.restart_controller(dead))

    _play(stage, strike, 71)


@row(
    "queue-postgres", fault="immediate shutdown of PostgreSQL, between enqueue and take", promise=PROMISE,
    short_s=14, long_s=120,
)  # fmt: skip
def queue_postgres(stage: Stage) -> None:
    def strike(draw: random.Random) -> None:
        stage.fault("immediate shutdown")
        stage.server.kill()
        stage.pass_time(draw.random())
        stage.server.start()
        wait_until_it_answers(stage.cluster.database_url)

    _play(stage, strike, 72)
