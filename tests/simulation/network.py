"""A network that loses, delays, reorders and cuts, all of it drawn from one seeded generator.

    clock = VirtualClock()
    network = Network(clock, random.Random(7))
    network.listen("a:1", deliver=lambda source, payload: ..., refused=lambda target, payload: ...)
    network.send("a:1", "b:1", payload)      # arrives later, or never
    network.set_link("a:1", "b:1", Link(loss=0.3))
    network.partition([["a:1"], ["b:1", "c:1"]])
    network.heal()

Payloads are handed over as they are: they must be immutable. Nothing but send() draws from the generator, twice for
each packet whatever the settings, so that a link's settings never shift what other links draw.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from cronring.virtual.clock import MS, VirtualClock

Deliver = Callable[[str, Any], None]
Refused = Callable[[str, Any], None]


class Link(NamedTuple):
    """How one direction between two addresses behaves."""

    delay_min_ns: int = MS // 5
    delay_max_ns: int = 2 * MS
    loss: float = 0.0


class Drag:
    """A slow network: what it does to packets that mustn't be lost. Draws of its own, as streams do theirs.

    `delay_ns`: at most, one way. `loss`: of segments, each of which is sent again, later each time. `between`: whom it
    concerns; empty: everybody.
    """

    def __init__(self, rng: random.Random, delay_ns: int, loss: float, between: tuple[str, ...] = ()) -> None:
        self._rng = rng
        self._delay_ns = delay_ns
        self._loss = loss
        self._between = between

    def concerns(self, source: str, target: str) -> bool:
        return not self._between or source in self._between or target in self._between

    def extra_ns(self, source: str, target: str) -> int:
        if not self.concerns(source, target):
            return 0
        extra_ns, again_ns = self.packet_ns(), RETRANSMIT_NS
        while self.loses() and again_ns <= 16 * RETRANSMIT_NS:
            extra_ns += again_ns
            again_ns *= 2
        return extra_ns

    def packet_ns(self) -> int:
        return int(self._rng.uniform(0.5, 1) * self._delay_ns)

    def loses(self) -> bool:
        return self._rng.random() < self._loss


class Counts(NamedTuple):
    sent: int
    delivered: int


class _Endpoint(NamedTuple):
    deliver: Deliver
    refused: Refused | None


LAN: Final = Link()
RETRANSMIT_NS: Final = 200 * MS  # Linux' least, doubled each time


class Network:
    """Packets between addresses. Directions are apart: a->b may be lost while b->a is not."""

    def __init__(self, clock: VirtualClock, rng: random.Random, default: Link = LAN) -> None:
        self.default = default
        self._clock = clock
        self._rng = rng
        self._endpoints: dict[str, _Endpoint] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._sides: dict[str, int] = {}
        self.drag: Drag | None = None  # what slows streams
        self._sent: dict[str, int] = {}
        self._delivered: dict[str, int] = {}

    def listen(self, address: str, deliver: Deliver, refused: Refused | None = None) -> None:
        """`deliver(source, payload)` for each arrival; `refused(target, payload)` when nobody listens at the target."""
        self._endpoints[address] = _Endpoint(deliver, refused)

    def close(self, address: str) -> None:
        """Nobody listens there any more. What is on its way is refused on arrival."""
        self._endpoints.pop(address, None)

    def set_link(self, source: str, target: str, link: Link | None) -> None:
        """Settings of one direction; None: the default again."""
        if link is None:
            self._links.pop((source, target), None)
        else:
            self._links[source, target] = link

    def cut(self, source: str, target: str) -> None:
        """Lose everything in this direction, also what is on its way."""
        self._cuts[source, target] = None

    def mend(self, source: str, target: str) -> None:
        self._cuts.pop((source, target), None)

    def extra_ns(self, source: str, target: str) -> int:
        """How much longer than on a LAN a segment of a stream is on its way."""
        return 0 if self.drag is None else self.drag.extra_ns(source, target)

    def partition(self, sides: Sequence[Iterable[str]]) -> None:
        """Only addresses of the same side reach each other; addresses on no side form one of their own."""
        self._sides = {address: index for index, side in enumerate(sides, 1) for address in side}

    def heal(self) -> None:
        """No cuts, no partition, no link settings of their own."""
        self._cuts.clear()
        self._sides.clear()
        self._links.clear()

    def reaches(self, source: str, target: str) -> bool:
        """Neither cut nor partitioned (loss aside)."""
        return (source, target) not in self._cuts and self._sides.get(source, 0) == self._sides.get(target, 0)

    def send(self, source: str, target: str, payload: Any) -> None:
        self._sent[source] = self._sent.get(source, 0) + 1
        link = self._links.get((source, target), self.default)
        lost = self._rng.random() < link.loss
        delay = link.delay_min_ns + int(self._rng.random() * (link.delay_max_ns - link.delay_min_ns))
        if self.drag is not None and self.drag.concerns(source, target):
            delay += self.drag.packet_ns()
            lost = lost or self.drag.loses()
        if not lost:
            self._clock.call_after(delay, lambda: self._arrive(source, target, payload))

    def counts(self, address: str) -> Counts:
        """Packets that this address has sent, and that were delivered to it."""
        return Counts(self._sent.get(address, 0), self._delivered.get(address, 0))

    def _arrive(self, source: str, target: str, payload: Any) -> None:
        if not self.reaches(source, target):
            return
        endpoint = self._endpoints.get(target)
        if endpoint is not None:
            self._delivered[target] = self._delivered.get(target, 0) + 1
            endpoint.deliver(source, payload)
            return
        sender = self._endpoints.get(source)
        if sender is not None and sender.refused is not None:
            sender.refused(target, payload)
