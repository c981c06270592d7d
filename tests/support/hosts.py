"""Several hosts on one machine: network namespaces behind a switch of our own, whose cables fail as they are told to.

    with Hosts(["c1", "c2", "db"], seed=7) as hosts:
        subprocess.Popen([*hosts.enter("c1"), "some", "program"])       # it lives on c1, at hosts.address("c1")
        hosts.cut("c1", "db")                    # nothing passes, without a word, either way
        hosts.cut("c1", "c2", one_way=True)      # c2 hears nothing of c1
        hosts.worsen(["c1"], ["c2"], Weather(loss=0.3, delay_ms=500))
        hosts.link_down("db"), hosts.link_up("db")
        hosts.heal()

Frames that are cut are gone without a word, as behind a router that has failed: every host knows the hardware addresses
of all others, so that no failing ARP tells programs that a neighbour is away. `link_down` is the other kind: the host
itself knows. Namespaces carry the test's pid in their names; those of dead tests are removed by whoever comes next.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import switch

NETWORK = "10.77.0"
STARTED = 10.0
_serials = count(1)


@dataclass(frozen=True)
class Weather:
    """Of a way from host to host: the share of frames that are lost, and how much longer the others take."""

    loss: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0


CALM = Weather()
CUT = Weather(loss=1.0)


@dataclass(frozen=True)
class Frames:
    """Of one way, since the beginning."""

    passed: int
    dropped: int


def why_not() -> str | None:
    """What this machine lacks for hosts of one's own; None: nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    try:
        done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no `ip` (Debian: iproute2)"
    return None if done.returncode == 0 else f"`ip netns list`: {done.stderr.strip()}"


class Hosts:
    """Hosts by name, on a network of their own. Use it in a `with`; what still runs on them at its end is killed."""

    def __init__(self, names: Sequence[str], seed: int = 0) -> None:
        self.names = tuple(names)
        self._seed = seed
        self._prefix = f"cronring-{os.getpid()}-{next(_serials)}"
        self._switch: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        _remove_stale()
        try:
            for name in self.names:
                _ip("netns", "add", self.namespace(name))
            self._start_switch()
            for name in self.names:
                self._set_up(name)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def address(self, name: str) -> str:
        """Its IPv4 address."""
        return f"{NETWORK}.{self.names.index(name) + 1}"

    def enter(self, name: str) -> tuple[str, ...]:
        """What to put before a command, to have it run on that host. It becomes that command's process."""
        return ("ip", "netns", "exec", self.namespace(name))

    def connect(self, name: str, address: str, port: int, timeout_s: float = 1.0) -> socket.socket:
        """A connection from that host. Raises OSError."""
        made: list[socket.socket | OSError] = []

        def make() -> None:  # in a thread: its network is its own, and ends with it
            try:
                switch.enter_namespace(switch.NAMESPACES / self.namespace(name))
                made.append(socket.create_connection((address, port), timeout=timeout_s))
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    # What fails

    def cut(self, first: str | Iterable[str], second: str | Iterable[str], *, one_way: bool = False) -> None:
        """Nothing passes between them any more; `one_way`: nothing from the first to the second."""
        self.worsen(first, second, CUT, one_way=one_way)

    def worsen(
        self, first: str | Iterable[str], second: str | Iterable[str], weather: Weather, *, one_way: bool = False
    ) -> None:
        """Between each of the first and each of the second, both ways unless `one_way`; in force on return."""
        ways = [(self._number(a), self._number(b)) for a in _names(first) for b in _names(second) if a != b]
        if not one_way:
            ways += [(b, a) for a, b in ways]
        self._order(ways=ways, loss=weather.loss, delay_ms=weather.delay_ms, jitter_ms=weather.jitter_ms)

    def heal(self) -> None:
        """Every way is as in the beginning; frames that were under way still come late. Interfaces stay as they are."""
        self.worsen(self.names, self.names, CALM)

    def link_down(self, name: str) -> None:
        """Its cable is out: it knows of it, and has no way to anybody."""
        _ip("-n", self.namespace(name), "link", "set", "dev", "eth0", "down")

    def link_up(self, name: str) -> None:
        _ip("-n", self.namespace(name), "link", "set", "dev", "eth0", "up")
        self._introduce(name)  # an interface that is down forgets whom it knew

    def frames(self, source: str, target: str) -> Frames:
        """What became of frames on that way; those under way don't count yet."""
        counts = self._order(count=True)
        a, b = self._number(source), self._number(target)
        return Frames(counts["passed"][a][b], counts["dropped"][a][b])

    # Machinery

    def _number(self, name: str) -> int:
        return self.names.index(name)

    def _start_switch(self) -> None:
        namespaces = [self.namespace(name) for name in self.names]
        self._switch = subprocess.Popen(
            [sys.executable, switch.__file__, str(self._seed), *namespaces],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._answer()

    def _order(self, **order: object) -> dict[str, Any]:
        assert self._switch is not None, "use Hosts in a `with`"
        assert self._switch.stdin is not None, "made with a pipe"
        self._switch.stdin.write(json.dumps(order) + "\n")
        self._switch.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._switch is not None, "use Hosts in a `with`"
        assert self._switch.stdout is not None, "made with a pipe"
        line = self._switch.stdout.readline()
        assert line, f"the switch has ended with {self._switch.wait(timeout=STARTED)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _set_up(self, name: str) -> None:
        number = self._number(name)
        _ip_batch(
            self.namespace(name),
            "link set dev lo up",
            f"link set dev eth0 address {_hardware(number)}",
            f"addr add {self.address(name)}/24 dev eth0",
            "link set dev eth0 up",
        )
        self._introduce(name)

    def _introduce(self, name: str) -> None:
        _ip_batch(self.namespace(name), *(
            f"neigh replace {self.address(other)} lladdr {_hardware(self._number(other))} dev eth0 nud permanent"
            for other in self.names if other != name
        ))  # fmt: skip

    def _remove(self) -> None:
        for name in self.names:
            _remove_namespace(self.namespace(name))
        if self._switch is not None:
            self._switch.communicate(timeout=STARTED)  # closes its stdin, which ends it


def _names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _hardware(number: int) -> str:
    return (switch.PREFIX + bytes([number])).hex(":")


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def _ip_batch(namespace: str, *lines: str) -> None:
    done = subprocess.run(
        ["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines) + "\n",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{namespace}: {done.stderr}"


def _remove_stale() -> None:
    """Of tests that were killed."""
    for path in switch.NAMESPACES.glob("cronring-*-*-*"):
        pid = path.name.split("-")[1]
        if not Path("/proc", pid).exists():
            _remove_namespace(path.name)


def _remove_namespace(namespace: str) -> None:
    if not (switch.NAMESPACES / namespace).exists():
        return
    for pid in _ip("netns", "pids", namespace).split():
        subprocess.run(["kill", "-KILL", pid], check=False)
    _ip("netns", "del", namespace)
