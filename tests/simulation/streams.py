"""Streams between runners and controllers: in order, and either whole or broken, as gRPC's are over TCP."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from cronring.virtual.clock import MS, VirtualClock
from tests.simulation.network import Network

DETECTION_NS = 3_000 * MS  # within this, an end notices that the other is out of reach


class End:
    """One end: what to do with what arrives, and when the stream breaks."""

    def __init__(self, address: str, receive: Callable[[Any], None], broken: Callable[[], None]) -> None:
        self.address = address
        self.receive = receive
        self.broken = broken
        self.open = True
        self.last_arrival_ns = 0


class Stream:
    """Two ends. A message that can't get through breaks the stream, which each end notices in its own time."""

    def __init__(self, clock: VirtualClock, network: Network, rng: random.Random, left: End, right: End) -> None:
        self._clock = clock
        self._network = network
        self._rng = rng
        self._ends = {left.address: left, right.address: right}
        self._other = {left.address: right, right.address: left}
        self._dead = False

    def send(self, source: str, message: Any) -> None:
        """Deliver to the other end, after everything sent before."""
        if self._dead or not self._ends[source].open:
            return
        target = self._other[source]
        at_ns = self._clock.now_ns + int((0.05 + self._rng.random() ** 4 * 3) * MS)
        at_ns += self._network.extra_ns(source, target.address)
        target.last_arrival_ns = max(at_ns, target.last_arrival_ns)
        self._clock.call_at(target.last_arrival_ns, lambda: self._arrive(source, target, message))

    def _arrive(self, source: str, target: End, message: Any) -> None:
        if self._dead:
            return
        if not self._network.reaches(source, target.address):
            self.break_off()
        elif target.open:
            target.receive(message)

    def break_off(self) -> None:
        """Nothing passes any more."""
        if self._dead:
            return
        self._dead = True
        for end in self._ends.values():
            self._clock.call_after(int(self._rng.random() * DETECTION_NS), partial(self._notice, end))

    def close(self, source: str) -> None:
        """This end's process is gone: the other end is told by its kernel at once, if it can be reached."""
        self._ends[source].open = False
        target = self._other[source]
        if self._dead:
            return
        self._dead = True
        told = self._network.reaches(source, target.address)
        delay_ns = int(self._rng.random() * (2 * MS if told else DETECTION_NS))
        self._clock.call_after(max(delay_ns, target.last_arrival_ns - self._clock.now_ns), lambda: self._notice(target))

    def _notice(self, end: End) -> None:
        if end.open:
            end.open = False
            end.broken()
