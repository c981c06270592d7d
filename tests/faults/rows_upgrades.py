"""A release beside the next one, and rolling restarts under load."""

import os
import signal
import time
from typing import Final

from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.cluster import Cluster, Process
from tests.support.releases import PREVIOUS, earlier_and_next, environment_of, missing

PROMISE: Final = "no tick late by more than 1 s, none lost"


class Releases:
    """Processes of either release in one cluster."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._earlier, self._next = earlier_and_next(stage.folder)

    def use(self, previous: bool) -> None:
        """What is started from now on is of that release."""
        release = self._earlier if previous else self._next
        self._stage.cluster.environment = environment_of(release, os.environ | self._stage.environment)

    def migrate(self) -> None:
        """A database as the release that is in use makes it."""
        self._stage.cluster.migrate()


def database_of_the_previous_release(stage: Stage, releases: Releases) -> None:
    url = stage.server.url(stage.server.create_database("template1"))
    stage.cluster = stage.stack.enter_context(Cluster(url, stage.folder, stage.environment))
    releases.use(previous=True)
    releases.migrate()


def replace_controller(stage: Stage, old: Process) -> None:
    """As a rolling restart does it: SIGTERM, and a new one at its place as soon as it has left."""
    old.send(signal.SIGTERM)
    stage.fault("SIGTERM", old.name)
    code = old.popen.wait(timeout=40)
    stage.expect(code == 0, f"{old.name} ended with {code}:\n{old.tail()}")
    stage.cluster.wait_ready(stage.cluster.restart_controller(old))


def replace_runner(stage: Stage, old: Process) -> None:
    """The new one first: the old one is not asked to leave before it runs something."""
    new = stage.start_runner()
    stage.wait_until("the new runner runs", lambda: "module_registered" in new.log.read_text(), 30)
    old.send(signal.SIGTERM)
    stage.fault("SIGTERM", old.name)
    code = old.popen.wait(timeout=40)
    stage.expect(code == 0, f"{old.name} ended with {code}:\n{old.tail()}")
    stage.cluster.runners.remove(old)


@row(
    "rolling-restart",
    fault="rolling restart of all controllers and runners under load",
    promise=PROMISE,
    short_s=15,
    long_s=180,
)
def rolling_restart(stage: Stage) -> None:
    stage.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        for controller in list(stage.cluster.controllers):
            replace_controller(stage, controller)
        for runner in list(stage.cluster.runners):
            replace_runner(stage, runner)


@row(
    "rolling-upgrade", fault="the previous release and this one side by side on the new schema, then this one alone",
    promise=f"{PROMISE}; migrations are expand-then-contract", short_s=15, long_s=180, needs=missing,
)  # fmt: skip
def rolling_upgrade(stage: Stage) -> None:
    """On the newer schema, controllers of the older release are started again, and gone back to."""
    releases = Releases(stage)
    database_of_the_previous_release(stage, releases)
    stage.start()
    releases.use(previous=False)
    releases.migrate()
    stage.fault("migration", "of the previous release's database, under its controllers")
    mixed_s = stage.seconds / 3
    stage.pass_time(mixed_s / 2)
    releases.use(previous=True)
    replace_controller(stage, stage.cluster.controllers[0])
    releases.use(previous=False)
    replace_controller(stage, stage.cluster.controllers[1])
    stage.pass_time(mixed_s)
    replace_runner(stage, stage.cluster.runners[0])
    stage.pass_time(mixed_s)
    releases.use(previous=True)
    replace_controller(stage, stage.cluster.controllers[1])
    releases.use(previous=False)
    for controller in list(stage.cluster.controllers):
        replace_controller(stage, controller)
    replace_runner(stage, stage.cluster.runners[0])
    stage.measured["before"] = PREVIOUS or "a made-up next one"
