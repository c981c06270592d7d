"""Who owns which slot: consistent hashing over the members that may own any. The only importer of uhashring.

    ring = Ring.build(("c-1", "c-2", "c-3"))     # any order; Swim.slot_owners() gives them
    ring.owners(17)                              # ("c-2", "c-1"): primary and backup
    ring.primary_slots("c-2")                    # ascending
    ring.digest                                  # equal wherever the table is equal

The ring is a pure function of the set of member ids, so controllers that agree on the members agree on every owner.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final

from uhashring import HashRing

from schema.keys import SLOTS

# Points of each member on the ring. 160 keeps a member's load within about a quarter of the mean (std 8 %); more would
# cost build time in proportion, and halve the spread only with four times as many.
POINTS_PER_MEMBER: Final = 160

NOBODY: Final = -1

Owners = tuple[str | None, str | None]


def _position(key: str) -> int:
    """Where a key lies on the ring: 64 bits of BLAKE2b (uhashring's own MD5 is absent from hardened builds)."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


@cache
def _slots_by_position() -> tuple[tuple[int, int], ...]:
    """(position, slot) of every slot, ascending. They never change, so they are hashed once."""
    return tuple(sorted((_position(f"slot-{slot}"), slot) for slot in range(SLOTS)))


@dataclass(frozen=True, slots=True)
class Ring:
    """The table of owners. `primary` and `backup` hold indexes into `members` by slot; NOBODY where there is none."""

    members: tuple[str, ...]  # ascending
    primary: tuple[int, ...]
    backup: tuple[int, ...]
    digest: str  # hex
    _primary_slots: dict[str, tuple[int, ...]]
    _backup_slots: dict[str, tuple[int, ...]]

    @classmethod
    def build(cls, member_ids: tuple[str, ...]) -> "Ring":
        """The ring over these members, in whatever order and however often they are named.

        A slot's primary is the member of the first point after the slot's position, its backup the member of the next
        point that is another's. One member: no backups. None: no owners.
        """
        members = tuple(sorted(dict.fromkeys(member_ids)))
        primary, backup = _table(members)
        return cls(
            members=members,
            primary=primary,
            backup=backup,
            digest=_digest(members, primary, backup),
            _primary_slots=_slots_by_member(members, primary),
            _backup_slots=_slots_by_member(members, backup),
        )

    def owners(self, slot: int) -> Owners:
        """(primary, backup) of a slot 0..4095; two different members, or None where there are too few."""
        return self._name(self.primary[slot]), self._name(self.backup[slot])

    def primary_slots(self, member_id: str) -> tuple[int, ...]:
        """Ascending; empty for a member that is not on the ring."""
        return self._primary_slots.get(member_id, ())

    def backup_slots(self, member_id: str) -> tuple[int, ...]:
        """Ascending; empty for a member that is not on the ring."""
        return self._backup_slots.get(member_id, ())

    def _name(self, index: int) -> str | None:
        return None if index == NOBODY else self.members[index]


def _table(members: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Primary and backup by slot. One walk over points and slots together; a search for each slot would cost 3x."""
    if not members:
        return (NOBODY,) * SLOTS, (NOBODY,) * SLOTS
    index_of = {member: index for index, member in enumerate(members)}
    points = HashRing(list(members), vnodes=POINTS_PER_MEMBER, hash_fn=_position).get_points()
    positions = [position for position, _ in points]
    owners = [index_of[member] for _, member in points]
    others = _next_other(owners)
    primary, backup = [NOBODY] * SLOTS, [NOBODY] * SLOTS
    point = 0
    for position, slot in _slots_by_position():
        point = bisect_right(positions, position, lo=point)
        at = point if point < len(owners) else 0
        primary[slot] = owners[at]
        backup[slot] = others[at]
    return tuple(primary), tuple(backup)


def _next_other(owners: list[int]) -> list[int]:
    """For each point of the circle, the owner of the nearest later point that is another's; NOBODY if there is none."""
    others = [NOBODY] * len(owners)
    for _ in range(2):  # the second time round, the end knows of the beginning
        following, other = owners[0], others[0]
        for at in range(len(owners) - 1, -1, -1):
            if following != owners[at]:
                other = following
            others[at] = other
            following = owners[at]
    return others


def _slots_by_member(members: tuple[str, ...], table: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    slots: list[list[int]] = [[] for _ in members]
    for slot, index in enumerate(table):
        if index != NOBODY:
            slots[index].append(slot)
    return {member: tuple(owned) for member, owned in zip(members, slots, strict=True)}


def _digest(members: tuple[str, ...], primary: tuple[int, ...], backup: tuple[int, ...]) -> str:
    return blake2b(repr((members, primary, backup)).encode(), digest_size=8).hexdigest()
