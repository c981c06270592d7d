"""What I believe of every member, myself included, and what follows from what I hear or find out."""

from typing import Final

from cronring.controller.core.chance import Chance
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.health import Health
from cronring.controller.core.swim.member import Member, MemberChange, supersedes
from cronring.controller.core.swim.messages import Status, Update
from cronring.controller.core.swim.probe import TargetOrder
from cronring.controller.core.swim.reaction import Reaction
from cronring.controller.core.swim.roster import Roster
from cronring.controller.core.swim.rumors import Rumors
from cronring.controller.core.swim.suspicion import CONFIRMATIONS, Suspicion, minimum_ns
from cronring.schema.log_line import Level

# No member refutes that often. A made-up incarnation of this size would push my own out of the wire's range. At the
# limit itself only ALIVE is heard: it refutes an accusation just below, and needs no refutation itself.
INCARNATION_MAX: Final = 1 << 62
# Far above what a ring is built for: more members would be made up.
MEMBERS_MAX: Final = 256

_LEVELS: Final = {
    Status.ALIVE: Level.INFO,
    Status.SUSPECT: Level.INFO,
    Status.DEAD: Level.WARNING,
    Status.LEFT: Level.INFO,
}


class Beliefs:
    """Roster, suspicions, rumours and probe order, kept in step. Sends nothing itself."""

    def __init__(self, me: Member, settings: ClusterSettings, chance: Chance, health: Health, now_ns: int) -> None:
        self.me = me
        self.roster = Roster()
        self.rumors = Rumors()
        self.targets = TargetOrder(chance)
        self._settings = settings
        self._chance = chance
        self._health = health
        self._suspicions: dict[str, Suspicion] = {}
        self._sorted_from: tuple[Member, ...] | None = None
        self._others: tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]] = ((), (), ())
        self.roster.merge(me, now_ns)
        self.rumors.add(me)

    def others(self) -> tuple[Member, ...]:
        """Alive or suspect, without me, in order of id."""
        return self._others_by_status()[0]

    def alive_others(self) -> tuple[Member, ...]:
        """Alive and not suspect, without me, in order of id."""
        return self._others_by_status()[1]

    def suspect_others(self) -> tuple[Member, ...]:
        """In order of id."""
        return self._others_by_status()[2]

    def hear(self, update: Update, now_ns: int, reaction: Reaction, by_sync: bool = False) -> None:
        """Take in what somebody says. `by_sync`: it stood in a whole table, so it may be old."""
        # First of all, so that an absurd value can't raise my own incarnation.
        if update.incarnation >= INCARNATION_MAX + (update.status is Status.ALIVE):
            reaction.log(Level.WARNING, "absurd_incarnation", member=update.member_id)
        elif update.member_id == self.me.member_id:
            self._hear_of_me(update, now_ns, reaction)
        else:
            self._hear_of_other(update, now_ns, reaction, by_sync)

    def accuse(self, member_id: str, now_ns: int, reaction: Reaction) -> None:
        """I found out myself that this member does not answer."""
        held = self.roster.get(member_id)
        if held is None or not held.gossips or member_id == self.me.member_id:
            return
        accusation = held._replace(status=Status.SUSPECT, accuser_id=self.me.member_id)
        if held.status is Status.SUSPECT:
            self._confirm(accusation)
        else:
            self._merge(accusation, now_ns, reaction)

    def bury_overdue(self, now_ns: int, reaction: Reaction) -> None:
        """Declare suspects dead that have not refuted in time."""
        # Each member judges for itself, by the age of its own suspicion. The verdict is gossip, and can be refuted.
        # Nobody waits until all agree, as only PostgreSQL decides who may claim.
        overdue = [member_id for member_id, deadline_ns in self._deadlines_ns() if deadline_ns <= now_ns]
        for member_id in overdue:
            held = self.roster.get(member_id)
            assert held is not None
            self._merge(held._replace(status=Status.DEAD, accuser_id=self.me.member_id), now_ns, reaction)

    def announce(self, now_ns: int, reaction: Reaction, status: Status = Status.ALIVE, draining: bool = False) -> None:
        """Say something new of myself, under a higher incarnation. Draining is never taken back."""
        self._reincarnate(self.me.incarnation + 1, status, draining or self.me.draining, now_ns, reaction)

    def next_deadline(self) -> int | None:
        """When the next suspect is overdue."""
        return min((deadline_ns for _, deadline_ns in self._deadlines_ns()), default=None)

    def delay(self, by_ns: int) -> None:
        """I slept: refutations may lie unread, so every suspect gets the time back."""
        for suspicion in self._suspicions.values():
            suspicion.started_ns += by_ns

    def _others_by_status(self) -> tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]]:
        live = self.roster.live()
        if live is not self._sorted_from:
            others = [member for member in live if member.member_id != self.me.member_id]
            alive = [member for member in others if member.status is Status.ALIVE]
            suspect = [member for member in others if member.status is Status.SUSPECT]
            self._sorted_from, self._others = live, (tuple(others), tuple(alive), tuple(suspect))
        return self._others

    def _deadlines_ns(self) -> list[tuple[str, int]]:
        """When each suspect counts as dead. A suspect that I accuse myself won't confirm my other accusations, so it
        isn't counted.
        """
        if not self._suspicions:
            return []
        live = self.roster.live_count
        min_ns = minimum_ns(self._settings.suspicion_multiplier, self._settings.probe_interval_ms * 1_000_000, live)
        mine = sum(self.me.member_id in suspicion.accusers for suspicion in self._suspicions.values())
        deadlines: list[tuple[str, int]] = []
        for member_id, suspicion in self._suspicions.items():
            possible = live - 1 - mine - (self.me.member_id not in suspicion.accusers)
            deadlines.append((member_id, suspicion.deadline_ns(min_ns, possible)))
        return deadlines

    def _hear_of_me(self, update: Update, now_ns: int, reaction: Reaction) -> None:
        """Refute: I live, under an incarnation above the one in the rumour. (After leaving I keep silent.) A rumour
        about an older incarnation has missed my refutation, so I tell that again.
        """
        # LEFT can be refuted (docs/decisions/0014). But I have really left: a refutation would put me back on the ring.
        if self.me.status is Status.LEFT:
            return
        if not supersedes(update, self.me):
            if update.status is not Status.ALIVE:
                self.rumors.add(self.me)
            return
        if update.status is not Status.ALIVE:
            # I was silent for so long that others accused me. So the silence of others may be my own fault, too.
            self._health.worse()
            reaction.log(
                Level.WARNING, "refuted", status=update.status.name.lower(), accuser=update.accuser_id or "unknown"
            )
        if update.status is Status.DEAD:
            # A member that believed it may have adopted what I hold: core/node/verifying.py looks that up.
            reaction.burials.append(update)
        # Only a higher incarnation wins over an accusation, and only the member itself may raise its own.
        self._reincarnate(update.incarnation + 1, Status.ALIVE, self.me.draining, now_ns, reaction)

    def _reincarnate(self, incarnation: int, status: Status, draining: bool, now_ns: int, reaction: Reaction) -> None:
        self.me = Member(self.me.member_id, self.me.address, status, incarnation, draining)
        self._merge(self.me, now_ns, reaction)

    def _hear_of_other(self, update: Update, now_ns: int, reaction: Reaction, by_sync: bool) -> None:
        held = self.roster.get(update.member_id)
        if held == update:  # most entries of a table, and repeated accusations, are no news
            return
        if held is None and self.roster.live_count >= MEMBERS_MAX and update.status in (Status.ALIVE, Status.SUSPECT):
            reaction.log(Level.WARNING, "too_many_members", members=MEMBERS_MAX, address=update.address)
            return
        softened = self._soften(update, held, by_sync)
        if held is not None and (held.status, held.incarnation) == (softened.status, softened.incarnation):
            self._confirm(softened)
        self._merge(softened, now_ns, reaction)
        # docs/decisions/0014: the suspect gets the shortest wait, as if all had confirmed the suspicion.
        if softened is not update and (suspicion := self._suspicions.get(update.member_id)) is not None:
            suspicion.verdict = True

    # docs/decisions/0014: when a partition heals, no living member may lose its place on the ring
    def _soften(self, update: Update, held: Member | None, by_sync: bool) -> Update:
        """Take the death of a member that I believe to be well as a suspicion, but a fully confirmed one.

        When a partition heals, each side holds the other's members dead. If that were believed at once, the ring would
        lose living members until they refute. memberlist does so for tables (mergeState). Here a rumour about a member
        that I don't suspect counts the same. I missed the suspicion, so its refutation may be on its way.
        """
        if update.status is not Status.DEAD or held is None or not supersedes(update, held) or not held.gossips:
            return update
        # I have heard no suspicion of a higher incarnation either.
        if by_sync or held.status is Status.ALIVE or update.incarnation > held.incarnation:
            return update._replace(status=Status.SUSPECT)
        return update

    def _confirm(self, accusation: Update) -> None:
        """The same accusation again: it is news only if it comes from another accuser."""
        suspicion = self._suspicions.get(accusation.member_id)
        if suspicion is not None and accusation.accuser_id and suspicion.accuse(accusation.accuser_id):
            self.rumors.add(accusation)

    def _merge(self, update: Update, now_ns: int, reaction: Reaction) -> None:
        change = self.roster.merge(update, now_ns)
        if change is None:
            return
        reaction.changes.append(change)
        self.rumors.add(change.after)
        if change.after.member_id != self.me.member_id:
            self._follow(change, now_ns, reaction)

    def _follow(self, change: MemberChange, now_ns: int, reaction: Reaction) -> None:
        """Keep suspicions and probe order in step with the roster."""
        before, after = change
        if after.status is Status.SUSPECT:
            self._suspicions[after.member_id] = Suspicion(now_ns, [after.accuser_id] if after.accuser_id else [])
            self._second_opinion(after)
        else:
            self._suspicions.pop(after.member_id, None)
        if not after.gossips:
            self.targets.remove(after.member_id)
        elif before is None or not before.gossips:
            self.targets.add(after.member_id)
            self._look_at_address(after, now_ns, reaction)
        if before is None or before.status is not after.status:
            self._log(change, reaction)

    def _second_opinion(self, suspect: Member) -> None:
        """Soon probe a member that others accuse, so that confirmations come within an interval.

        About 2 K members do so, in a cluster of any size, or a suspect in a large cluster would be flooded.
        """
        if suspect.accuser_id == self.me.member_id:
            return
        if self._chance.random() * self.roster.live_count < 2 * CONFIRMATIONS:
            self.targets.prefer((suspect.member_id,))

    def _look_at_address(self, newcomer: Member, now_ns: int, reaction: Reaction) -> None:
        """Two ids at one address: one process followed the other. A probe tells which one is gone."""
        # I listen at that address myself, so that member is gone.
        if newcomer.address == self.me.address:
            self.accuse(newcomer.member_id, now_ns, reaction)
            return
        same = self.roster.live_at(newcomer.address)
        if len(same) > 1:
            self.targets.prefer(same)

    def _log(self, change: MemberChange, reaction: Reaction) -> None:
        after = change.after
        reaction.log(
            _LEVELS[after.status],
            f"member_{after.status.name.lower()}",
            member=after.member_id,
            address=after.address,
            incarnation=after.incarnation,
            accuser=after.accuser_id,
        )
