"""The processes of one `cronring dev`: who is started with what, and what happens when one dies."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cronring.cli.console_link import login_link
from cronring.cli.dev.happenings import Happening, ProcessEnded, ProcessStarted, StartProgress
from cronring.cli.dev.private import make_private
from cronring.cli.dev.processes import DevProcess, Processes, free_addresses
from cronring.cli.dev.state import DevState
from cronring.cli.dev.trust import DevTrust
from cronring.cli.running_dev import DevHold, FixedPorts
from cronring.client.running_dev import DevTold
from cronring.trust.holding import CA_KEY_FILE
from cronring.trust.names import CA, DEV_PARENT, INSECURE, SERVER_NAME, without_secrets

GRPC_PORT: Final = 7400  # of the first controller; the others have the next ones
HTTP_PORT: Final = 7480
PEER_PORT: Final = 7500
DRAIN_S: Final = 1.0
LINK_S: Final = 600.0  # how long a link to log in lasts
QUICK_DEATH_S: Final = 3.0
QUICK_DEATHS_MAX: Final = 3
# What is meant for another cluster.
_NOT_THEIRS: Final = frozenset(
    {INSECURE, CA, SERVER_NAME, "CRONRING_CERTS", "CRONRING_CLUSTER", "CRONRING_SECRETS_COMMAND"}
)


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What to start."""

    files: tuple[Path, ...]
    controllers: int
    python: str | None
    namespace: str


class LocalCluster:
    """Controllers and one runner. Controllers that die stay dead, so that one can watch; the runner is replaced.

    `database`: where it is, as the environment of controllers says it. `trust`: who everybody is.
    """

    def __init__(
        self,
        plan: StartPlan,
        state: DevState,
        folder: Path,
        database: dict[str, str],
        trust: DevTrust,
        tell: Callable[[Happening], None],
    ) -> None:
        self._trust = trust
        self._plan = plan
        self._state = state
        self._tell = tell
        logs = folder / "logs"
        make_private(logs)
        # Its controllers are marked: `cronring drill kill-owner --kill` kills no other process. For that they stay open
        # to their user, so this names no secret, but a file that has one.
        self._of_controllers = {**database, DEV_PARENT: str(os.getpid())}
        environment = {name: value for name, value in without_secrets().items() if name not in _NOT_THEIRS}
        self._processes = Processes(logs, environment, self._on_exit)
        # The same ones each time, so that commands can be repeated: but for one dev of several.
        self._context, self._ports = DevHold(), FixedPorts()
        fixed = self._context.take() and self._ports.take()
        kinds, count = (GRPC_PORT, HTTP_PORT, PEER_PORT), plan.controllers
        wanted = [port + index if fixed else 0 for port in kinds for index in range(count)]
        addresses = free_addresses(wanted)
        self.grpc_addresses, self._http_addresses = addresses[:count], addresses[count : 2 * count]
        self._peer_addresses = addresses[2 * count :]
        taken = [port for port, address in zip(wanted, addresses, strict=True) if not address.endswith(f":{port}")]
        if not self._context.first:
            tell(
                StartProgress(
                    "another cronring dev runs: this one is on other ports, and commands need its --controllers"
                )
            )
        elif not fixed:
            tell(StartProgress("another user's cronring dev has the usual ports: this one is on others"))
        elif taken:
            tell(StartProgress(f"ports {', '.join(map(str, taken))} are taken: others in their place"))
        self._restarts: set[asyncio.Task[None]] = set()
        self._quick_deaths = 0
        self.hosted = False  # the modules, by a runner; before, any death is a quick one, however slow its import was
        self.on_controller_death: Callable[[], None] = lambda: None
        self.failed = asyncio.Event()  # set when there is nothing left to watch

    async def start_controllers(self) -> None:
        addresses = zip(self.grpc_addresses, self._http_addresses, self._peer_addresses, strict=True)
        for certs, (grpc, http, peer) in zip(self._trust.controllers, addresses, strict=True):
            name = certs.name
            arguments = ["controller", "--certs", str(certs), "--grpc", grpc, "--peer", peer]
            arguments += ["--http", http, "--plain-http"]  # docs/decisions/0114
            arguments += ["--ca-key", str(self._trust.ca.with_name(CA_KEY_FILE)), "--drain-timeout", f"{DRAIN_S}"]
            arguments += ["--secrets-key", str(self._trust.secrets_key)]
            child = await self._processes.start(name, arguments, grpc, http, self._of_controllers)
            self._state.controllers.append(child)
            self._tell(ProcessStarted(name, child.pid, grpc, http))

    async def open_to_others(self) -> None:
        """From now on commands on other terminals find it by themselves."""
        self._context.tell(DevTold(tuple(self.grpc_addresses), str(self._trust.ca), str(self._trust.token_file)))
        self._state.found_by_commands = self._context.first
        console = f"http://{self._http_addresses[0]}"
        link = await asyncio.to_thread(login_link, console, self._trust.token_file.read_text().strip(), None)
        self._tell(StartProgress("look at it in a browser by this link, once within ten minutes:"))
        self._tell(StartProgress(link.url))
        self._tell(StartProgress("and later by: cronring console"))
        self._state.console_link = link.url
        asyncio.get_running_loop().call_later(LINK_S, self._forget_link)

    def _forget_link(self) -> None:
        self._state.console_link = ""

    async def start_runner(self) -> None:
        name = f"runner-{len(self._state.runners) + 1}"
        arguments = ["runner", *map(str, self._plan.files), "--controllers", ",".join(self._peer_addresses)]
        arguments += ["--drain-timeout", f"{DRAIN_S}", "--namespace", self._plan.namespace]
        arguments += ["--certs", str(self._trust.runner)]
        if self._plan.python is not None:
            arguments += ["--python", self._plan.python]
        child = await self._processes.start(name, arguments)
        self._state.runners.append(child)
        self._tell(ProcessStarted(name, child.pid, "", ""))

    def _on_exit(self, child: DevProcess) -> None:
        if child.stopping:
            return
        if child in self._state.controllers:
            self._controller_died(child)
        else:
            self._runner_died(child)

    def _controller_died(self, child: DevProcess) -> None:
        left = sum(1 for each in self._state.controllers if each.alive)
        step = f"{left} left, the ring heals" if left else "none is left"
        self._tell(ProcessEnded(child.name, child.pid, child.end, step))
        self.on_controller_death()
        if not left:
            self.failed.set()

    def _runner_died(self, child: DevProcess) -> None:
        quick = not self.hosted or time.monotonic_ns() - child.started_ns < QUICK_DEATH_S * 1e9
        self._quick_deaths = self._quick_deaths + 1 if quick else 0
        if self._quick_deaths >= QUICK_DEATHS_MAX:
            self._tell(ProcessEnded(child.name, child.pid, child.end, "it keeps dying; not started again"))
            self.failed.set()
            return
        self._tell(ProcessEnded(child.name, child.pid, child.end, "a new one starts"))
        restart = asyncio.create_task(self.start_runner())
        self._restarts.add(restart)
        restart.add_done_callback(self._restarts.discard)

    async def stop_runners(self, grace_s: float) -> None:
        for restart in self._restarts:
            restart.cancel()
        await self._processes.stop(self._state.runners, grace_s)

    async def stop_controllers(self, grace_s: float) -> None:
        self._context.release()
        await self._processes.stop(self._state.controllers, grace_s)
        self._ports.release()

    def dead_log(self) -> str:
        """The last lines of the logs of those that died by themselves."""
        dead = [child for child in self._processes.children if not child.alive and not child.stopping]
        return "\n".join(f"--- {child.name}: {child.end}\n{child.tail()}" for child in dead[-2:])

    def log_names(self) -> str:
        return "\n".join(str(child.log) for child in self._processes.children)
