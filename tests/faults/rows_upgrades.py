"""The previous release beside this one, and rolling restarts under load."""

import io
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Final

from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.cluster import Cluster, Process

ROOT: Final = Path(__file__).parents[2]
# Nothing has been released, so nothing has to work beside this: the last commit stands in for the release before, until
# that has a tag.
PREVIOUS: Final = "HEAD"
FOLDERS: Final = ("controller", "cronring", "protos", "schema", "sql")
PROMISE: Final = "no tick late by more than 1 s, none lost"


def needs_history() -> str:
    done = subprocess.run(["git", "cat-file", "-e", PREVIOUS], cwd=ROOT, capture_output=True, check=False)
    return "" if done.returncode == 0 else f"the previous release, {PREVIOUS}, is not in this folder's history (git)"


class Releases:
    """Processes of either release in one cluster: those of the one before come from the repository's history.

    PYTHONPATH goes before the environment's packages, for children too, so each process is of one release throughout.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._previous = stage.folder / "previous"
        archive = subprocess.run(
            ["git", "archive", "--format=tar", PREVIOUS, *FOLDERS], cwd=ROOT, capture_output=True, check=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(self._previous, filter="data")

    def use(self, previous: bool) -> None:
        """What is started from now on is of that release."""
        environment = dict(os.environ | self._stage.environment)
        environment["PYTHONPATH"] = str(self._previous if previous else ROOT)
        self._stage.cluster.environment = environment

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
    promise=f"{PROMISE}; migrations are expand-then-contract", short_s=15, long_s=180, needs=needs_history,
)  # fmt: skip
def rolling_upgrade(stage: Stage) -> None:
    releases = Releases(stage)
    database_of_the_previous_release(stage, releases)
    stage.start()
    releases.use(previous=False)
    releases.migrate()
    stage.fault("migration", f"of {PREVIOUS}'s database, under its controllers")
    mixed_s = stage.seconds / 3
    stage.pass_time(mixed_s / 2)
    replace_controller(stage, stage.cluster.controllers[0])
    stage.pass_time(mixed_s)
    replace_runner(stage, stage.cluster.runners[0])
    stage.pass_time(mixed_s)
    for controller in stage.cluster.controllers[1:]:
        replace_controller(stage, controller)
    replace_runner(stage, stage.cluster.runners[0])
    stage.measured["before"] = PREVIOUS
