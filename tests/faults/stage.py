"""What a row plays on: a cluster of real processes, a PostgreSQL of its own, a journal, and a list of what was done."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.faults.bounds import RECOVERY_S, Bounds, Excuse
from tests.faults.judge import Finding, judge_when_settled
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer, running_server
from tests.support.judge import Circumstances, JournalRun, journal_entries, read_journal
from tests.support.looking import look

STEADY: Final = Path(__file__).parent / "modules" / "steady.py"
PERIODS_S: Final[Mapping[str, int]] = {
    **{f"brief_{number:02}": 1 for number in range(14)}, "sync": 1, "missed_skipped": 1, "missed_all": 5,
    "longer_than_its_period": 2, "long": 10, "long_sync": 10, "finishing": 10, "retried": 10,
}  # fmt: skip
SETTLE_S: Final = 40.0
FIRST_RUNS_S: Final = 40.0
POLL_S: Final = 0.02
HELD = """
SELECT DISTINCT j.verb FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
JOIN controllers c ON c.id = e.controller_id AND c.pid = $1 WHERE e.outcome IS NULL
"""
QUIET_S: Final = RECOVERY_S + 2.0  # after all faults; what is due in its last two seconds must be on time


class Stage:
    """Use it in a `with`: whatever it started is ended there. `folder` keeps logs and the journal.

    `seconds`: how long the row goes on. Cluster and server are made when they are first asked for, so a row that needs
    others may set them before. `tell` is called with each step of the story.
    """

    def __init__(self, seconds: float, folder: Path, tell: Callable[[str], None]) -> None:
        self.seconds = seconds
        self.folder = folder
        self.tell = tell
        self.journal = folder / "journal"
        self.environment = {"JOURNAL": str(self.journal), "GRPC_ENABLE_FORK_SUPPORT": "0"}
        self.bounds = Bounds(PERIODS_S)
        self.faults: Counter[str] = Counter()
        self.measured: dict[str, str] = {}  # what a row adds to its line of the table: name and words
        self.broken: list[str] = []  # expectations that didn't hold
        self.began_at = time.time()
        self.stack = ExitStack()
        self.beside: list[Path] = []  # further modules that every runner hosts
        self.module = STEADY
        self.on_time = True  # a row during which nothing can be says that it isn't
        self._deaths: list[float] = []
        self._deaths_by_pid: dict[int, float] = {}
        self._child_deaths: dict[int, float] = {}
        self._absences: list[tuple[float, float]] = []
        self._server: PostgresServer | None = None
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.close()

    # The cast

    @property
    def server(self) -> PostgresServer:
        """Durable, and of this row alone: it may be stopped, killed and frozen."""
        if self._server is None:
            self._server = self.stack.enter_context(running_server("postgres18", durable=True))
        return self._server

    @server.setter
    def server(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            url = self.server.url(self.server.create_database())
            self._cluster = self.stack.enter_context(Cluster(url, self.folder, self.environment))
        return self._cluster

    @cluster.setter
    def cluster(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def start(self, controllers: int = 3, runners: int = 2) -> None:
        """Start them, and return when every brief verb has run once."""
        for _ in range(controllers):
            self.cluster.start_controller(wait=False)
        for controller in self.cluster.controllers:
            self.cluster.wait_ready(controller)
        for _ in range(runners):
            self.start_runner()
        self.wait_for_runs()

    def start_runner(self) -> Process:
        return self.cluster.start_runner(self.module, *self.beside)

    def wait_for_runs(self) -> None:
        """Until each verb that is due every second has begun once. The ticks before that are excused."""
        wanted = {verb for verb, period_s in self.bounds.periods_s.items() if period_s == 1}
        self.wait_until("the first runs", lambda: wanted <= {run.verb for run in self.runs()}, FIRST_RUNS_S)
        self.excuse(self.began_at, "the start")
        self.tell(f"{len(self.cluster.controllers)} controllers, {len(self.cluster.runners)} runners")

    # What happens

    def fault(self, name: str, what: str = "") -> None:
        """One of the faults that this row injects; the table counts them."""
        self.faults[name] += 1
        self.tell(f"FAULT {name}{': ' if what else ''}{what}")

    def pass_time(self, seconds: float) -> None:
        """How long a fault lasts, or nothing happens, is part of what is tried."""
        time.sleep(seconds)

    def excuse(self, began: float, why: str, *verbs: str, recovery_s: float = RECOVERY_S) -> None:
        """From `began` (epoch seconds) until some seconds from now, those verbs (none named: all) may be late."""
        self.bounds.excuses.append(Excuse(began, time.time() + recovery_s, why, frozenset(verbs)))

    def excuse_held(self, controller: Process, since: float, why: str, stuck_s: float) -> None:
        """Verbs with a run that the books call that controller's: for so long nobody else knows what becomes of it.

        To be called shortly after it was hit: when what PostgreSQL had heard of it is committed, and not yet adopted.
        """
        verbs = frozenset(asyncio.run(_held(self.cluster.database_url, controller.pid)))
        self.tell(f"it holds {', '.join(sorted(verbs)) or 'nothing'}")
        if verbs:
            self.bounds.excuses.append(Excuse(since, since + stuck_s, why, verbs))

    def expect(self, holds: bool, words: str) -> None:
        if not holds:
            self.broken.append(words)
            self.tell(f"PROBLEM {words}")

    def runner_died(self, runner: Process) -> float:
        """Tell the judge of a runner that was just killed: its runs ended now at the latest."""
        self._deaths.append(time.time())
        self._deaths_by_pid[runner.pid] = self._deaths[-1]
        return self._deaths[-1]

    def child_died(self, pid: int) -> None:
        """Tell the judge of a child that was just hit, and never goes on: the runs in it ended now at the latest."""
        self._child_deaths[pid] = time.time()

    def runner_was_away(self, since: float) -> None:
        """From then (epoch seconds) until now a runner stood still: what its children finished may be lost."""
        self._absences.append((since, time.time()))

    def freeze(self, process: Process) -> None:
        process.send(signal.SIGSTOP)

    def thaw(self, process: Process) -> None:
        process.send(signal.SIGCONT)

    # What is seen

    def runs(self) -> list[JournalRun]:
        return read_journal(self.journal)

    def pids(self) -> list[tuple[int, int]]:
        """(execution, process id of its child) of every run that began."""
        entries = journal_entries(self.journal)
        return [(entry["execution"], entry["pid"]) for entry in entries if entry["event"] == "start"]

    def going_on(self, verb: str) -> list[JournalRun]:
        """Of that verb, by its own word: those that noted within the last half second that they go on."""
        now = time.time()
        return [
            run for run in self.runs()
            if run.verb == verb and run.ended_at is None and now - (run.seen_at or run.started_at) < 0.5
        ]  # fmt: skip

    def wait_until(self, what: str, holds: Callable[[], bool], seconds: float) -> float:
        """Seconds that it took. Raises AssertionError, with the tails of all logs, when it doesn't come about."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > seconds:
                tails = "\n".join(each.tail(8) for each in self.cluster.controllers + self.cluster.runners)
                raise AssertionError(f"{what}: not within {seconds:g} s\n{tails}")
            time.sleep(POLL_S)  # a poll with a deadline: neither journal nor database can tell
        return time.monotonic() - began

    def judge(self, settle_s: float = SETTLE_S) -> Finding:
        """When everything that the row did is over."""
        known = Circumstances(
            self._deaths, self._absences, self.bounds.beside, self._deaths_by_pid, self._child_deaths,
        )  # fmt: skip
        return judge_when_settled(self.cluster.database_url, self.journal, self.bounds, known, settle_s)


async def _held(database_url: str, pid: int) -> list[str]:
    connection = await look(database_url)
    try:
        return [row["verb"] for row in await connection.fetch(HELD, pid)]
    finally:
        await connection.close()
