"""Who is there, and hence who owns which slot: Swim's changes become a new ring and new duties."""

from typing import Final

from cronring.controller.core.desk import MS, Desk
from cronring.controller.core.effects import FindPeers, Level
from cronring.controller.core.ring import Ring
from cronring.controller.core.swim.machine import Swim
from cronring.controller.core.swim.member import Change
from cronring.controller.core.swim.messages import Packet, Status
from cronring.controller.core.swim.reaction import Reaction
from cronring.controller.core.window import Duty
from cronring.schema.keys import SLOTS

SEARCH_INTERVAL_MS: Final = 5_000
# Members that died (or seemed to, across a partition) are looked for again in the `controllers` table this long.
SEARCH_AFTER_DEATH_MS: Final = 300_000


class Membership:
    """Swim and the ring, and the search for peers in the `controllers` table."""

    __slots__ = (
        "_desk",
        "_leased",
        "_search_at_ns",
        "_search_until_ns",
        "buried",
        "gone",
        "ring",
        "ring_changed",
        "swim",
    )

    def __init__(self, desk: Desk, address: str) -> None:
        self._desk = desk
        self.swim = Swim(desk.controller_id, address, desk.settings, desk.chance, desk.now_ns)
        self._leased: tuple[tuple[str, str], ...] = ()  # in the `controllers` table, when it was last read
        desk.peers = self._known()
        self.ring = Ring.build(self.swim.slot_owners())
        self.ring_changed = True
        self.buried = False  # somebody held this controller dead, and may adopt from it; the node clears it
        self.gone: list[str] = []  # dead or left, for this controller to adopt from; the node takes them
        self._search_at_ns: int | None = None
        self._search_until_ns = desk.now_ns

    def next_deadline(self) -> int | None:
        swim = self.swim.next_deadline()
        if self._search_at_ns is None or not self._desk.store_ok:
            return swim
        return self._search_at_ns if swim is None else min(swim, self._search_at_ns)

    def turn(self) -> None:
        """Let Swim do what is due; look for peers while alone, or while somebody may be cut off."""
        desk = self._desk
        deadline = self.swim.next_deadline()
        if deadline is not None and deadline <= desk.now_ns:
            self.absorb(self.swim.wake(desk.now_ns))
        if self._search_at_ns is not None and self._search_at_ns <= desk.now_ns and desk.store_ok:
            self.search()

    def search(self) -> None:
        """Ask the `controllers` table for peers, now."""
        desk = self._desk
        desk.effects.append(FindPeers())
        alone = len(self.peers()) == 1
        lookout = alone or desk.now_ns < self._search_until_ns
        self._search_at_ns = desk.now_ns + desk.jittered_ns(SEARCH_INTERVAL_MS) if lookout else None

    def receive(self, packet: Packet) -> None:
        self.absorb(self.swim.receive(packet, self._desk.now_ns))

    def refused(self, address: str) -> None:
        self.absorb(self.swim.peer_refused(address, self._desk.now_ns))

    def found(self, peers: tuple[tuple[str, str], ...]) -> None:
        """These hold leases, by the `controllers` table."""
        self._leased = peers
        self._desk.peers = self._known()
        others = tuple(peer for peer in peers if peer[0] != self._desk.controller_id)
        if others:
            self.greet(others)

    def greet(self, peers: tuple[tuple[str, str], ...]) -> None:
        """Known addresses, as (member_id or "", address)."""
        self.absorb(self.swim.greet(peers, self._desk.now_ns))

    def absorb(self, reaction: Reaction) -> None:
        """Send what Swim sends, and follow its changes."""
        desk = self._desk
        desk.effects.extend(reaction.packets)
        for note in reaction.notes:
            desk.note(note.level, note.event, **note.values)
        self.buried = self.buried or bool(reaction.burials)
        for change in reaction.changes:
            self._follow(change)
        if reaction.changes:
            desk.peers = self._known()
            self._rebuild()

    def _follow(self, change: Change) -> None:
        after = change.after
        if after.status not in (Status.DEAD, Status.LEFT) or after.member_id == self._desk.controller_id:
            return
        if after.status is Status.DEAD:
            self._search_until_ns = self._desk.now_ns + SEARCH_AFTER_DEATH_MS * MS
            if self._search_at_ns is None:
                self._search_at_ns = self._desk.now_ns + self._desk.jittered_ns(SEARCH_INTERVAL_MS)
        if self._is_successor_of(after.member_id):
            self.gone.append(after.member_id)

    def _is_successor_of(self, gone_id: str) -> bool:
        """The living member whose id comes next after the one that is gone, in a circle, adopts from it."""
        alive = sorted(member_id for member_id, _ in self.peers())
        successor = next((member_id for member_id in alive if member_id > gone_id), alive[0])
        return successor == self._desk.controller_id

    def _rebuild(self) -> None:
        owners = self.swim.slot_owners()
        if tuple(sorted(owners)) == self.ring.members:
            return
        self.ring = self.ring.over(owners)
        self.ring_changed = True
        self._desk.stats.ring_changes += 1
        self._desk.note(Level.INFO, "ring_changed", members=len(self.ring.members), digest=self.ring.digest)

    # docs/decisions/0021: not only whom gossip sees
    def peers(self) -> tuple[tuple[str, str], ...]:
        """(id, address) of every controller believed to be alive, this one included."""
        return tuple((member.member_id, member.address) for member in self.swim.live())

    def _known(self) -> tuple[tuple[str, str], ...]:
        """Those that runners should know: one that seems dead, and held a lease, may be cut off from here only.

        It may then still renew a runner's lease, and declare it lost, while this controller is cut off from PostgreSQL.
        """
        left = {member.member_id for member in self.swim.members() if member.status is Status.LEFT}
        known = dict(self._leased) | dict(self.peers())
        return tuple((member_id, address) for member_id, address in known.items() if member_id not in left)

    def duties(self) -> list[Duty]:
        """What this controller owes each slot."""
        duties = [Duty.NONE] * SLOTS
        for slot in self.ring.primary_slots(self._desk.controller_id):
            duties[slot] = Duty.PRIMARY
        for slot in self.ring.backup_slots(self._desk.controller_id):
            duties[slot] = Duty.BACKUP
        return duties
