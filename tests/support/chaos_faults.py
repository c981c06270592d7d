"""What goes wrong in a real cluster, drawn from a seed: each fault begins, and ends by itself some seconds later."""

import heapq
import itertools
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.chaos_links import Link
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer

IMPAIRED_MAX: Final = 2  # controllers at once, of three; runners, too
PAUSE_S: Final = (0.5, 5.0)  # between faults
Tell = Callable[[str], None]


@dataclass
class Site:
    """Where a controller is, whichever process it is at present."""

    controller: Process
    link: Link | None = None
    impaired: bool = False


@dataclass
class Host:
    """Of a runner. `files`: the modules it hosts."""

    runner: Process
    files: tuple[Path, ...]
    impaired: bool = False


class Chaos:
    """A killed part is replaced after a while, as by a supervisor. Without a server of its own, PostgreSQL stays.

    `deaths`: when runners were killed. `absences`: from when to when one stood still. Instants are time.time().
    """

    def __init__(
        self, cluster: Cluster, sites: list[Site], hosts: list[Host], seed: int, tell: Tell,
        server: PostgresServer | None = None,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._sites = sites
        self._hosts = hosts
        self._server = server
        self._server_away = False
        self._tell = tell
        self._random = random.Random(seed)
        self._ends: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = itertools.count()
        self.counts: dict[str, int] = {}
        self.deaths: list[float] = []
        self.deaths_by_pid: dict[int, float] = {}
        self.absences: list[tuple[float, float]] = []
        kinds: list[tuple[int, Callable[[], str | None]]] = [
            (4, self._kill_controller), (3, self._kill_runner), (3, self._stop_controller), (3, self._stop_runner),
        ]  # fmt: skip
        if any(site.link is not None for site in sites):
            kinds += [(3, self._break_link)]
        if server is not None:
            kinds += [(2, self._restart_database), (1, self._freeze_database)]
        self._kinds = [kind for weight, kind in kinds for _ in range(weight)]

    def run(self, seconds: float, watch: Callable[[], None] = lambda: None) -> None:
        """Raises whatever `watch` raises, which is called between the faults."""
        deadline = time.monotonic() + seconds
        strike_at = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            wake_at = min([deadline, strike_at, *(end[0] for end in self._ends[:1])])
            time.sleep(max(0.0, wake_at - time.monotonic()))  # the time between faults is part of the fault model
            self._end_due()
            watch()
            if time.monotonic() >= strike_at:
                self._strike()
                strike_at = time.monotonic() + self._random.uniform(*PAUSE_S)
        self.end()

    def end(self) -> None:
        """All of them, at once."""
        while self._ends:
            heapq.heappop(self._ends)[2]()
        self._tell("all faults are over")

    def _strike(self) -> None:
        kind = self._random.choice(self._kinds)
        told = kind()
        if told is not None:
            name = kind.__name__.strip("_")
            self.counts[name] = self.counts.get(name, 0) + 1
            self._tell(told)

    def _end_due(self) -> None:
        while self._ends and self._ends[0][0] <= time.monotonic():
            heapq.heappop(self._ends)[2]()

    def _after(self, low_s: float, high_s: float, action: Callable[[], None]) -> None:
        at = time.monotonic() + self._random.uniform(low_s, high_s)
        heapq.heappush(self._ends, (at, next(self._serial), action))

    def _site(self) -> Site | None:
        able = [site for site in self._sites if not site.impaired]
        return self._random.choice(able) if len(self._sites) - len(able) < IMPAIRED_MAX else None

    def _host(self) -> Host | None:
        able = [host for host in self._hosts if not host.impaired]
        impaired_max = min(IMPAIRED_MAX, len(self._hosts) - 1)
        return self._random.choice(able) if len(self._hosts) - len(able) < impaired_max else None

    def _kill_controller(self) -> str | None:
        site = self._site()
        if site is None:
            return None
        site.impaired = True
        site.controller.kill()

        def replace() -> None:
            site.controller = self._cluster.restart_controller(site.controller)
            site.impaired = False

        self._after(0.0, 6.0, replace)
        return f"kill -9 {site.controller.name}"

    def _kill_runner(self) -> str | None:
        host = self._host()
        if host is None:
            return None
        host.impaired = True
        host.runner.kill()
        self.deaths.append(time.time())
        self.deaths_by_pid[host.runner.pid] = self.deaths[-1]

        def replace() -> None:
            host.runner = self._cluster.start_runner(*host.files)
            host.impaired = False

        self._after(0.0, 6.0, replace)
        return f"kill -9 {host.runner.name}"

    def _stop_controller(self) -> str | None:
        site = self._site()
        if site is None:
            return None
        site.impaired = True
        site.controller.send(signal.SIGSTOP)

        def go_on() -> None:
            site.controller.send(signal.SIGCONT)
            site.impaired = False

        self._after(0.2, 12.0, go_on)
        return f"SIGSTOP {site.controller.name}"

    def _stop_runner(self) -> str | None:
        host = self._host()
        if host is None:
            return None
        host.impaired = True
        host.runner.send(signal.SIGSTOP)
        began = time.time()

        def go_on() -> None:
            host.runner.send(signal.SIGCONT)
            host.impaired = False
            self.absences.append((began, time.time()))

        self._after(0.2, 14.0, go_on)
        return f"SIGSTOP {host.runner.name}"

    def _break_link(self) -> str | None:
        site = self._site()
        if site is None or site.link is None:
            return None
        link, how = site.link, self._random.choice(("cut", "stalled"))
        site.impaired = True
        link.cut() if how == "cut" else link.stall()

        def heal() -> None:
            link.heal()
            site.impaired = False

        self._after(0.3, 10.0, heal)
        return f"the link to {site.controller.name} is {how}"

    def _restart_database(self) -> str | None:
        server = self._server
        if server is None or self._server_away:
            return None
        self._server_away = True
        crash = self._random.random() < 0.5
        server.kill() if crash else server.stop()

        def start() -> None:
            server.start()
            self._server_away = False

        self._after(0.0, 8.0, start)
        return "PostgreSQL crashes" if crash else "PostgreSQL is stopped"

    def _freeze_database(self) -> str | None:
        server = self._server
        if server is None or self._server_away:
            return None
        self._server_away = True
        server.freeze()

        def thaw() -> None:
            server.thaw()
            self._server_away = False

        self._after(0.2, 8.0, thaw)
        return "PostgreSQL stands still"
