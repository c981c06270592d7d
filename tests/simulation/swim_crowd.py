"""Many Swim machines that have known each other for long, and when each comes to believe what of whom.

Finding each other is quadratic, and none of what a large cluster does each second: so they begin acquainted.
"""

from collections.abc import Iterable

from cronring.controller.core.swim import beliefs
from cronring.controller.core.swim.member import MemberChange
from cronring.controller.core.swim.messages import Packet, Status
from cronring.controller.peers.codec import encode
from cronring.virtual.clock import MS, SECOND
from tests.simulation.swim_members import Members, Process


class Crowd(Members):
    """`bytes_sent`: of the `weighed` members' packets, as they are on the wire (without HTTP/2's frames and TCP's)."""

    def __init__(self, seed: str, nodes: int) -> None:
        super().__init__(seed)
        self.weighed: frozenset[str] = frozenset()
        self.bytes_sent = 0
        self.heard_ns: dict[str, dict[Status, list[int]]] = {}  # by whom it is about: once for each who came to hold it
        self.watchers.append(self._Listener(self))
        for host in range(nodes):
            self.start(host, known=())
        acquaint(self.running())

    class _Listener:
        def __init__(self, crowd: "Crowd") -> None:
            self._heard_ns = crowd.heard_ns

        def changed(self, now_ns: int, holder: Process, change: MemberChange) -> None:
            before, after = change
            if holder.member_id != after.member_id and (before is None or before.status is not after.status):
                self._heard_ns.setdefault(after.member_id, {}).setdefault(after.status, []).append(now_ns)

    def sent(self, process: Process, address: str, packet: Packet) -> None:
        if process.member_id in self.weighed:
            self.bytes_sent += encode(packet).ByteSize()
        super().sent(process, address, packet)

    def count_sent(self) -> int:
        """Packets that all members together have sent so far."""
        return sum(self.network.counts(process.address).sent for process in self.processes.values())

    def holders(self, member_id: str, status: Status) -> list[int]:
        """When they came to believe it, ascending."""
        return self.heard_ns.get(member_id, {}).get(status, [])

    def run_until_all_hold(self, member_ids: Iterable[str], status: Status, within_ns: int = 60 * SECOND) -> None:
        """Raises AssertionError if somebody who runs does not within that time."""
        ends_ns = self.clock.now_ns + within_ns
        for member_id in member_ids:
            others = sum(process.member_id != member_id for process in self.running())
            while len(self.holders(member_id, status)) < others:
                assert self.clock.now_ns < ends_ns, f"not everybody holds {member_id} {status.name.lower()}"
                self.clock.run_for(100 * MS)


def acquaint(processes: list[Process]) -> None:
    """Everybody holds everybody alive, in a probe order of its own, and has nothing left to tell.

    It would be the same if each was sent the whole table; with 1,000 members that takes 15 s instead of one.
    """
    everybody = {process.member_id: process.swim.me for process in processes}
    assert len(everybody) <= beliefs.MEMBERS_MAX, "more than SWIM takes in"
    for process in processes:
        swim = process.swim
        roster, targets = swim._beliefs.roster, swim._beliefs.targets
        roster._members, roster._live = dict(everybody), dict(everybody)
        roster._live_sorted = None
        roster._by_address = {member.address: {member.member_id: None} for member in everybody.values()}
        targets._order = [member_id for member_id in everybody if member_id != process.member_id]
        swim._chance.shuffle(targets._order)
        swim._beliefs.rumors.clear()
        swim._gossip_at = None
