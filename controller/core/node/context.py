"""What the parts of a node share while it steps: the time, the clock, requests under way, and the effects so far."""

from typing import Final, Protocol

from cronring.controller.core.chance import Chance
from cronring.controller.core.node.effects import Effect, Level, LogLine
from cronring.controller.core.node.events import StoreFailed
from cronring.controller.core.node.follow_ups import FollowUps
from cronring.controller.core.node.pgclock import DatabaseClock
from cronring.controller.core.node.stats import Stats
from cronring.controller.core.settings import ClusterSettings

Peers = tuple[tuple[str, str], ...]  # (id, address)

MS: Final = 1_000_000  # in nanoseconds
REFUSED_RETRY_NS: Final = 500 * MS  # what PostgreSQL refused (or took too long over) is not repeated at once
LINES_PER_SECOND: Final = 5  # of one kind


class Asker(Protocol):
    """A part that sends requests to the store."""

    def failed(self, event: StoreFailed) -> FollowUps | None:
        """The outcome of this part's request is unknown."""
        ...


class NodeContext:
    """One per node. `now_ns` is the time of the step under way; parts append to `effects`."""

    __slots__ = (
        "_asked",
        "_logged",
        "_request_id",
        "chance",
        "clock",
        "controller_id",
        "draining",
        "effects",
        "in_drill",
        "now_ns",
        "peers",
        "rowless",
        "settings",
        "stats",
        "store_down_since_ns",
    )

    def __init__(self, controller_id: str, settings: ClusterSettings, chance: Chance, now_ns: int) -> None:
        self.controller_id = controller_id
        self.settings = settings
        self.chance = chance
        self.clock = DatabaseClock()
        self.now_ns = now_ns
        self.effects: list[Effect] = []
        self.stats = Stats()
        self.draining = False
        self.in_drill = False
        self.peers: Peers = ()  # every controller that may hold a lease, this one included
        self.rowless: Peers = ()  # known by gossip alone: they may hold leases that can't be read here now
        self.store_down_since_ns: int | None = None
        self._request_id = 0
        self._asked: dict[int, tuple[Asker, int]] = {}
        self._logged: dict[str, tuple[int, int]] = {}

    @property
    def now_us(self) -> int:
        """PostgreSQL's time, as estimated."""
        return self.clock.now_us(self.now_ns)

    @property
    def abstains(self) -> bool:
        """Whether this controller leaves all that is due to others: it drains, or is in a drill."""
        return self.draining or self.in_drill

    @property
    def store_ok(self) -> bool:
        """False from a lost connection to the next answer; meanwhile only the lease's renewal probes."""
        return self.store_down_since_ns is None

    def request(self, asker: Asker) -> int:
        """A new request id. Who asked, and when, is remembered for the answer."""
        self._request_id += 1
        self._asked[self._request_id] = (asker, self.now_ns)
        self.stats.statements += 1
        return self._request_id

    def answered(self, request_id: int, database_now_us: int | None) -> tuple[Asker, int] | None:
        """Take note of an answer. Returns who asked, and when the request was sent; None for an unknown request."""
        asked = self._asked.pop(request_id, None)
        if asked is None or database_now_us is None:
            return asked
        if self.clock.sample(asked[1], self.now_ns, database_now_us):
            self.log(Level.WARNING, "database_clock_stepped", by_us=self.clock.steps[-1].by_us)
        return asked

    def lost(self, request_id: int) -> Asker | None:
        """Take note of a failure: who asked."""
        asked = self._asked.pop(request_id, None)
        return asked[0] if asked else None

    def jittered_ns(self, duration_ms: int) -> int:
        """The duration, up to 10 % more or less, so that controllers don't fall into step."""
        return int(duration_ms * MS * (0.9 + 0.2 * self.chance.random()))

    def backoff_ns(self, failures: int, base_ms: int, cap_ms: int) -> int:
        """base x 2^(failures - 1), capped, and then between half and all of it."""
        duration_ms = min(cap_ms, base_ms << min(max(failures - 1, 0), 16))
        return int(duration_ms * MS * (0.5 + 0.5 * self.chance.random()))

    def log(self, level: Level, event: str, **values: str | int | float | bool) -> None:
        """Say something to the operator, at most LINES_PER_SECOND times a second for each kind."""
        since_ns, count = self._logged.get(event, (self.now_ns, 0))
        if self.now_ns - since_ns >= 1_000 * MS:
            if count > LINES_PER_SECOND:
                values["not_shown_before"] = count - LINES_PER_SECOND
            since_ns, count = self.now_ns, 0
        self._logged[event] = (since_ns, count + 1)
        if count < LINES_PER_SECOND:
            self.effects.append(LogLine(level, event, values))
