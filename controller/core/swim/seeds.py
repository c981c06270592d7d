"""Addresses at which members may live that I don't know, or no longer know."""

from typing import Final

from cronring.controller.core.swim.messages import Status
from cronring.controller.core.swim.roster import Roster

CAPACITY: Final = 1024


class Seeds:
    """Those from --join stay for ever. Of those with an id (the `controllers` table) only the newest list counts."""

    __slots__ = ("_joined", "_listed")

    def __init__(self) -> None:
        self._joined: dict[str, None] = {}
        self._listed: dict[str, str] = {}  # address -> member_id

    def replace(self, peers: tuple[tuple[str, str], ...]) -> None:
        """Take in (member_id or "", address) pairs."""
        for member_id, address in peers:
            if not member_id and len(self._joined) < CAPACITY:
                self._joined[address] = None
        listed = {address: member_id for member_id, address in peers[:CAPACITY] if member_id}
        if listed or not peers:
            self._listed = listed

    def strangers(self, roster: Roster, my_address: str) -> list[tuple[str, str]]:
        """(member_id or "", address) of seeds that are no live members: the dead too, but not those that left."""
        live = {member.address for member in roster.live()}
        strangers = [("", address) for address in self._joined if address not in self._listed]
        for address, member_id in self._listed.items():
            belief = roster.belief(member_id)
            if belief is None or belief.status is Status.DEAD:
                strangers.append((member_id, address))
        return [(member_id, address) for member_id, address in strangers if address not in live | {my_address}]
