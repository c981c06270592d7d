"""The processes that dev starts: each in a session of its own, with a log, and gone when dev is."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cronring.cli.dev.private import append_privately

TAIL_LINES: Final = 25


@dataclass(slots=True)
class DevProcess:
    """A process that was started. `stopping`: dev itself asked it to end."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    grpc_address: str = ""
    http_address: str = ""
    started_ns: int = field(default_factory=time.monotonic_ns)
    stopping: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    @property
    def end(self) -> str:
        """How it ended, in words."""
        code = self.process.returncode
        if code is None:
            return "still there"
        if code >= 0:
            return f"exit code {code}"
        return f"killed by {signal.Signals(-code).name}"

    def tail(self) -> str:
        """The last lines of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
        return ""


class Processes:
    """Starts and stops them. `on_exit` is called in the event loop once one has ended and been reaped."""

    def __init__(self, logs: Path, environment: Mapping[str, str], on_exit: Callable[[DevProcess], None]) -> None:
        self._logs = logs
        self._environment = dict(environment)
        self._on_exit = on_exit
        self._watchers: set[asyncio.Task[None]] = set()
        self.children: list[DevProcess] = []

    async def start(
        self, name: str, arguments: list[str], grpc_address: str = "", http_address: str = "",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> DevProcess:  # fmt: skip
        """`cronring ARGUMENTS`, with --stop-on-eof over a pipe that only this process holds. `environment`: its own."""
        log = self._logs / f"{name}.log"
        with append_privately(log) as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "cronring.cli.main", *arguments, "--stop-on-eof",
                stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output,
                env={**self._environment, **environment}, start_new_session=True,
            )  # fmt: skip
        child = DevProcess(name, process, log, grpc_address, http_address)
        self.children.append(child)
        watcher = asyncio.create_task(self._watch(child))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return child

    async def _watch(self, child: DevProcess) -> None:
        await child.process.wait()
        self._on_exit(child)

    async def stop(self, children: list[DevProcess], grace_s: float) -> None:
        """SIGTERM to all, and SIGKILL to those that are still there after `grace_s`."""
        running = [child for child in children if child.alive]
        for child in running:
            child.stopping = True
            with contextlib.suppress(ProcessLookupError):
                # A process that was paused (SIGSTOP) must wake up to end.
                os.kill(child.pid, signal.SIGCONT)
                os.kill(child.pid, signal.SIGTERM)
        waits = [asyncio.create_task(child.process.wait()) for child in running]
        if not waits:
            return
        await asyncio.wait(waits, timeout=grace_s)
        for child in running:
            if child.alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
        await asyncio.wait(waits)


def free_addresses(ports: Sequence[int]) -> list[str]:
    """Loopback addresses where nothing listens, on these ports where they are free; 0 is any port.

    Held together while choosing, so that none comes twice.
    """
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in ports]
        for listener, port in zip(listeners, ports, strict=True):
            # What a server has left behind (TIME_WAIT) is no listener.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                listener.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
