"""The two clocks of a virtual cluster: PostgreSQL's, which ticks go by, and the machines' monotonic one.

They go together while something happens that takes its time: an outage, a recovery, a failover. While nothing does,
PostgreSQL's clock *leaps* to whatever is due next, and the monotonic one stands still. So it is on a machine that is
suspended and resumed. So leases, beats and probes, which count monotonic time, cost nothing between ticks.
"""

from cronring.virtual.clock import Action, Timer, VirtualClock

BORN_NS = 1_000_000_000  # of the monotonic clock, when everything begins


class VirtualTime:
    """`clock` is PostgreSQL's, in ns since 1970, with what is to happen by it."""

    def __init__(self, start_us: int) -> None:
        self.clock = VirtualClock(start_us * 1_000)
        self._apart_ns = start_us * 1_000 - BORN_NS

    @property
    def now_us(self) -> int:
        return self.clock.now_ns // 1_000

    @property
    def now_ns(self) -> int:
        """Monotonic."""
        return self.clock.now_ns - self._apart_ns

    def next_us(self) -> int | None:
        """When the next call is due."""
        at_ns = self.clock.next_at()
        return None if at_ns is None else -(-at_ns // 1_000)

    def reached_us(self, monotonic_ns: int) -> int:
        """PostgreSQL's time when the monotonic clock gets there, without leaps."""
        return -(-(monotonic_ns + self._apart_ns) // 1_000)

    def call_at(self, at_us: int, action: Action) -> Timer:
        return self.clock.call_at(at_us * 1_000, action)

    def call_after_ns(self, delay_ns: int, action: Action) -> Timer:
        return self.clock.call_after(delay_ns, action)

    def move_to(self, at_us: int) -> None:
        """Let time pass on both clocks, and make the calls that are due by then."""
        self.clock.run_until(at_us * 1_000)

    def leap_to(self, at_us: int) -> int:
        """Let time pass on PostgreSQL's clock alone; by how many us it did. Calls due at `at_us` are made."""
        by_ns = at_us * 1_000 - self.clock.now_ns
        self._apart_ns += by_ns
        self.clock.run_until(at_us * 1_000)
        return by_ns // 1_000
