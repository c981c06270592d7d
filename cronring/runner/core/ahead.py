"""How many runs may be sent before a child is free for them, so that no child is idle for want of a run.

A place that is granted at the end of a run is filled only after a claim. If PostgreSQL is 20 ms away, the child of a
verb that takes 5 ms would be idle most of the time. So the runner asks for the next run before the present one ends,
once that end is expected within the time of a claim. It does so only for verbs whose runs all take about as long. A
run that is sent too early would wait here, instead of in its job's row.
"""

from collections import deque
from typing import Final

MS_NS: Final = 1_000_000
LEAD_MAX_NS: Final = 250 * MS_NS
LEAD_MIN_NS: Final = 5 * MS_NS
SPREAD_MAX_NS: Final = 40 * MS_NS  # mean deviation: so that waits stay below 0.1 s in 99 of 100 cases
SHORTEST_NS: Final = 200_000
EACH_MAX: Final = 64  # sent ahead for one child
_WEIGHT: Final = 8  # as TCP's round-trip times are smoothed (RFC 6298)
_KNOWN_AFTER: Final = 3  # runs


class Pace:
    """How long a verb's runs take: mean, and mean deviation."""

    __slots__ = ("_mean_ns", "_runs", "_spread_ns")

    def __init__(self) -> None:
        self._mean_ns = 0
        self._spread_ns = 0
        self._runs = 0

    def observe(self, duration_ns: int) -> None:
        self._runs += 1
        if self._runs == 1:
            self._mean_ns, self._spread_ns = duration_ns, duration_ns // 4
            return
        self._spread_ns += (abs(duration_ns - self._mean_ns) - self._spread_ns) // _WEIGHT
        self._mean_ns += (duration_ns - self._mean_ns) // _WEIGHT

    @property
    def known(self) -> bool:
        return self._runs >= _KNOWN_AFTER

    @property
    def mean_ns(self) -> int | None:
        """None: the runs differ too much to foresee an end."""
        foreseen = self.known and self._spread_ns <= SPREAD_MAX_NS
        return max(self._mean_ns, SHORTEST_NS) if foreseen else None

    @property
    def most_ns(self) -> int:
        """Most runs take no longer."""
        return self._mean_ns + self._spread_ns

    @property
    def patience_ns(self) -> int:
        """A run that takes so much longer than the mean is unlike the runs before: its end can't be foreseen."""
        return 4 * self._spread_ns + 20 * MS_NS


# docs/decisions/0038: a free child would wait for a claim's round trip
def lead_ns(turnarounds: Pace, claim_us: int) -> int:
    """How long before the end of a run the runner asks for the next one.

    It is the time that it took lately from the grant of a place to the run that uses it. Until that is known: one and a
    half claims, because a claim may have to wait for the one that is under way.
    """
    lead = turnarounds.most_ns if turnarounds.known else LEAD_MIN_NS + claim_us * 1_500
    return min(max(lead, LEAD_MIN_NS), LEAD_MAX_NS)


class Ahead:
    """The runs of a lane that has `places` children: those that (probably) run, and those that wait behind them."""

    __slots__ = ("_all", "_paces", "_places", "_running", "_waiting")

    def __init__(self, places: int) -> None:
        self._places = places
        self._paces: dict[str, Pace] = {}
        self._all = Pace()  # for verbs that little is known of
        self._running: dict[int, tuple[str, int]] = {}  # verb, and since when
        self._waiting: deque[tuple[int, str]] = deque()

    def took(self, execution_id: int, verb: str, now_ns: int) -> None:
        if len(self._running) < self._places:
            self._running[execution_id] = verb, now_ns
        else:
            self._waiting.append((execution_id, verb))

    def ended(self, execution_id: int, duration_ns: int | None, now_ns: int) -> None:
        """`duration_ns`: None if the run did not end by itself, so that its length tells nothing about others."""
        ran = self._running.pop(execution_id, None)
        if ran is None:
            self._waiting = deque(each for each in self._waiting if each[0] != execution_id)
            return
        if duration_ns is not None:
            self._paces.setdefault(ran[0], Pace()).observe(duration_ns)
            self._all.observe(duration_ns)
        if self._waiting:
            next_id, verb = self._waiting.popleft()
            self._running[next_id] = verb, now_ns

    def count(self, now_ns: int, lead_ns: int) -> int:
        """How many runs will (probably) end within `lead_ns`. A short run's successors in that time count too."""
        found = 0
        for mean_ns, left_ns in self._foreseen(now_ns):
            if left_ns <= lead_ns:
                found += min(1 + (lead_ns - max(left_ns, 0)) // mean_ns, EACH_MAX)
        return found

    def next_ns(self, now_ns: int, lead_ns: int) -> int | None:
        """When `count` grows by itself."""
        return min(
            (now_ns + left_ns - lead_ns for _, left_ns in self._foreseen(now_ns) if left_ns > lead_ns), default=None
        )

    def _foreseen(self, now_ns: int) -> list[tuple[int, int]]:
        """(mean, what is left of it), in ns, of each run whose end can be foreseen."""
        found = []
        for verb, since_ns in self._running.values():
            pace = self._paces.get(verb)
            if pace is None or not pace.known:
                pace = self._all
            mean_ns = pace.mean_ns
            if mean_ns is None:
                continue
            left_ns = since_ns + mean_ns - now_ns
            if left_ns >= -pace.patience_ns:
                found.append((mean_ns, left_ns))
        return found
