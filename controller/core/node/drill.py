"""A drill: this controller claims nothing for a while, on purpose, to show that others take over.

Only claims stop: its lease, its place in the ring, ends and adoptions go on. A drill ends by itself: when its time is
over, when no other controller is left that could take over, or with a drain.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import Level
from cronring.controller.core.node.follow_ups import NONE, DrillOver, FollowUps
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.membership import Membership
from cronring.schema.duration import measured

LONGEST_MS: Final = 60_000


class DrillEnd(StrEnum):
    """Why it is over."""

    TIME = "its time is over"
    RELEASED = "it was ended early"
    ALONE = "no other controller is left that could take over"
    DRAINING = "this controller is leaving"


class PastDrill(NamedTuple):
    """One drill, in PostgreSQL's time: of what came due from `begun_us` on, nothing was claimed before `ended_us`."""

    begun_us: int
    ended_us: int | None = None  # None: it lasts
    why: DrillEnd | None = None


class NodeDrill:
    """At most one at a time. `latest`: the one that lasts, or the one before; None: there was none."""

    __slots__ = ("_by", "_context", "_forced", "_lease", "_membership", "_since_ns", "_until_ns", "latest")

    def __init__(self, context: NodeContext, lease: Lease, membership: Membership) -> None:
        self._context = context
        self._lease = lease
        self._membership = membership
        self._since_ns = 0
        self._until_ns: int | None = None
        self._forced = False
        self._by = ""
        self.latest: PastDrill | None = None

    def next_deadline(self) -> int | None:
        return self._until_ns

    def why_not(self, forced: bool) -> str | None:
        """What speaks against a drill now; None: nothing."""
        context = self._context
        if context.draining:
            return "it is about to leave"
        if not self._lease.valid:
            return "it holds no valid lease, so it claims nothing anyway; is PostgreSQL well?"
        if self._until_ns is not None:
            left_ms = max(0, self._until_ns - context.now_ns) / MS
            return f"it is in a drill already, for {self._by}, for {measured(left_ms)} more"
        if self._is_alone() and not forced:
            return "no other controller is on its ring, so nobody would take over"
        return None

    def begin(self, for_ms: int, forced: bool, by: str) -> bool:
        """False: not now; see why_not."""
        context = self._context
        if self.why_not(forced) is not None:
            return False
        self._since_ns = context.now_ns
        self._until_ns = context.now_ns + min(for_ms, LONGEST_MS) * MS
        self._forced, self._by = forced, by
        self.latest = PastDrill(context.now_us)
        context.in_drill = True
        context.stats.drills += 1
        context.log(Level.WARNING, "in_drill", for_ms=min(for_ms, LONGEST_MS), by=by, forced=forced)
        return True

    # docs/decisions/0054: a drill ends by itself, even if its caller is gone
    def act(self) -> FollowUps:
        if self._until_ns is None:
            return NONE
        if self._context.draining:
            return self.end(DrillEnd.DRAINING)
        if self._context.now_ns >= self._until_ns:
            return self.end(DrillEnd.TIME)
        if self._is_alone() and not self._forced:
            return self.end(DrillEnd.ALONE)
        return NONE

    def end(self, why: DrillEnd) -> FollowUps:
        """End the drill, if there is one."""
        context = self._context
        if self._until_ns is None or self.latest is None:
            return NONE
        self._until_ns = None
        self.latest = PastDrill(self.latest.begun_us, context.now_us, why)
        context.in_drill = False
        context.log(Level.INFO, "claiming_again", after_ms=(context.now_ns - self._since_ns) // MS, why=why.value)
        return (DrillOver(),)

    def _is_alone(self) -> bool:
        return all(member == self._context.controller_id for member in self._membership.ring.members)
