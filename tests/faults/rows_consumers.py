"""Consumers of queues that are killed, and a PostgreSQL that crashes under them. Their own journal is the judge."""

import random
import time

from tests import drawing
from tests.faults.queue_load import QueueLoad
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.server_faults import wait_until_it_answers

PROMISE = "each message done once, in the order of its workspace; none lost"


@row(
    "queue-consumers", fault="kill -9 of either of two consumers of 50 workspaces", promise=PROMISE, short_s=12,
    long_s=60,
)  # fmt: skip
def queue_consumers(stage: Stage) -> None:
    draw = random.Random(drawing.seed(91))
    stage.on_time = False  # what is judged is the queue
    stage.start(controllers=1, runners=1)
    load = QueueLoad(stage)
    load.write()
    load.consume()
    load.consume()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        stage.pass_time(draw.uniform(0.5, 2.0))
        load.kill_consumer(draw.randrange(2))
        stage.fault("kill -9")
    load.stop_writing()
    load.drain_and_judge()


@row(
    "queue-crashes", fault="PostgreSQL crashes between messages' commits and their takes, and under takes",
    promise=PROMISE, short_s=12, long_s=60,
)  # fmt: skip
def queue_crashes(stage: Stage) -> None:
    draw = random.Random(drawing.seed(92))
    stage.on_time = False
    stage.start(controllers=1, runners=1)
    load = QueueLoad(stage)
    load.write()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        began = time.time()
        stage.pass_time(draw.uniform(0.2, 1.0))
        stage.fault("immediate shutdown")
        stage.server.kill()
        stage.pass_time(draw.random())
        stage.server.start()
        wait_until_it_answers(stage.cluster.database_url)
        stage.excuse(began, "PostgreSQL recovered")
        if load.consumers:
            load.kill_consumers()  # what comes in now waits through the next crash
        else:
            load.consume()
            load.consume()
    load.stop_writing()
    if not load.consumers:
        load.consume()
        load.consume()
    load.drain_and_judge()
