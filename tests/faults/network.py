"""A stage of hosts: what a row on networks that fail needs beside tests/faults/stage.py."""

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tests.faults.bounds import Excuse
from tests.faults.stage import PERIODS_S, Stage
from tests.support import hosts
from tests.support.hosted import DATABASE, HostedCluster, agreed, hosted

CONVERGED_S: Final = 10.0  # both sides agree, and ticks are on time again, so soon after a fault has ended
# What a controller claimed whose answer it never got is adopted when its lease is over, 5 s after its last renewal.
HANDOVER_S: Final = 8.0
# A runner takes a silent controller for lost after 5 s, and asks another to take over two to three beats later.
TAKE_OVER_S: Final = 10.0
EACH_SECOND: Final = frozenset(verb for verb, period_s in PERIODS_S.items() if period_s == 1)
LONG_FAULT_S: Final = 30.0
LONG_TRIAL_S: Final = 60.0
CONTROLLERS: Final = ("c1", "c2", "c3")
RUNNERS: Final = ("r1", "r2")


def needs() -> str:
    return hosts.why_not() or ""


class Network:
    """Three controllers, two runners and PostgreSQL, each on a host of its own, under the steady load."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.draw = random.Random(seed)
        self.hosts, stage.server = stage.stack.enter_context(hosted(len(CONTROLLERS), len(RUNNERS), seed))
        self.cluster = HostedCluster(self.hosts, stage.server, stage.folder, stage.environment)
        stage.cluster = stage.stack.enter_context(self.cluster)
        self._worst: dict[str, float] = {}
        self._dropped = 0

    def start(self) -> None:
        self.stage.start(len(CONTROLLERS), len(RUNNERS))
        self._wait_until_agreed()

    def rounds(self) -> Iterator[None]:
        """Start, and go on as long as the row does."""
        self.start()
        deadline = time.monotonic() + self.stage.seconds
        while time.monotonic() < deadline:
            yield
        self.note_dropped()

    # Faults

    def pass_time(self, at_least_s: float) -> None:
        """How long a fault lasts: so long, and a part of a second; in long trials sometimes much longer.

        By then every connection has waited so long for an answer that it may not notice soon that there is one.
        """
        lasts_s = self.draw.choice((at_least_s, LONG_FAULT_S)) if self.stage.seconds > LONG_TRIAL_S else at_least_s
        self.stage.pass_time(lasts_s + self.draw.random())

    def cut(self, first: str | Iterable[str], second: str | Iterable[str], *, one_way: bool = False) -> float:
        """Without a word. Returns since when (epoch seconds)."""
        way = "->" if one_way else "|"
        self.stage.fault("one way cut" if one_way else "cut", f"{_words(first)} {way} {_words(second)}")
        self.hosts.cut(first, second, one_way=one_way)
        return time.time()

    def link_down(self, name: str) -> float:
        self.stage.fault("link down", name)
        self.hosts.link_down(name)
        return time.time()

    def worsen(self, first: Iterable[str], second: Iterable[str], weather: hosts.Weather, what: str) -> float:
        self.stage.fault(what, f"{_words(first)} | {_words(second)}")
        self.hosts.worsen(first, second, weather)
        return time.time()

    def excuse(self, began: float, ended: float, why: str, *verbs: str) -> None:
        """Exactly from then to then (epoch seconds)."""
        self.stage.bounds.excuses.append(Excuse(began, ended, why, frozenset(verbs)))

    # Healing

    def heal(self, links_up: Iterable[str] = ()) -> float:
        """End all faults, and expect everybody to agree, and ticks to be on time, within ten seconds.

        Returns when the faults ended (epoch seconds).
        """
        for name in links_up:
            self.hosts.link_up(name)
        self.hosts.heal()
        healed = time.time()
        self._note("agreed", self._wait_until_agreed())
        self._wait_until_on_time(healed)
        return healed

    def _wait_until_agreed(self) -> float:
        took_s = self._try("one ring, and everybody with a lease", self._agreed, CONVERGED_S)
        self.stage.tell(f"all agree after {took_s:.1f} s")
        return took_s

    def _agreed(self) -> bool:
        with contextlib.suppress(OSError):
            leased = all(self.cluster.figure(each, "cronring_lease_valid") for each in self.cluster.controllers)
            return leased and agreed(self.cluster.views())
        return False

    def _wait_until_on_time(self, healed: float) -> None:
        """Until every verb that is due each second has begun some tick since in time."""
        limit_s, first = self.stage.bounds.late_s, int(healed) + 1

        def in_time() -> int:
            begun: dict[float, set[str]] = {}
            for run in self.stage.runs():
                if run.tick >= first and run.started_at - run.tick <= limit_s:
                    begun.setdefault(run.tick, set()).add(run.verb)
            return int(min((tick for tick, verbs in begun.items() if verbs >= EACH_SECOND), default=0))

        self._try("ticks on time", lambda: in_time() > 0, CONVERGED_S + limit_s)
        tick = in_time()
        self.stage.expect(0 < tick <= healed + CONVERGED_S, f"no tick on time within {CONVERGED_S:g} s of healing")
        self._note("on time", max(0.0, tick - healed))

    def _try(self, what: str, holds: Callable[[], bool], seconds: float) -> float:
        began = time.monotonic()
        with contextlib.suppress(AssertionError):
            return self.stage.wait_until(what, holds, seconds)
        self.stage.expect(False, f"{what}: not within {seconds:g} s of healing; {self.cluster.views()}")
        return time.monotonic() - began

    def _note(self, what: str, seconds: float) -> None:
        self._worst[what] = max(self._worst.get(what, 0.0), seconds)
        self.stage.measured[f"{what} after"] = f"{self._worst[what]:.1f} s"

    # What is seen

    def dropped(self) -> int:
        """Frames so far that didn't come to where they were meant to."""
        names = (*CONTROLLERS, *RUNNERS, DATABASE)
        return sum(self.hosts.frames(a, b).dropped for a in names for b in names if a != b)

    def note_dropped(self) -> None:
        """A fault that dropped nothing was none."""
        dropped = self.dropped()
        self.stage.expect(dropped > 0, "no frame was dropped")
        self.stage.measured["frames dropped:"] = f"{dropped:,}"

    def ring_changes(self) -> dict[str, int]:
        """How often the ring has changed for each controller that can be asked, by the name of its host."""
        seen = {}
        for name, controller in zip(CONTROLLERS, self.cluster.controllers, strict=True):
            with contextlib.suppress(OSError):
                seen[name] = int(self.cluster.figure(controller, "cronring_node_ring_changes_total"))
        return seen


def _words(names: str | Iterable[str]) -> str:
    return names if isinstance(names, str) else "+".join(names)
