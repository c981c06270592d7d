"""Who owns which slot: consistent hashing over the members that may own any. The only importer of uhashring.

    ring = Ring.build(("c-1", "c-2", "c-3"))     # any order; Swim.slot_owners() gives them
    ring.owners(17)                              # ("c-2", "c-1"): primary and backup
    ring.primary_slots("c-2")                    # ascending
    ring.digest                                  # equal wherever the table is equal
    ring.over(("c-1", "c-3"))                    # what Ring.build would give, for the cost of what has changed

The ring is a pure function of the set of member ids, so controllers that agree on the members agree on every owner.

A member's points fall into the arcs between slots. Each arc begins at a slot and ends before the next one, so there are
as many arcs as slots. A member that comes or goes touches 160 arcs at most, and one walk over all arcs finds every
owner.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import Final

from uhashring import HashRing

from cronring.schema.keys import SLOTS

# Points of each member on the ring. 160 keeps a member's load within about a quarter of the mean (std 8 %). More would
# cost build time in proportion, and halve the spread only with four times as many.
POINTS_PER_MEMBER: Final = 160

NOBODY: Final = -1
TURN: Final = 1 << 64  # positions are below it

Owners = tuple[str | None, str | None]
Point = tuple[int, str]  # position, member
Arc = tuple[Point, ...]  # ascending


def _position(key: str) -> int:
    """Where a key lies on the ring: 64 bits of BLAKE2b (uhashring's own MD5 is absent from hardened builds)."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


@cache
def _slots_by_position() -> tuple[tuple[int, int], ...]:
    """(position, slot) of every slot, ascending. They never change, so they are hashed once."""
    return tuple(sorted((_position(f"slot-{slot}"), slot) for slot in range(SLOTS)))


@cache
def _slot_positions() -> tuple[int, ...]:
    return tuple(position for position, _ in _slots_by_position())


@dataclass(frozen=True, slots=True)
class Ring:
    """The table of owners. `primary` and `backup` hold indexes into `members` by slot; NOBODY where there is none."""

    members: tuple[str, ...]  # ascending
    primary: tuple[int, ...]
    backup: tuple[int, ...]
    digest: str  # hex
    _primary_slots: dict[str, tuple[int, ...]]
    _backup_slots: dict[str, tuple[int, ...]]
    _arcs: tuple[Arc, ...] = field(compare=False, repr=False)  # in the order of the slots' positions

    @classmethod
    def build(cls, member_ids: tuple[str, ...]) -> "Ring":
        """The ring over these members, in whatever order and however often they are named.

        A slot's primary is the member of the first point after the slot's position, its backup the member of the next
        point that is another's. One member: no backups. None: no owners.
        """
        members = tuple(sorted(dict.fromkeys(member_ids)))
        return cls._of(members, _arcs(((),) * SLOTS, gone=(), come=members))

    def over(self, member_ids: tuple[str, ...]) -> "Ring":
        """The same result as build(): it adds the points of new members, and removes those of members that went."""
        members = tuple(sorted(dict.fromkeys(member_ids)))
        before, after = set(self.members), set(members)
        gone, come = sorted(before - after), sorted(after - before)
        if len(gone) + len(come) > len(members):
            return Ring.build(members)
        return self._of(members, _arcs(self._arcs, gone, come))

    @classmethod
    def _of(cls, members: tuple[str, ...], arcs: tuple[Arc, ...]) -> "Ring":
        primary, backup = _table(members, arcs)
        return cls(
            members=members,
            primary=primary,
            backup=backup,
            digest=_digest(members, primary, backup),
            _primary_slots=_slots_by_member(members, primary),
            _backup_slots=_slots_by_member(members, backup),
            _arcs=arcs,
        )

    def owners(self, slot: int) -> Owners:
        """(primary, backup) of a slot 0..4095; two different members, or None where there are too few."""
        return self._name(self.primary[slot]), self._name(self.backup[slot])

    def third(self, slot: int) -> str | None:
        """The slot's backup once its primary is gone; None if there are too few members. Builds a ring each time."""
        primary = self._name(self.primary[slot])
        return self.over(tuple(member for member in self.members if member != primary)).owners(slot)[1]

    def primary_slots(self, member_id: str) -> tuple[int, ...]:
        """Ascending; empty for a member that is not on the ring."""
        return self._primary_slots.get(member_id, ())

    def backup_slots(self, member_id: str) -> tuple[int, ...]:
        """Ascending; empty for a member that is not on the ring."""
        return self._backup_slots.get(member_id, ())

    def _name(self, index: int) -> str | None:
        return None if index == NOBODY else self.members[index]


def _arcs(before: Sequence[Arc], gone: Sequence[str], come: Sequence[str]) -> tuple[Arc, ...]:
    """The arcs, without the points of `gone` members, and with those of members that `come`."""
    arcs = list(before)
    for arc, points in _points_by_arc(gone).items():
        arcs[arc] = tuple(point for point in arcs[arc] if point not in points)
    for arc, points in _points_by_arc(come).items():
        arcs[arc] = tuple(sorted((*arcs[arc], *points)))
    return tuple(arcs)


def _points_by_arc(members: Sequence[str]) -> dict[int, list[Point]]:
    """All points of these members, by arc. Points before the first slot belong to the end of the last arc, a turn
    later.
    """
    slots = _slot_positions()
    found: dict[int, list[Point]] = defaultdict(list)
    for point in HashRing(list(members), vnodes=POINTS_PER_MEMBER, hash_fn=_position).get_points():
        found[bisect_left(slots, point[0]) - 1].append(point)
    found[SLOTS - 1] += ((position + TURN, member) for position, member in found.pop(-1, ()))
    return found


def _table(members: tuple[str, ...], arcs: tuple[Arc, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Primary and backup by slot: the owner of the nearest point after the slot, and of the nearest point of another
    member.
    """
    index_of = {member: index for index, member in enumerate(members)}
    primary, backup = [NOBODY] * SLOTS, [NOBODY] * SLOTS
    nearest, other = NOBODY, NOBODY
    slots = _slots_by_position()
    for _ in range(2):  # backwards, twice: the second round knows what follows the end, at the beginning
        for at in range(SLOTS - 1, -1, -1):
            points = arcs[at]
            if points:
                first, second = points[0][1], _second(points)
                index = index_of[first]
                if second is not None:
                    other = index_of[second]
                elif index != nearest:
                    other = nearest
                nearest = index
            slot = slots[at][1]
            primary[slot] = nearest
            backup[slot] = other
    return tuple(primary), tuple(backup)


def _second(points: Arc) -> str | None:
    """The first member in this arc that isn't the owner of its first point; None: there is no other."""
    first = points[0][1]
    for _, member in points:
        if member != first:
            return member
    return None


def _slots_by_member(members: tuple[str, ...], table: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    slots: list[list[int]] = [[] for _ in members]
    for slot, index in enumerate(table):
        if index != NOBODY:
            slots[index].append(slot)
    return {member: tuple(owned) for member, owned in zip(members, slots, strict=True)}


def _digest(members: tuple[str, ...], primary: tuple[int, ...], backup: tuple[int, ...]) -> str:
    return blake2b(repr((members, primary, backup)).encode(), digest_size=8).hexdigest()
