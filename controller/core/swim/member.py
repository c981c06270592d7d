"""A member as it is believed to be, and the one rule that decides which of two beliefs stands."""

from typing import NamedTuple

from cronring.controller.core.swim.messages import Status, Update


class Member(Update):
    """A belief that I hold. It has the shape of the rumour it came from, so it can be passed on as it is."""

    __slots__ = ()

    @property
    def gossips(self) -> bool:
        """Takes part in the protocol: it is probed, synced with, and told rumours."""
        return self.status in (Status.ALIVE, Status.SUSPECT)

    @property
    def owns_slots(self) -> bool:
        """May stand on the ring. A suspect keeps its slots, so that flapping does not make the ring churn."""
        return self.gossips and not self.draining


class MemberChange(NamedTuple):
    """A belief that became another. `before` None: not heard of until now."""

    before: Member | None
    after: Member


def supersedes(heard: Update, held: Update) -> bool:
    """Whether what is heard of a member replaces what is held of the same member.

    SWIM's rule (section 4.2 of the paper) with memberlist's change that makes DEAD refutable, so that partitions heal:

    1. The higher incarnation wins. Only the member itself raises its own: to refute, or to announce that it drains or
       leaves. So no true news is newer than its leaving. (A false LEFT is refuted.)
    2. At the same incarnation the worse news wins: LEFT over DEAD over SUSPECT over ALIVE.
    3. At the same status too, draining wins. (Honest members never make the two differ only there.)

    So beliefs are totally ordered, and the roster that remains does not depend on the order in which rumours came.
    """
    # docs/decisions/0014: no status is final, LEFT neither
    return _rank(heard) > _rank(held)


def _rank(update: Update) -> tuple[int, int, bool]:
    return (update.incarnation, update.status, update.draining)
