"""Rivals: how their programs are run, and how their own tables tell that a burst is over."""

import ctypes
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.rivals.install import FOLDER, Installed
from bench.rivals.slots import Slot

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded here, as nothing may be loaded between fork and exec
PREPARE_S = 600.0
PG_CRON = "pg_cron"  # the one without a program: bench/rivals/pg_cron.py


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Scene:
    """Where a contender plays. `slot`: when its jobs recur; None: a queue of one-shots."""

    database_url: str
    folder: Path
    jobs: int
    processes: int
    slot: Slot | None

    @property
    def starts(self) -> Path:
        """The log that its no-ops write."""
        return self.folder / "starts"


class Contender(Protocol):
    """One in a scene."""

    unfinished: str  # SQL: does anything wait or run that is due?

    def prepare(self) -> None:
        """Make its tables, and schedules where these are rows."""

    @property
    def pids(self) -> list[int]: ...

    def start(self) -> None:
        """Start as many processes as the scene says."""

    def enqueue(self, jobs: int) -> float:
        """Add one-shots; the instant since which they are all due, in seconds since 1970."""

    def died(self) -> str:
        """What a process said that ended by itself; "" while all live."""

    def stop(self) -> None: ...


class Spec(NamedTuple):
    """A rival in one of the two tables. Its program stands in programs/, its settings at the head of it.

    `unfinished` is SQL. `slowest`: executions/s that it does even on a busy machine; from it follows its slot's length.
    `processes`: at most so many, where more of them make it slower; 0: as many as we have. `at_most`: jobs, in the
    short form and in the long one, where all of them would take minutes; 0: all. `long_only`: why it isn't in the short
    form.
    """

    name: str
    unfinished: str
    slowest: int = 0
    node: bool = False
    minutes_only: bool = False
    processes: int = 0
    at_most: tuple[int, int] = (0, 0)
    long_only: str = ""
    note: str = ""

    def share(self, jobs: int, *, short: bool) -> int:
        """Of so many jobs, how many it is given."""
        return min(jobs, self.at_most[0 if short else 1] or jobs)


_GRAPHILE_LEFT = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)"
_PROCRASTINATE_LEFT = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
# 1,000 one-shots on a loaded machine: 140/s with one process, 290/s with two, 98/s with six.
_FEWER = "two processes, as more make it slower"
# 200 recurring jobs, likewise: 50/s with one process, 22/s with two.
_ALONE = "a pre-release; one process, as more make it slower"
RECURRING = (
    Spec("graphile-worker", _GRAPHILE_LEFT, 300, node=True, minutes_only=True, note="knows minutes only"),
    Spec("pgqueuer", "SELECT EXISTS (SELECT FROM pgqueuer_schedules WHERE status = 'picked')", 120),
    Spec("procrastinate", _PROCRASTINATE_LEFT, 40, processes=2, at_most=(200, 0), note=_FEWER),
    Spec("apscheduler", "SELECT EXISTS (SELECT FROM jobs)", 40, processes=1, at_most=(200, 0), note=_ALONE),
    Spec(
        PG_CRON, "", 40, minutes_only=True, at_most=(0, 500),
        long_only="in `make bench-rivals` only: it knows minutes only, and here each begins with graphile-worker's",
        note="on PostgreSQL 15; it runs SQL (SELECT 1), not Python; knows minutes only",
    ),
)  # fmt: skip
# 20,000 one-shots: pg-boss, graphile-worker and PgQueuer were the fastest with six processes, of 1, 2, 3 and 6.
QUEUES = (
    Spec("pg-boss", "SELECT EXISTS (SELECT FROM pgboss.job WHERE name = 'no_op' AND state < 'completed')", node=True),
    Spec("graphile-worker", _GRAPHILE_LEFT, node=True),
    Spec("pgqueuer", "SELECT EXISTS (SELECT FROM pgqueuer)"),
    Spec("procrastinate", _PROCRASTINATE_LEFT, processes=2, at_most=(2000, 0), note=_FEWER),
)


class Rival:
    """Its program in processes that die with this one."""

    def __init__(self, spec: Spec, installed: Installed, scene: Scene) -> None:
        self.unfinished = spec.unfinished
        self._spec, self._installed, self._scene = spec, installed, scene
        self._workers: list[subprocess.Popen[bytes]] = []

    def _command(self, verb: str) -> list[str]:
        if self._spec.node:
            program = FOLDER / "programs" / f"{self._spec.name.replace('-', '_')}.mjs"
            return [self._installed.node, str(program), verb]
        return [self._installed.python, "-m", "bench.rivals.programs", self._spec.name, verb]

    def _environment(self, jobs: int) -> dict[str, str]:
        scene = self._scene
        known = {"DATABASE_URL": scene.database_url, "JOBS": str(jobs), "STARTS": str(scene.starts)}
        if scene.slot is not None:
            known |= {"MINUTES": scene.slot.minutes, "SECOND": str(scene.slot.second)}
        return os.environ | known | {"PYTHONPATH": str(FOLDER.parents[1])}

    def _call(self, verb: str, jobs: int) -> str:
        """Run it to its end; what it printed. Raises AssertionError with its complaint."""
        done = subprocess.run(
            self._command(verb), env=self._environment(jobs), cwd=self._scene.folder, capture_output=True, text=True,
            timeout=PREPARE_S, check=False, preexec_fn=die_with_parent,
        )  # fmt: skip
        assert done.returncode == 0, f"{self._spec.name} {verb}: {done.stderr[-2000:]}"
        return done.stdout

    def prepare(self) -> None:
        self._call("prepare", self._scene.jobs)

    def enqueue(self, jobs: int) -> float:
        return float(self._call("enqueue", jobs))

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def start(self) -> None:
        for number in range(self._scene.processes):
            with self._log(number).open("wb") as log:
                self._workers.append(subprocess.Popen(
                    self._command("work"), env=self._environment(self._scene.jobs), cwd=self._scene.folder,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    preexec_fn=die_with_parent,  # noqa: PLW1509  (takes no lock)
                ))  # fmt: skip

    def _log(self, number: int) -> Path:
        return self._scene.folder / f"worker-{number}.log"

    def died(self) -> str:
        for number, worker in enumerate(self._workers):
            if worker.poll() is not None:
                return f"a process ended with {worker.returncode}: {self._log(number).read_text()[-500:]}"
        return ""

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.wait()
        self._workers.clear()
