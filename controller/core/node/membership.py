"""Who is there, and hence who owns which slot: Swim's changes become a new ring and new duties."""

from typing import Final

from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import FindPeers, Level
from cronring.controller.core.node.follow_ups import NONE, Buried, FollowUp, FollowUps, Gone, RingChanged
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.node.window import Duty
from cronring.controller.core.swim.machine import Swim
from cronring.controller.core.swim.member import MemberChange
from cronring.controller.core.swim.messages import Packet, Status
from cronring.controller.core.swim.reaction import Reaction
from cronring.schema.keys import SLOTS

SEARCH_INTERVAL_MS: Final = 5_000
# Members that died (or seemed to, across a partition) are looked for again in the `controllers` table this long.
SEARCH_AFTER_DEATH_MS: Final = 300_000


class Membership:
    """Swim and the ring, and the search for peers in the `controllers` table."""

    __slots__ = (
        "_context",
        "_leased",
        "_listed",
        "_search_at_ns",
        "_search_until_ns",
        "ring",
        "swim",
    )

    def __init__(self, context: NodeContext, address: str) -> None:
        self._context = context
        self.swim = Swim(context.controller_id, address, context.settings, context.chance, context.now_ns)
        self._leased: tuple[tuple[str, str], ...] = ()  # in the `controllers` table, when it was last read
        self._listed: dict[str, str] = {}  # id -> address for clients, of all its rows, as of the last renewal
        self._name()
        self.ring = Ring.build(self.swim.slot_owners())
        self._search_at_ns: int | None = None
        self._search_until_ns = context.now_ns

    def next_deadline(self) -> int | None:
        swim = self.swim.next_deadline()
        if self._search_at_ns is None or not self._context.store_ok:
            return swim
        return self._search_at_ns if swim is None else min(swim, self._search_at_ns)

    def act(self) -> FollowUps:
        """Let Swim do what is due; look for peers while alone, or while somebody may be cut off."""
        context = self._context
        deadline = self.swim.next_deadline()
        found = NONE
        if deadline is not None and deadline <= context.now_ns:
            found = self._absorb(self.swim.wake(context.now_ns))
        if self._search_at_ns is not None and self._search_at_ns <= context.now_ns and context.store_ok:
            self.search()
        return found

    def search(self) -> None:
        """Ask the `controllers` table for peers, now."""
        context = self._context
        context.effects.append(FindPeers())
        alone = len(self.peers()) == 1
        lookout = alone or context.now_ns < self._search_until_ns
        self._search_at_ns = context.now_ns + context.jittered_ns(SEARCH_INTERVAL_MS) if lookout else None

    def receive(self, packet: Packet) -> FollowUps:
        return self._absorb(self.swim.receive(packet, self._context.now_ns))

    def refused(self, address: str) -> FollowUps:
        return self._absorb(self.swim.peer_refused(address, self._context.now_ns))

    def drain(self) -> FollowUps:
        """Hand the slots over, and stay a member."""
        return self._absorb(self.swim.drain(self._context.now_ns))

    def leave(self) -> FollowUps:
        """The last packets."""
        return self._absorb(self.swim.leave(self._context.now_ns))

    def found(self, peers: tuple[tuple[str, str], ...]) -> FollowUps:
        """These hold leases, by the `controllers` table."""
        self._leased = peers
        self._listed = dict.fromkeys((member_id for member_id, _ in peers), "") | self._listed
        changed = self._rows_changed()
        others = tuple(peer for peer in peers if peer[0] != self._context.controller_id)
        return (*changed, *self.greet(others)) if others else changed

    def listed(self, controllers: tuple[tuple[str, str], ...]) -> FollowUps:
        """These have a row in the `controllers` table."""
        if (now := dict(controllers)) == self._listed:
            return NONE
        self._listed = now
        return self._rows_changed()

    def client_address(self, member_id: str) -> str:
        """Where people and services ask a member; "" where its row has not been read."""
        return self._listed.get(member_id, "")

    def greet(self, peers: tuple[tuple[str, str], ...]) -> FollowUps:
        """Known addresses, as (member_id or "", address)."""
        return self._absorb(self.swim.greet(peers, self._context.now_ns))

    def _absorb(self, reaction: Reaction) -> FollowUps:
        """Send what Swim sends, and follow its changes."""
        context = self._context
        context.effects.extend(reaction.packets)
        for line in reaction.lines:
            context.log(line.level, line.event, **line.values)
        found: list[FollowUp] = [Buried()] if reaction.burials else []
        gone = tuple(change.after.member_id for change in reaction.changes if self._inherits(change))
        if gone:
            found.append(Gone(gone))
        if reaction.changes:
            self._name()
            if self._rebuild():
                found.append(RingChanged())
        return found

    def _inherits(self, change: MemberChange) -> bool:
        """Whether this controller adopts from a member that is gone. A death also makes it search for peers."""
        after = change.after
        if after.status not in (Status.DEAD, Status.LEFT) or after.member_id == self._context.controller_id:
            return False
        if after.status is Status.DEAD:
            self._search_until_ns = self._context.now_ns + SEARCH_AFTER_DEATH_MS * MS
            if self._search_at_ns is None:
                self._search_at_ns = self._context.now_ns + self._context.jittered_ns(SEARCH_INTERVAL_MS)
        return self._is_successor_of(after.member_id)

    def _is_successor_of(self, gone_id: str) -> bool:
        """Whether this is the living member whose id comes next after the gone one's, in a circle: that one adopts."""
        alive = sorted(member_id for member_id, _ in self.peers())
        successor = next((member_id for member_id in alive if member_id > gone_id), alive[0])
        return successor == self._context.controller_id

    def _rebuild(self) -> bool:
        """Whether the ring is another one now."""
        # docs/decisions/0070: a packet alone makes nobody an owner
        owners = tuple(filter(self._counts, self.swim.slot_owners()))
        if tuple(sorted(owners)) == self.ring.members:
            return False
        self.ring = self.ring.over(owners)
        self._context.stats.ring_changes += 1
        self._context.log(Level.INFO, "ring_changed", members=len(self.ring.members), digest=self.ring.digest)
        return True

    # docs/decisions/0021: not only whom gossip sees
    def peers(self) -> tuple[tuple[str, str], ...]:
        """(id, address) of every controller believed to be alive that has a row, and of this one."""
        live = (member for member in self.swim.live() if self._counts(member.member_id))
        return tuple((member.member_id, member.address) for member in live)

    def _counts(self, member_id: str) -> bool:
        """Whether a member may own slots, adopt, and be named to runners: only with a row in PostgreSQL."""
        return member_id in self._listed or member_id == self._context.controller_id

    def _rows_changed(self) -> FollowUps:
        self._name()
        return (RingChanged(),) if self._rebuild() else NONE

    def _name(self) -> None:
        """Set which controllers runners should know. A peer that held a lease and seems dead may only be cut off from
        here.

        That peer may still renew a runner's lease, or declare the runner lost, while this controller is cut off from
        PostgreSQL.
        """
        known = dict(self._leased) | dict(self.peers())
        rowless = []
        for member in self.swim.members():
            if member.status is Status.LEFT:
                known.pop(member.member_id, None)
            elif member.member_id not in known and not self._counts(member.member_id):
                rowless.append((member.member_id, member.address))
        self._context.peers, self._context.rowless = tuple(known.items()), tuple(rowless)

    def duties(self) -> list[Duty]:
        """What this controller owes each slot."""
        duties = [Duty.NONE] * SLOTS
        for slot in self.ring.primary_slots(self._context.controller_id):
            duties[slot] = Duty.PRIMARY
        for slot in self.ring.backup_slots(self._context.controller_id):
            duties[slot] = Duty.BACKUP
        return duties
