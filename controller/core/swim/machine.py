"""SWIM (Das, Gupta, Motivala 2002) with Lifeguard (Dadgar, Phillips, Currey 2018): one member's side, without I/O.

    swim = Swim("c-1", "10.0.0.1:7000", ClusterSettings(), random.Random(7), now_ns)
    swim.greet((("c-2", "10.0.0.2:7000"),), now_ns)   # from the `controllers` table, or --join
    swim.receive(packet, now_ns)                      # whenever one arrives
    swim.wake(now_ns)                                 # when next_deadline() has come; too early is no harm
    swim.peer_refused("10.0.0.2:7000", now_ns)        # a connection there was refused: nothing listens
    swim.drain(now_ns)                                # I own no slots any more, but still gossip
    swim.leave(now_ns)                                # the last packets; afterwards nothing more comes

Each returns a Reaction: `packets` (SendPacket effects, in order), `changes` (Change(before, after), of me as well),
`lines` for the log, and `burials`. `slot_owners()` are the ids for Ring.build; they only change along with a Change in
a Reaction.
"""

from typing import Final, assert_never

from cronring.controller.core.chance import Chance
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.beliefs import Beliefs
from cronring.controller.core.swim.health import Health
from cronring.controller.core.swim.member import Member
from cronring.controller.core.swim.messages import (
    Ack,
    Message,
    Nack,
    Packet,
    Ping,
    PingRequest,
    SendPacket,
    Status,
    Sync,
)
from cronring.controller.core.swim.probe import Probe
from cronring.controller.core.swim.reaction import Reaction
from cronring.controller.core.swim.relays import Relay, Relays
from cronring.controller.core.swim.rumors import PACKET_UPDATES
from cronring.controller.core.swim.seeds import Seeds
from cronring.schema.log_line import Level

MS: Final = 1_000_000

# News goes to GOSSIP_FANOUT members at once, up to GOSSIPS_PER_PROBE times in a probe interval, while there is any. (As
# memberlist's gossip tick, but silent without news.) Otherwise news would wait for the next probe.
GOSSIP_FANOUT: Final = 3
GOSSIPS_PER_PROBE: Final = 5

FAREWELLS: Final = 10  # how many members hear from me directly that I leave
GREETINGS: Final = 3  # how many unknown peers are greeted at once; the others follow one by one
RECONNECTS_PER_SYNC: Final = 4  # within a sync interval dead members and unknown peers are tried this often,
RECONNECTS: Final = 3  # this many at once, in turn: up to 9 are sure to be tried within 10 s of a partition's end
FORGET_AFTER_SYNCS: Final = 30  # the dead and the left are passed on for this many sync intervals
NACK_PERCENT: Final = 80  # Lifeguard: a helper says so after 80 % of the probe timeout


class Swim:
    """One member. Every method takes the monotonic time in ns; it never goes back."""

    def __init__(self, member_id: str, address: str, settings: ClusterSettings, chance: Chance, now_ns: int) -> None:
        self._chance = chance
        self._health = Health()
        me = Member(member_id, address, Status.ALIVE, 0, False)
        self._beliefs = Beliefs(me, settings, chance, self._health, now_ns)
        self._relays = Relays()
        self._seeds = Seeds()
        self._untried: list[tuple[str, str]] = []  # out of reach, and not tried in this round yet
        self._sequence = 0
        self._probe: Probe | None = None
        self._helpers = settings.indirect_probes
        self._interval_ns = settings.probe_interval_ms * MS
        self._timeout_ns = settings.probe_timeout_ms * MS
        self._sync_ns = settings.sync_interval_ms * MS
        # Members started together must not act together, so each begins somewhere within the first interval.
        self._probe_at = now_ns + int(chance.random() * self._interval_ns)
        self._sync_at = now_ns + int(chance.random() * self._sync_ns)
        self._reconnect_at = now_ns + int(chance.random() * self._sync_ns / RECONNECTS_PER_SYNC)
        self._gossip_at: int | None = None
        self._gossiped_ns = now_ns - self._interval_ns
        self._deadline: int | None = min(self._probe_at, self._sync_at, self._reconnect_at)

    @property
    def me(self) -> Member:
        return self._beliefs.me

    @property
    def health(self) -> int:
        """0: well; up to 8: I seem to be slow myself (Lifeguard's local health)."""
        return self._health.score

    def members(self) -> tuple[Member, ...]:
        """Everyone remembered, in order of id: myself, and for a while also the dead and the left."""
        return self._beliefs.roster.all()

    def live(self) -> tuple[Member, ...]:
        """Alive or suspect, myself among them, in order of id."""
        return self._beliefs.roster.live()

    def slot_owners(self) -> tuple[str, ...]:
        """Ids, ascending, of those who may own slots: alive or suspect, and not draining."""
        return tuple(member.member_id for member in self.live() if member.owns_slots)

    def receive(self, packet: Packet, now_ns: int) -> Reaction:
        reaction = Reaction.nothing()
        # A reused address, or a proxy that loops, may bring me my own packets.
        if self._left or packet.sender_id == self.me.member_id:
            return reaction
        self._notice_sleep(now_ns, reaction)
        # Rumours before the message: the answer must already know what this packet tells.
        for update in packet.updates:
            self._beliefs.hear(update, now_ns, reaction)
        self._answer(packet, now_ns, reaction)
        # A stranger: exchange tables now. Until then its ring and mine may give a slot to different owners.
        if self._beliefs.roster.belief(packet.sender_id) is None:
            self._send_sync(packet.sender_id, packet.sender_address, reaction)
        return self._done(now_ns, reaction)

    def wake(self, now_ns: int) -> Reaction:
        """Do whatever is due."""
        reaction = Reaction.nothing()
        if self._left:
            return reaction
        self._notice_sleep(now_ns, reaction)
        self._continue_probe(now_ns, reaction)
        for relay in self._relays.to_nack(now_ns):
            self._send(relay.requester_id, relay.requester_address, Nack(relay.sequence), reaction)
        self._beliefs.bury_overdue(now_ns, reaction)
        self._sync_if_due(now_ns, reaction)
        self._reconnect_if_due(now_ns, reaction)
        self._gossip_if_due(now_ns, reaction)
        return self._done(now_ns, reaction)

    def greet(self, peers: tuple[tuple[str, str], ...], now_ns: int) -> Reaction:
        """Take in known addresses, as (member_id or "", address). Some that are no live members yet are asked for their
        tables.
        """
        reaction = Reaction.nothing()
        if self._left:
            return reaction
        self._notice_sleep(now_ns, reaction)
        self._seeds.replace(peers)
        strangers = self._seeds.strangers(self._beliefs.roster, self.me.address)
        for member_id, address in self._chance.sample(strangers, min(GREETINGS, len(strangers))):
            self._send_sync(member_id, address, reaction)
        return self._done(now_ns, reaction)

    def peer_refused(self, address: str, now_ns: int) -> Reaction:
        """A connection to this address was actively refused, so no process listens there: suspect it without a probe.

        It is a usual suspicion: it can be confirmed, run out, or be refuted. (The member may only be slow to listen, or
        may have moved its listener.)
        """
        reaction = Reaction.nothing()
        if self._left:
            return reaction
        self._notice_sleep(now_ns, reaction)
        for member_id in self._beliefs.roster.live_at(address):
            self._beliefs.accuse(member_id, now_ns, reaction)
        return self._done(now_ns, reaction)

    def drain(self, now_ns: int) -> Reaction:
        """Announce that I own no slots any more. Idempotent; never taken back."""
        reaction = Reaction.nothing()
        if not self._left and not self.me.draining:
            self._notice_sleep(now_ns, reaction)
            self._beliefs.announce(now_ns, reaction, draining=True)
            self._done(now_ns, reaction)
        return reaction

    def leave(self, now_ns: int) -> Reaction:
        """Say goodbye. Afterwards I answer nothing, and have no deadline."""
        reaction = Reaction.nothing()
        if self._left:
            return reaction
        others = self._beliefs.others()
        # docs/decisions/0014: under a higher incarnation, so that it wins over all rumours about me.
        self._beliefs.announce(now_ns, reaction, status=Status.LEFT)
        for member in self._chance.sample(others, min(FAREWELLS, len(others))):
            # To several at once, as I send no later packet. A member that misses it hears it from others, or suspects
            # me.
            farewell = Packet(self.me.member_id, self.me.address, (self.me,), Sync(False, ()))
            reaction.packets.append(SendPacket(member.address, farewell))
        self._deadline = None
        return reaction

    def next_deadline(self) -> int | None:
        """When wake() has something to do, in monotonic ns. None: I have left."""
        return self._deadline

    @property
    def _left(self) -> bool:
        return self.me.status is Status.LEFT

    def _notice_sleep(self, now_ns: int, reaction: Reaction) -> None:
        """If I come this late to my own deadline, I was stopped or starved. Answers may lie unread, so I must judge
        nobody yet.

        Every pending verdict waits for that delay, and a probe timeout more.
        """
        assert self._deadline is not None
        # docs/decisions/0014: a member that was stopped must not judge others
        late_ns = now_ns - self._deadline
        if late_ns <= self._timeout_ns:
            return
        delay_ns = late_ns + self._timeout_ns
        if self._probe is not None:
            self._probe.delay(delay_ns)
        self._relays.delay(delay_ns)
        self._beliefs.delay(delay_ns)
        self._probe_at = max(self._probe_at, now_ns)
        self._reconnect_at = max(self._reconnect_at, now_ns)
        self._gossip_at = None if self._gossip_at is None else max(self._gossip_at, now_ns)
        # Learn at once what I missed.
        self._sync_at = now_ns
        self._health.worse()
        reaction.log(Level.WARNING, "overslept", lateness_ms=late_ns // MS)

    def _answer(self, packet: Packet, now_ns: int, reaction: Reaction) -> None:
        message = packet.message
        match message:
            case Ping():
                self._on_ping(packet, message, reaction)
            case Ack():
                self._on_ack(message, reaction)
            case Nack():
                # Lifeguard: a living helper can't reach the target either. So the silence is not my own fault.
                if self._probe is not None and self._probe.sequence == message.sequence:
                    self._probe.nacks += 1
            case PingRequest():
                self._on_ping_request(packet, message, now_ns, reaction)
            case Sync():
                for update in message.table:
                    self._beliefs.hear(update, now_ns, reaction, by_sync=True)
                if message.request:
                    reply = Sync(False, self.members())
                    self._send(packet.sender_id, packet.sender_address, reply, reaction)
            case _:
                assert_never(message)

    def _on_ping(self, packet: Packet, ping: Ping, reaction: Reaction) -> None:
        if ping.target_id == self.me.member_id:
            self._send(packet.sender_id, packet.sender_address, Ack(ping.sequence), reaction)
        else:  # meant for a process that had this address before me: my ack would keep that member alive
            reaction.log(Level.DEBUG, "ping_for_predecessor", target=ping.target_id, sender=packet.sender_id)

    def _on_ack(self, ack: Ack, reaction: Reaction) -> None:
        probe = self._probe
        if probe is not None and probe.sequence == ack.sequence:
            # Only a ping that needed no helpers says that I am quick enough myself.
            if not probe.answered and not probe.asked:
                self._health.better()
            probe.answered = True
            return
        # Late or not: the requester's interval is longer than my timeout, and a late ack still saves the target.
        relay = self._relays.answered(ack.sequence)
        if relay is not None:
            self._send(relay.requester_id, relay.requester_address, Ack(relay.sequence), reaction)

    def _on_ping_request(self, packet: Packet, asked: PingRequest, now_ns: int, reaction: Reaction) -> None:
        self._sequence += 1
        nack_ns = now_ns + self._timeout_ns * NACK_PERCENT // 100
        relay = Relay(packet.sender_id, packet.sender_address, asked.sequence, nack_ns, now_ns + self._interval_ns)
        self._relays.add(self._sequence, relay)
        # Under a sequence of my own: the requester's number may be that of one of my own probes.
        self._send(asked.target_id, asked.target_address, Ping(self._sequence, asked.target_id), reaction)

    def _continue_probe(self, now_ns: int, reaction: Reaction) -> None:
        probe = self._probe
        if probe is not None and probe.next_ns() <= now_ns:
            if not probe.answered and not probe.asked:
                self._ask_helpers(probe, reaction)
            if probe.ends_ns <= now_ns:
                self._end_probe(probe, now_ns, reaction)
        if self._probe is None and self._probe_at <= now_ns:
            self._start_probe(now_ns, reaction)

    def _start_probe(self, now_ns: int, reaction: Reaction) -> None:
        self._probe_at = now_ns + self._interval_ns
        target_id = self._beliefs.targets.next()
        if target_id is None:
            return
        target = self._beliefs.roster.get(target_id)
        assert target is not None
        self._sequence += 1
        # Lifeguard's local health: if I seem slow myself, I accuse others later.
        self._probe = Probe(
            sequence=self._sequence,
            target_id=target_id,
            ask_helpers_ns=now_ns + self._health.scale(self._timeout_ns),
            ends_ns=now_ns + self._health.scale(self._interval_ns),
        )
        self._send(target_id, target.address, Ping(self._sequence, target_id), reaction)

    def _ask_helpers(self, probe: Probe, reaction: Reaction) -> None:
        probe.asked = True
        target = self._beliefs.roster.get(probe.target_id)
        if target is None or not target.gossips:
            return
        # A suspect makes a poor helper: its silence would tell nothing.
        able = [member for member in self._beliefs.alive_others() if member.member_id != probe.target_id]
        helpers = self._chance.sample(able, min(self._helpers, len(able)))
        for helper in helpers:
            request = PingRequest(probe.sequence, target.member_id, target.address)
            self._send(helper.member_id, helper.address, request, reaction)

    def _end_probe(self, probe: Probe, now_ns: int, reaction: Reaction) -> None:
        self._probe = None
        self._probe_at = now_ns
        if not probe.answered:
            # No helper answered either: more likely I am cut off (Lifeguard).
            if not probe.nacks:
                self._health.worse()
            self._beliefs.accuse(probe.target_id, now_ns, reaction)

    def _sync_if_due(self, now_ns: int, reaction: Reaction) -> None:
        """Exchange tables with a random member, to repair what rumours missed. Also bury what ended long ago."""
        if self._sync_at > now_ns:
            return
        self._sync_at = now_ns + self._sync_ns
        self._beliefs.roster.forget(ended_before_ns=now_ns - FORGET_AFTER_SYNCS * self._sync_ns)
        others = self._beliefs.others()
        for member in self._chance.sample(others, min(1, len(others))):
            self._send_sync(member.member_id, member.address, reaction)

    def _reconnect_if_due(self, now_ns: int, reaction: Reaction) -> None:
        """Greet some members out of reach, so that the two sides of a partition find each other when it heals."""
        if self._reconnect_at > now_ns:
            return
        self._reconnect_at = now_ns + self._sync_ns // RECONNECTS_PER_SYNC
        lost = [(member.member_id, member.address) for member in self._beliefs.roster.dead()]
        lost = list(dict.fromkeys(lost + self._seeds.strangers(self._beliefs.roster, self.me.address)))
        # In rounds: by chance alone, some members would wait for minutes.
        untried = [peer for peer in self._untried if peer in lost]
        if not untried:
            untried = self._chance.sample(lost, len(lost))
        self._untried = untried[RECONNECTS:]
        for member_id, address in untried[:RECONNECTS]:
            self._send_sync(member_id, address, reaction)

    def _gossip_if_due(self, now_ns: int, reaction: Reaction) -> None:
        if self._gossip_at is None or self._gossip_at > now_ns:
            return
        self._gossip_at = None
        self._gossiped_ns = now_ns
        alive = self._beliefs.alive_others()
        suspects = self._beliefs.suspect_others()
        if not alive and not suspects:
            self._beliefs.rumors.clear()  # a member that comes later gets the whole table
        # One of the suspects as well, so that it can refute without waiting to be probed.
        receivers = self._chance.sample(suspects, min(1, len(suspects)))
        receivers += self._chance.sample(alive, min(GOSSIP_FANOUT, len(alive)))
        for member in receivers:
            if len(self._beliefs.rumors):
                self._send(member.member_id, member.address, Sync(False, ()), reaction)

    def _done(self, now_ns: int, reaction: Reaction) -> Reaction:
        if self._gossip_at is None and len(self._beliefs.rumors):
            self._gossip_at = max(now_ns, self._gossiped_ns + self._interval_ns // GOSSIPS_PER_PROBE)
        deadlines = (
            self._probe.next_ns() if self._probe else self._probe_at,
            self._sync_at,
            self._reconnect_at,
            self._gossip_at,
            self._relays.next_ns(),
            self._beliefs.next_deadline(),
        )
        # A confirmation may move a suspect's deadline into the past. That is no sleep of mine, so the deadline is now.
        self._deadline = max(now_ns, min(deadline for deadline in deadlines if deadline is not None))
        return reaction

    def _send_sync(self, member_id: str, address: str, reaction: Reaction) -> None:
        self._send(member_id, address, Sync(True, self.members()), reaction)

    def _send(self, member_id: str, address: str, message: Message, reaction: Reaction) -> None:
        """Send a message with rumours. The first one is my belief about the receiver, if that is one to refute.

        This is Lifeguard's buddy system, also for the dead: a member that was only paused hears of it with the first
        answer.
        """
        belief = self._beliefs.roster.belief(member_id)
        told = () if belief is None or belief.status is Status.ALIVE else (belief,)
        # If several members die together, rumours sent to the dead must not count as told.
        counts = not told or not self._beliefs.alive_others()
        rumors = self._beliefs.rumors.take(self._beliefs.roster.live_count, PACKET_UPDATES - len(told), counts)
        packet = Packet(self.me.member_id, self.me.address, told + rumors, message)
        reaction.packets.append(SendPacket(address, packet))
