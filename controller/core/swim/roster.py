"""Everyone I have heard of: the table that the merge rule keeps."""

from typing import Final

from cronring.controller.core.swim.member import Member, MemberChange, supersedes
from cronring.controller.core.swim.messages import Status, Update

# How many buried members I remember. Beyond that, the one buried first is forgotten.
BURIED_CAPACITY: Final = 1024


class Roster:
    """Members by id. The dead and the left stay for a while, so that all hear of it. Then they are buried.

    A buried belief is not passed on any more, but still blocks stale news. So a peer that slept can't bring a dead
    member back as alive: only that member's own refutation can. A member that I first hear of as dead or left is buried
    at once. Otherwise such entries could go round among members for ever.
    """

    __slots__ = ("_buried", "_by_address", "_ended_ns", "_live", "_live_sorted", "_members")

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._ended_ns: dict[str, int] = {}  # of the dead and the left among _members: since when
        self._buried: dict[str, Member] = {}  # in the order of burial
        self._live: dict[str, Member] = {}  # those of _members who gossip
        self._live_sorted: tuple[Member, ...] | None = None
        self._by_address: dict[str, dict[str, None]] = {}  # ids of the live

    def merge(self, update: Update, now_ns: int) -> MemberChange | None:
        """Take in what is heard if it supersedes what is held. None: no change that others need to know."""
        held = self.belief(update.member_id)
        if held is not None and not supersedes(update, held):
            return None
        after = Member(*update)
        if after.gossips:
            self._buried.pop(after.member_id, None)
            self._ended_ns.pop(after.member_id, None)
        elif after.member_id in self._members:
            self._ended_ns[after.member_id] = now_ns
        else:
            self._bury(after)
            return None
        before = self._members.get(after.member_id)
        self._members[after.member_id] = after
        self._keep_live(before, after)
        return MemberChange(before, after)

    def belief(self, member_id: str) -> Member | None:
        """What I hold of a member, buried or not."""
        return self._members.get(member_id) or self._buried.get(member_id)

    def get(self, member_id: str) -> Member | None:
        """What I hold of a member that is not buried."""
        return self._members.get(member_id)

    def all(self) -> tuple[Member, ...]:
        """Everyone but the buried, in order of id."""
        return tuple(self._members[member_id] for member_id in sorted(self._members))

    def live(self) -> tuple[Member, ...]:
        """Alive or suspect, in order of id."""
        if self._live_sorted is None:
            self._live_sorted = tuple(self._live[member_id] for member_id in sorted(self._live))
        return self._live_sorted

    @property
    def live_count(self) -> int:
        return len(self._live)

    def live_at(self, address: str) -> tuple[str, ...]:
        """Ids of live members with this address: more than one if a process followed another there."""
        return tuple(self._by_address.get(address, ()))

    def dead(self) -> tuple[Member, ...]:
        """Dead, not left, not buried, in order of id: they may only be out of reach."""
        ids = sorted(self._ended_ns)
        return tuple(self._members[member_id] for member_id in ids if self._members[member_id].status is Status.DEAD)

    def forget(self, ended_before_ns: int) -> None:
        """Bury members that died or left before then."""
        for member_id in [member_id for member_id, since in self._ended_ns.items() if since < ended_before_ns]:
            del self._ended_ns[member_id]
            self._bury(self._members.pop(member_id))

    def _keep_live(self, before: Member | None, after: Member) -> None:
        self._live_sorted = None
        if before is not None and self._live.pop(before.member_id, None) is not None:
            at_address = self._by_address[before.address]
            del at_address[before.member_id]
            if not at_address:
                del self._by_address[before.address]
        if after.gossips:
            self._live[after.member_id] = after
            self._by_address.setdefault(after.address, {})[after.member_id] = None

    def _bury(self, member: Member) -> None:
        self._buried.pop(member.member_id, None)
        self._buried[member.member_id] = member
        if len(self._buried) > BURIED_CAPACITY:
            del self._buried[next(iter(self._buried))]
