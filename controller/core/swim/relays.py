"""Probes that I make for others: the helper's side of a ping-req, with Lifeguard's nack."""

from dataclasses import dataclass
from typing import Final

CAPACITY: Final = 256


@dataclass(slots=True)
class Relay:
    """A ping of mine whose answer somebody else waits for."""

    requester_id: str
    requester_address: str
    sequence: int  # the requester's own
    nack_ns: int
    ends_ns: int
    nacked: bool = False


class Relays:
    """Relays by the sequence of my own ping. Beyond CAPACITY the oldest is forgotten, as if its packets were lost."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, Relay] = {}

    def add(self, sequence: int, relay: Relay) -> None:
        self._waiting[sequence] = relay
        if len(self._waiting) > CAPACITY:
            del self._waiting[next(iter(self._waiting))]

    def answered(self, sequence: int) -> Relay | None:
        """Whom to pass the ack on to, late or not; None when the ping was none of these."""
        return self._waiting.pop(sequence, None)

    def to_nack(self, now_ns: int) -> list[Relay]:
        """Requesters to be told that there is no answer so far. Forgets those whose probe is over."""
        for sequence in [sequence for sequence, relay in self._waiting.items() if relay.ends_ns <= now_ns]:
            del self._waiting[sequence]
        due = [relay for relay in self._waiting.values() if not relay.nacked and relay.nack_ns <= now_ns]
        for relay in due:
            relay.nacked = True
        return due

    def next_ns(self) -> int | None:
        return min(
            (relay.ends_ns if relay.nacked else relay.nack_ns for relay in self._waiting.values()),
            default=None,
        )

    def delay(self, by_ns: int) -> None:
        """I slept: see Probe.delay()."""
        for relay in self._waiting.values():
            relay.nack_ns += by_ns
            relay.ends_ns += by_ns
