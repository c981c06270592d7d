"""Clocks that are wrong, drift, and are set: of controllers, and PostgreSQL's own, which is the one that rules."""

import random
import tempfile
import time
from pathlib import Path

from tests import drawing
from tests.faults.bounds import RECOVERY_S, Excuse
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.databases import running_server
from tests.support.faked_clocks import SettableClock, drifting, missing, settable_clock, wrong_by
from tests.support.server_faults import fetch_value

NEVER = "never early, never twice"
OFFSETS_S = (60.0, -60.0, 0.0)
RATES = (1.01, 0.99, 1.0005)  # NTP's bound on a working oscillator is 500 parts per million: the first two are broken
STEPS_S = (60.0, -60.0, 3_600.0, -3_600.0, -0.7, 0.0)
PAUSE_S = 3.0
LONGEST_RUN_S = 7.0  # of the stage's module
DATABASE_STEPS_S = ((3.0, -2.5, -4.0), (40.0, -3.0, -15.0, 0.9, -40.0))  # short, long


def _need_faketime() -> str:
    lacking = missing()
    return f"needs Debian's {lacking}" if lacking else ""


def _start(stage: Stage, wrappers: list[tuple[str, ...]]) -> None:
    """A controller under each of these, and two runners."""
    for wrapper in wrappers:
        stage.cluster.start_controller(wait=False, wrapper=wrapper)
    for controller in stage.cluster.controllers:
        stage.cluster.wait_ready(controller)
    for _ in range(2):
        stage.start_runner()
    stage.wait_for_runs()


@row(
    "clock-controller", fault="controllers 60 s fast and 60 s slow, beside one that is right; kill -9 of that",
    promise=NEVER, short_s=8, long_s=120, needs=_need_faketime,
)  # fmt: skip
def clock_controller(stage: Stage) -> None:
    _start(stage, [wrong_by(offset_s) for offset_s in OFFSETS_S])
    for offset_s in OFFSETS_S[:2]:
        stage.fault(f"clock {offset_s:+g} s")
    stage.pass_time(stage.seconds / 2)
    right = stage.cluster.controllers[-1]
    right.kill()
    stage.fault("kill -9", f"{right.name}, whose clock was right")
    stage.pass_time(stage.seconds / 2)


@row(
    "clock-drift", fault="controllers whose time, monotonic too, passes 1 % too fast or too slowly",
    promise=NEVER, short_s=8, long_s=120, needs=_need_faketime,
)  # fmt: skip
def clock_drift(stage: Stage) -> None:
    _start(stage, [drifting(rate) for rate in RATES])
    for rate in RATES:
        stage.fault(f"time x {rate:g}")
    stage.pass_time(stage.seconds)


@row(
    "clock-steps", fault="controllers' clocks are set while they run, by up to an hour, either way", promise=NEVER,
    short_s=8, long_s=120, needs=_need_faketime,
)  # fmt: skip
def clock_steps(stage: Stage) -> None:
    draw = random.Random(drawing.seed(41))
    clocks = []
    for number in range(3):
        folder = stage.folder / f"clock-{number + 1}"
        folder.mkdir()
        clocks.append(settable_clock(folder))
    _start(stage, [clock.wrapper for clock in clocks])
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        number, step_s = draw.randrange(len(clocks)), draw.choice(STEPS_S)
        clocks[number].set(step_s)
        stage.fault("clock set", f"{stage.cluster.controllers[number].name} is {step_s:+g} s off")
        stage.pass_time(1.0 + draw.random())


@row(
    "database-clock", fault="PostgreSQL's clock is set forward and back while it runs", promise=NEVER,
    short_s=12, long_s=200, needs=_need_faketime,
)  # fmt: skip
def database_clock(stage: Stage) -> None:
    stage.bounds.one_clock = False
    clock = _server_with_clock(stage)
    stage.start()
    offset_s = 0.0
    for step_s in DATABASE_STEPS_S[stage.seconds > 60]:
        stage.pass_time(PAUSE_S + RECOVERY_S)
        before, offset_s = time.time() + offset_s, offset_s + step_s
        clock.set(offset_s)
        stage.fault("clock set", f"{step_s:+g} s, now {offset_s:+g} s off")
        _expect_time(stage, offset_s)
        stage.pass_time(max(0.0, -step_s))  # what has run may not run again, so nothing is due before that
        after = time.time() + offset_s
        began = min(before, after) - LONGEST_RUN_S  # what ran meanwhile has its start in the books by the new clock
        excuse = Excuse(began, max(before, after) + RECOVERY_S, f"the clock was set by {step_s:+g} s")
        stage.bounds.excuses.append(excuse)
    stage.pass_time(PAUSE_S)


def _server_with_clock(stage: Stage) -> SettableClock:
    # Not below pytest's folder, which is closed to the user that PostgreSQL runs as: it would not see a step.
    folder = Path(stage.stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-clock-")))
    folder.chmod(0o755)
    clock = settable_clock(folder)
    server = stage.stack.enter_context(running_server("postgres18", durable=True))
    server.stop()
    server.environment = clock.environment
    server.start()
    stage.server = server
    return clock


def _expect_time(stage: Stage, offset_s: float) -> None:
    """A step that PostgreSQL did not see would prove nothing."""
    told = fetch_value(stage.cluster.database_url, "SELECT extract(epoch FROM clock_timestamp())::float8")
    stage.expect(abs(told - time.time() - offset_s) < 0.5, f"PostgreSQL's clock is {told - time.time():+.3f} s off")
