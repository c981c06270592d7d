"""Processes that are killed, stand still, or are asked to leave."""

import random
import signal
import time
from collections.abc import Iterator

from tests import drawing
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.cluster import Process

PAUSE_S = 2.5  # between two faults: whoever is new is a member by then
STILL_S = 12.0  # longer than leases and a runner's fence
CLAIMING_S = 0.03  # from a tick until all that came due has been claimed and dispatched
HEARD_S = 0.25  # until PostgreSQL has committed what it heard of one that stands still
STUCK_S = 5.0  # until what it held is told to another, or adopted and dispatched
LATE = "the next due tick <= 1 s late; what runs finishes and is recorded once"


def _victims(stage: Stage, draw: random.Random) -> Iterator[Process]:
    """Any controller, again and again: at any instant, and half of the time when what has come due is being claimed."""
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        stage.pass_time(PAUSE_S + draw.random())
        if draw.random() < 0.5:
            stage.pass_time(1 - time.time() % 1 + draw.uniform(0.0, CLAIMING_S))
        yield draw.choice([each for each in stage.cluster.controllers if each.alive()])


@row(
    "kill-controller", fault="kill -9 of any controller, at any instant", promise=LATE, short_s=14, long_s=120,
)  # fmt: skip
def kill_controller(stage: Stage) -> None:
    draw = random.Random(drawing.seed(11))
    for dead in _victims(stage, draw):
        dead.kill()
        stage.fault("kill -9", dead.name)
        stage.pass_time(draw.random())
        stage.cluster.wait_ready(stage.cluster.restart_controller(dead))


@row(
    "stop-controller", fault="SIGSTOP of any controller for longer than its lease, then SIGCONT",
    promise=f"{LATE}; a resumed zombie claims and ends nothing it no longer holds", short_s=14, long_s=150,
)  # fmt: skip
def stop_controller(stage: Stage) -> None:
    still_s = 30.0 if stage.seconds > 60 else STILL_S
    for zombie in _victims(stage, random.Random(drawing.seed(12))):
        frozen_at = time.time()
        stage.freeze(zombie)
        stage.fault("SIGSTOP", zombie.name)
        stage.pass_time(HEARD_S)
        stage.excuse_held(zombie, frozen_at, "its end was told to a controller that stood still", STUCK_S)
        stage.pass_time(still_s)
        stage.thaw(zombie)
        stage.tell("SIGCONT")
    stage.pass_time(PAUSE_S)


@row(
    "term-controller", fault="SIGTERM of any controller, at any instant", promise=LATE, short_s=12, long_s=120,
)  # fmt: skip
def term_controller(stage: Stage) -> None:
    for leaving in _victims(stage, random.Random(drawing.seed(13))):
        leaving.send(signal.SIGTERM)
        stage.fault("SIGTERM", leaving.name)
        code = leaving.popen.wait(timeout=30)
        stage.expect(code == 0, f"{leaving.name} ended with {code}:\n{leaving.tail()}")
        stage.cluster.wait_ready(stage.cluster.restart_controller(leaving))
