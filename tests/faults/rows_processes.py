"""Processes that are killed, stand still, or are asked to leave."""

import random
import signal
import time

from tests import drawing
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.cluster import Process

PAUSE_S = 2.5  # between two faults: whoever is new is a member by then
STILL_S = 12.0  # longer than leases and a runner's fence
STUCK_S = 8.0  # until a runner gives up on a stream that is silent, and the end it told there is told elsewhere
LATE = "the next due tick <= 1 s late; what runs finishes and is recorded once"


def _victim(stage: Stage, draw: random.Random) -> Process:
    return draw.choice([each for each in stage.cluster.controllers if each.alive()])


def _at_some_instant(stage: Stage, draw: random.Random) -> None:
    """Of a second: that a claim is under way, that a tick is due, that all is quiet."""
    stage.pass_time(PAUSE_S + draw.random())


@row(
    "kill-controller", fault="kill -9 of any controller, at any instant", promise=LATE, short_s=14, long_s=120,
)  # fmt: skip
def kill_controller(stage: Stage) -> None:
    draw = random.Random(drawing.seed(11))
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        _at_some_instant(stage, draw)
        dead = _victim(stage, draw)
        dead.kill()
        stage.fault("kill -9", dead.name)
        stage.pass_time(draw.random())
        stage.cluster.wait_ready(stage.cluster.restart_controller(dead))


@row(
    "stop-controller", fault="SIGSTOP of any controller for longer than its lease, then SIGCONT",
    promise=f"{LATE}; a resumed zombie claims and ends nothing it no longer holds", short_s=14, long_s=150,
)  # fmt: skip
def stop_controller(stage: Stage) -> None:
    draw = random.Random(drawing.seed(12))
    still_s = 30.0 if stage.seconds > 60 else STILL_S
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        _at_some_instant(stage, draw)
        zombie = _victim(stage, draw)
        frozen_at = time.time()
        stage.freeze(zombie)
        stage.fault("SIGSTOP", zombie.name)
        stage.pass_time(still_s)
        stage.thaw(zombie)
        stage.tell("SIGCONT")
        stage.excuse_in_flight(frozen_at, "its end was told to a controller that stood still", STUCK_S)
    stage.pass_time(PAUSE_S)


@row(
    "term-controller", fault="SIGTERM of any controller, at any instant", promise=LATE, short_s=12, long_s=120,
)  # fmt: skip
def term_controller(stage: Stage) -> None:
    draw = random.Random(drawing.seed(13))
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        _at_some_instant(stage, draw)
        leaving = _victim(stage, draw)
        leaving.send(signal.SIGTERM)
        stage.fault("SIGTERM", leaving.name)
        code = leaving.popen.wait(timeout=30)
        stage.expect(code == 0, f"{leaving.name} ended with {code}:\n{leaving.tail()}")
        stage.cluster.wait_ready(stage.cluster.restart_controller(leaving))
