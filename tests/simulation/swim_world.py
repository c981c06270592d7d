"""A cluster of Swim machines with nodes, faults and their instants drawn from one seed.

    python -m tests.simulation.swim_world --seed 17          # what happened, the verdict, the transcript's digest
    python -m tests.simulation.swim_world --seeds 0-300      # a line for each that fails

First faults (safety must hold throughout), then everything heals and it must come to rest (liveness).
"""

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cronring.virtual.clock import MS, SECOND
from tests.simulation.network import Link
from tests.simulation.swim_checkers import Safety, disagreements, settle
from tests.simulation.swim_members import Members, Process

# After healing: everyone who lives is back in every roster within the first, and rosters equal the truth, the dead and
# the draining included, within the second. (Health may have gone bad meanwhile, so the dead take longer then.)
REUNITED_NS: Final = 10 * SECOND
AT_REST_NS: Final = 60 * SECOND

SMALL: Final = (3, 12)
LARGE: Final = (13, 200)


@dataclass(frozen=True, slots=True)
class Verdict:
    seed: int
    nodes: int
    violations: list[str]
    digest: str
    reunited_ns: int | None
    at_rest_ns: int | None
    false_deaths: int
    story: list[str] = field(repr=False)

    def lines(self) -> list[str]:
        reunited = "never" if self.reunited_ns is None else f"{self.reunited_ns / SECOND:.1f} s"
        at_rest = "never" if self.at_rest_ns is None else f"{self.at_rest_ns / SECOND:.1f} s"
        return [
            *self.violations,
            f"seed {self.seed}: {self.nodes} nodes, reunited {reunited}, at rest {at_rest}, "
            f"{self.false_deaths} false deaths, {len(self.violations)} violations",
            f"digest {self.digest}",
        ]


class World:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"{seed}/world")
        self.nodes = self._draw_nodes()
        loss = self.rng.choice((0.0, 0.0, 0.01, 0.05, 0.1, 0.2))
        delay_ms = self.rng.choice((1, 2, 10, 50))
        self.members = Members(str(seed), link=Link(delay_max_ns=delay_ms * MS, loss=loss))
        self.safety = Safety(self.members)
        self.members.tell(None, f"{self.nodes} nodes, loss {loss}, delay up to {delay_ms} ms")

    def run(self) -> Verdict:
        self._start_all()
        duration_ns = int(self.rng.uniform(10, 40 if self.nodes <= SMALL[1] else 15) * SECOND)
        self._inject_faults(self.members.clock.now_ns + duration_ns)
        reunited_ns, at_rest_ns = self._heal()
        violations = list(self.safety.violations)
        if reunited_ns is None or at_rest_ns is None:
            violations += [f"after healing: {problem}" for problem in disagreements(self.members)[:10]]
        return Verdict(
            seed=self.seed,
            nodes=self.nodes,
            violations=violations,
            digest=self.members.digest(),
            reunited_ns=reunited_ns,
            at_rest_ns=at_rest_ns,
            false_deaths=len(self.safety.false_deaths),
            story=self.members.story,
        )

    def _draw_nodes(self) -> int:
        if self.rng.random() < 0.985:
            return self.rng.randint(*SMALL)
        return int(LARGE[0] * (LARGE[1] / LARGE[0]) ** self.rng.random())

    def _start_all(self) -> None:
        """A few at a time, each told of those that were there before it."""
        for host in range(self.nodes):
            self.members.start(host)
            self.members.clock.run_for(int(self.rng.random() * 100 * MS))
        self.members.clock.run_for(5 * SECOND)

    def _inject_faults(self, until_ns: int) -> None:
        faults: list[Callable[[], None]] = [
            self._crash,
            self._crash_silently,
            self._restart,
            self._pause,
            self._partition,
            self._one_way,
            self._lossy,
            self._leave,
            self._drain,
            self._heal_network,
        ]
        clock = self.members.clock
        while clock.now_ns < until_ns:
            self.rng.choice(faults)()
            clock.run_for(int(self.rng.expovariate(1 / 2.0) * SECOND))

    def _heal(self) -> tuple[int | None, int | None]:
        """The network is well, all who were stopped go on. Nobody reads the table of controllers."""
        self.members.tell(None, "everything heals")
        self.members.network.heal()
        self.members.network.default = Link()
        for process in self.members.alive():
            if process not in self.members.running():
                self.members.resume(process)
        reunited_ns = settle(self.members, REUNITED_NS, strict=False)
        if reunited_ns is None:
            return None, None
        at_rest_ns = settle(self.members, AT_REST_NS)
        return reunited_ns, None if at_rest_ns is None else reunited_ns + at_rest_ns

    def _victim(self) -> Process | None:
        """Anybody, as long as somebody else stays."""
        running = self.members.running()
        return self.rng.choice(running) if len(running) > 2 else None

    def _crash(self) -> None:
        if (victim := self._victim()) is not None:
            self.members.crash(victim)

    def _crash_silently(self) -> None:
        if (victim := self._victim()) is not None:
            self.members.crash(victim, silent=True)

    def _restart(self) -> None:
        """A new process at the same address."""
        if (victim := self._victim()) is not None:
            self.members.crash(victim)
            host = int(victim.address.removeprefix("host").removesuffix(":7"))
            self.members.clock.run_for(int(self.rng.random() * 3 * SECOND))
            self.members.start(host)

    def _pause(self) -> None:
        if (victim := self._victim()) is not None:
            self.members.pause(victim)
            duration_ns = int(self.rng.choice((0.3, 1, 3, 10, 30)) * SECOND)
            self.members.clock.call_after(duration_ns, lambda: self._resume(victim))

    def _resume(self, process: Process) -> None:
        if process in self.members.alive() and process not in self.members.running():
            self.members.resume(process)

    def _partition(self) -> None:
        addresses = [process.address for process in self.members.alive()]
        self.rng.shuffle(addresses)
        cut = self.rng.randint(1, max(1, len(addresses) - 1))
        self.members.tell(None, f"partition {sorted(addresses[:cut])}")
        self.members.network.partition([addresses[:cut], addresses[cut:]])

    def _one_way(self) -> None:
        source, target = self.rng.sample([process.address for process in self.members.alive()], 2)
        self.members.tell(None, f"cut {source} -> {target}")
        self.members.network.cut(source, target)

    def _lossy(self) -> None:
        source = self.rng.choice(self.members.alive()).address
        loss = self.rng.choice((0.3, 0.5, 0.9))
        self.members.tell(None, f"{source} loses {loss} of what it sends")
        for process in self.members.alive():
            self.members.network.set_link(source, process.address, Link(loss=loss))

    def _leave(self) -> None:
        if self.rng.random() < 0.5 and (victim := self._victim()) is not None:
            self.members.leave(victim)

    def _drain(self) -> None:
        if self.rng.random() < 0.5 and (victim := self._victim()) is not None:
            self.members.drain(victim)

    def _heal_network(self) -> None:
        self.members.tell(None, "the network heals")
        self.members.network.heal()


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="run this one and tell its story")
    chosen.add_argument("--seeds", type=_seeds, metavar="FIRST-LAST", help="run these and tell which fail")
    arguments = parser.parse_args()
    failed = 0
    for seed in [arguments.seed] if arguments.seeds is None else arguments.seeds:
        verdict = World(seed).run()
        failed += bool(verdict.violations)
        if arguments.seeds is None:
            print("\n".join(verdict.story))
        if verdict.violations or arguments.seeds is None:
            print("\n".join(verdict.lines()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
