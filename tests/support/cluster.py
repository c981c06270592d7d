"""A real cluster for tests and benchmarks: controllers and runners as processes on loopback, each with its log."""

import contextlib
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from tests.support import programs
from tests.support.programs import Done

READY_S = 100.0
POLL_S = 0.02


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass
class Process:
    """One started process. `log` holds its stdout and stderr. `listen`: where a controller does, behind `grpc`.

    `wrapper`: the command that it was started by.
    """

    name: str
    popen: programs.Started
    log: Path
    grpc: str = ""
    http: str = ""
    listen: str = ""
    wrapper: tuple[str, ...] = ()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: int) -> None:
        """Nothing, to one that has ended."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """kill -9, and reap; what a wrapper (faketime) started dies with it, as it would not by itself."""
        started = self._started()
        self.popen.kill()
        for each in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self.popen.wait(timeout=READY_S)

    def _started(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children() if self.wrapper else []
        except psutil.NoSuchProcess:
            return []

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Cluster:
    """Start it in a `with`: whatever still runs at its end is killed.

    Raises AssertionError, with the tail of the process's log, when one dies or isn't ready within READY_S.
    """

    def __init__(self, database_url: str, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.database_url = database_url
        self.controllers_database_url = database_url  # theirs may be another way to the same
        self.folder = folder
        self.environment = os.environ | (environment or {})
        self.controllers: list[Process] = []
        self.runners: list[Process] = []
        self.cli_network = ""  # the network namespace of the CLI's calls
        self._started = 0

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.runners + self.controllers:
            if process.alive():
                process.send(signal.SIGCONT)
                process.kill()

    @property
    def addresses(self) -> str:
        return ",".join(controller.grpc for controller in self.controllers)

    def _start(self, name: str, *arguments: str, wrapper: tuple[str, ...] = ()) -> Process:
        self._started += 1
        log = self.folder / f"{self._started:02}-{name}.log"
        popen = programs.start(arguments, log, self.environment, self.folder, wrapper)
        return Process(name, popen, log, wrapper=wrapper)

    def migrate(self) -> None:
        process = self._start("migrate", "migrate", "--database-url", self.database_url)
        assert process.popen.wait(timeout=READY_S) == 0, process.tail()

    def start_controller(self, *extra: str, wait: bool = True, wrapper: tuple[str, ...] = ()) -> Process:
        """`wrapper`: a command that starts another, such as faketime."""
        grpc, http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        process = self._controller_at(grpc, http, *extra, wrapper=wrapper)
        self.controllers.append(process)
        if wait:
            self.wait_ready(process)
        return process

    def restart_controller(self, dead: Process) -> Process:
        """A new one in its place, at its addresses. Doesn't wait until it is ready."""
        advertise = dead.grpc if dead.listen else ""
        process = self._controller_at(dead.listen or dead.grpc, dead.http, wrapper=dead.wrapper, advertise=advertise)
        self.controllers[self.controllers.index(dead)] = process
        return process

    def start_controller_behind(self, listen: str, advertise: str, wrapper: tuple[str, ...] = ()) -> Process:
        """One that everybody reaches by another address than it listens on. Doesn't wait until it is ready."""
        process = self._controller_at(listen, f"127.0.0.1:{free_port()}", advertise=advertise, wrapper=wrapper)
        self.controllers.append(process)
        return process

    def _controller_at(
        self, grpc: str, http: str, *extra: str, wrapper: tuple[str, ...] = (), advertise: str = ""
    ) -> Process:
        if advertise:
            extra = (*extra, "--advertise", advertise)
        process = self._start(
            f"controller-{len(self.controllers) + 1}", "controller", "--database-url", self.controllers_database_url,
            "--grpc", grpc, "--http", http, *extra, wrapper=wrapper,
        )  # fmt: skip
        process.grpc, process.http, process.listen = advertise or grpc, http, grpc if advertise else ""
        return process

    def start_runner(self, *files: Path, extra: tuple[str, ...] = (), wrapper: tuple[str, ...] = ()) -> Process:
        process = self._start(
            f"runner-{len(self.runners) + 1}", "runner", *map(str, files), "--controllers", self.addresses, *extra,
            wrapper=wrapper,
        )  # fmt: skip
        self.runners.append(process)
        return process

    def cli(self, *arguments: str) -> Any:
        """Run a CLI command with `-o json` against the living controllers, and return what it printed."""
        return json.loads(self.shown(*arguments, "-o", "json"))

    def shown(self, *arguments: str) -> str:
        """The same, as people read it."""
        done = self.ask(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def ask(self, *arguments: str, more: Iterable[str] = (), token: str = "") -> Done:
        """A CLI command against the living controllers. `more`: arguments behind their addresses.

        `token`: in place of the cluster's own.
        """
        living = ",".join(controller.grpc for controller in self.controllers if controller.alive())
        environment = self.environment | ({"CRONRING_TOKEN": token} if token else {})
        return programs.run((*arguments, "--controllers", living, *more), environment, network=self.cli_network)

    def http(self, controller: Process, path: str) -> tuple[int, str]:
        """Status and body of its answer. Raises OSError when there is none within a second."""
        try:
            with urllib.request.urlopen(f"http://{controller.http}{path}", timeout=1) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def wait_ready(self, process: Process) -> None:
        """Until /readyz says so."""

        def ready() -> bool:
            assert process.alive(), f"{process.name} died:\n{process.tail()}"
            with contextlib.suppress(OSError):
                return self.http(process, "/readyz")[0] == 200
            return False

        deadline = time.monotonic() + READY_S
        while not ready():
            assert time.monotonic() < deadline, f"{process.name} is not ready after {READY_S} s:\n{process.tail()}"
            time.sleep(POLL_S)  # a poll with a deadline: a process has no other way to tell
