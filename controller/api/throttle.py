"""What one caller may take of a controller: calls a second, and streams at once. docs/decisions/0074

A known caller is limited as a principal, an unknown one by the host that it calls from. Each controller counts alone.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Final, NamedTuple

from cronring.controller.core.rates import Buckets, Rate
from cronring.controller.errors import Throttled, TooManyStreams
from cronring.schema.duration import measured

KEYS_MAX: Final = 10_000  # buckets of a kind; one has some 200 bytes


class Allowances(NamedTuple):
    """What each of them may take. Those without a field in ProcessConfig are the same everywhere."""

    calls: Rate = Rate(100, 500)  # of a token, or a user
    streams: int = 100  # of one of these, or of a host
    # Calls from one host without a valid token. Each may cost a statement.
    strangers: Rate = Rate(10, 100)
    # The same for all hosts together, so that many hosts can't overload PostgreSQL either.
    lookups: Rate = Rate(200, 400)
    # For each certificate and host. A grant may have hundreds of runners on one host. After a fault, all of them come
    # back at once, and have 8 s for that. More connections than this are not our runners.
    members: Rate = Rate(50, 500)
    member_streams: int = 1_000


class Throttle:
    """Counts what was let in. `now_ns`: a monotonic clock."""

    def __init__(self, allowances: Allowances, now_ns: Callable[[], int]) -> None:
        self._allowances = allowances
        self._now_ns = now_ns
        self._calls = Buckets(allowances.calls, KEYS_MAX)
        self._hosts = Buckets(allowances.strangers, KEYS_MAX)
        self._lookups = Buckets(allowances.lookups, 1)
        self._members = Buckets(allowances.members, KEYS_MAX)
        self._streams: Counter[Hashable] = Counter()

    def call(self, who: str) -> None:
        """Count a call of a known caller. Raises Throttled."""
        _take(self._calls, who, self._now_ns(), f"{who} makes too many calls to this controller (--call-rate)")

    def member(self, certificate: bytes, host: str) -> None:
        """Before the grant of a runner is looked up. Raises Throttled."""
        words = f"runners at {host} connect too often by this certificate"
        _take(self._members, (certificate, host), self._now_ns(), words)

    def stranger(self, host: str, what: str = "") -> None:
        """Count a call without proof of who makes it. `what`: its kind. Raises Throttled."""
        words = f"{host} makes too many calls without a token that is known here"
        _take(self._hosts, (what, host), self._now_ns(), words)

    def lookup(self, host: str) -> None:
        """Before a token is looked up that was never good here. Raises Throttled."""
        self.stranger(host)
        _take(self._lookups, "", self._now_ns(), "too many tokens that are not known here are tried from everywhere")

    def found(self, host: str) -> None:
        """The token was good, so the caller is no stranger: give back what `lookup` has taken."""
        self._hosts.give_back(("", host))
        self._lookups.give_back("")

    @contextlib.contextmanager
    def stream(self, key: Hashable, words: str, *, of_member: bool) -> Iterator[None]:
        """Around an open stream. `words`: whose stream it is. Raises TooManyStreams."""
        most = self._allowances.member_streams if of_member else self._allowances.streams
        if self._streams[key] >= most:
            raise TooManyStreams(
                f"of streams {words} has {most} open at this controller, and may have no more; close some"
            )
        self._streams[key] += 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]

    def gauges(self) -> dict[str, float]:
        """By the names of their metrics."""
        return {
            "callers_counted": len(self._calls) + len(self._hosts) + len(self._members),
            "caller_streams": self._streams.total(),
        }


def _take(buckets: Buckets, key: Hashable, now_ns: int, words: str) -> None:
    wait_ns = buckets.take(key, now_ns)
    if wait_ns:
        rate = buckets.rate
        allowed = f"{rate.per_s} a second are allowed, and {rate.burst} at once"
        raise Throttled(f"{words}: {allowed}; come again in {measured(max(wait_ns / 1e6, 1))}", wait_ns / 1e9)
