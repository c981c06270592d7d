"""One whole controller without I/O.

    node = Node("c-1", "10.0.0.1:7000", ClusterSettings(), random.Random(7), now_ns)
    effects = node.step(Woke(), now_ns)        # the initial ones
    effects = node.step(event, now_ns)         # whatever happens, one at a time
    deadline_ns = node.next_deadline()         # step(Woke(), now) is wanted then

The driver performs the effects; the answers come back as events under the effect's request id, each exactly once.
Times are nanoseconds of one monotonic clock, and never go back. The parts of a node:

- `lease`: may I claim? `membership`: who else is there, which slots are mine?
- `window` and `refetch` (with the backup's looks): what is due soon? `unread`: what of it is for newer releases alone?
- `claiming`, `places`, `limiting`, `awaiting_runner` and `skipping`: start it, or not.
- `activating`: start what no schedule asks for.
- `enqueuing` and `collecting`: ticks that become messages, and their ends.
- `cancelling` and `overlap_cancel`: stop it, for somebody or for the next.
- `runners` and `holding`: where does it run?
- `ending`: it ended. `verifying`: or did it? `sweeping`: what nobody ends.
- `drill`: nothing of all that for a while. `leaving`: nothing of it any more.

`routing` tells an event to its part; `phases` then gives each part its turn, and says in which order and why. What a
part finds out for others it returns (`follow_ups`). `parts` says who knows whom.
"""

from dataclasses import replace

from cronring.controller.core.chance import Chance
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.drill import PastDrill
from cronring.controller.core.node.effects import Effect
from cronring.controller.core.node.events import Event
from cronring.controller.core.node.parts import Parts
from cronring.controller.core.node.pgclock import DatabaseClock
from cronring.controller.core.node.phases import Phases
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.node.routing import Routing
from cronring.controller.core.node.stats import Stats
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.member import Member


class Node:
    """See the module. Everything but `step` only looks."""

    def __init__(
        self, controller_id: str, address: str, settings: ClusterSettings, chance: Chance, now_ns: int
    ) -> None:
        self._context = NodeContext(controller_id, settings, chance, now_ns)
        self._parts = Parts(self._context, address)
        self._routing = Routing(self._parts)
        self._phases = Phases(self._parts)

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        """Take one event into account. The effects are to be performed in order."""
        context = self._context
        context.now_ns = max(now_ns, context.now_ns)
        effects: list[Effect] = []
        context.effects = effects
        if not self._parts.leaving.left:
            self._phases.run(self._routing.take(event))
        return effects

    def next_deadline(self) -> int | None:
        """When to step(Woke()) at the latest, on the monotonic clock in ns; None: only events matter."""
        if self._parts.leaving.left:
            return None
        return self._parts.next_deadline()

    def members(self) -> list[Member]:
        """Every controller this one has heard of: id, address, status, incarnation."""
        return list(self._parts.membership.swim.members())

    def client_address(self, member_id: str) -> str:
        """Where people and services ask a member; "" where that isn't known."""
        return self._parts.membership.client_address(member_id)

    @property
    def peers(self) -> tuple[tuple[str, str], ...]:
        """(id, address) of every controller that may hold a lease, as far as this one knows."""
        return self._context.peers

    @property
    def ring(self) -> Ring:
        return self._parts.membership.ring

    @property
    def clock(self) -> DatabaseClock:
        return self._context.clock

    @property
    def draining(self) -> bool:
        return self._context.draining

    @property
    def lease_valid(self) -> bool:
        """As of the latest step."""
        return self._parts.lease.valid

    @property
    def in_drill(self) -> bool:
        """It claims nothing for a while, for a drill."""
        return self._context.in_drill

    @property
    def past_drill(self) -> PastDrill | None:
        """The drill that lasts, or the latest one; None: there was none."""
        return self._parts.drill.latest

    def why_no_drill(self, forced: bool) -> str | None:
        """As of the latest step; None: nothing speaks against it."""
        return self._parts.drill.why_not(forced)

    @property
    def lease_since_ns(self) -> int | None:
        """Since when it has been valid without a gap; None while it isn't."""
        return self._parts.lease.held_since_ns

    @property
    def lease_until_ns(self) -> int:
        """Its end, by the monotonic clock and with the margin."""
        return self._parts.lease.valid_until_ns

    @property
    def health(self) -> int:
        """0: well; up to 8: it seems to be slow itself (Lifeguard's local health)."""
        return self._parts.membership.swim.health

    def database_now(self, now_ns: int) -> int:
        """PostgreSQL's time in us, as estimated; 0 before its first answer."""
        clock = self._context.clock
        return clock.now_us(now_ns) if clock.known else 0

    def stats(self) -> Stats:
        """A copy of the counters, with the gauges as of now."""
        return replace(
            self._context.stats,
            window_jobs=len(self._parts.window.entries),
            held=len(self._parts.holding.executions),
            ends_pending=len(self._parts.ending),
            awaiting_runner=len(self._parts.awaiting_runner),
            activations=len(self._parts.activating),
            runners=len(self._parts.runners.by_id),
            waiting_for_place=len(self._parts.places),
            jobs_unread=len(self._parts.unread),
        )
