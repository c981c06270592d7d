"""One Swim told what others would say, and what it answers. Several of them together: tests/simulation."""

import random

from cronring.controller.core.node.effects import SendPacket
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.beliefs import INCARNATION_MAX, MEMBERS_MAX
from cronring.controller.core.swim.machine import FAREWELLS, FORGET_AFTER_SYNCS, GREETINGS, Swim
from cronring.controller.core.swim.messages import Ack, Message, Nack, Packet, Ping, PingRequest, Status, Sync, Update
from cronring.controller.core.swim.reaction import Reaction
from cronring.controller.core.swim.rumors import PACKET_UPDATES

MS = 1_000_000
SECOND = 1000 * MS
ALIVE, SUSPECT, DEAD, LEFT = Status.ALIVE, Status.SUSPECT, Status.DEAD, Status.LEFT


def new_swim(now_ns: int = 0, seed: int = 1) -> Swim:
    return Swim("me", "me:7", ClusterSettings(), random.Random(seed), now_ns)


def about(member_id: str, status: Status = ALIVE, incarnation: int = 0, accuser_id: str = "") -> Update:
    return Update(member_id, f"{member_id}:7", status, incarnation, False, accuser_id)


def packet(sender_id: str, message: Message, *updates: Update) -> Packet:
    return Packet(sender_id, f"{sender_id}:7", updates, message)


def told(*updates: Update, sender_id: str = "a") -> Packet:
    """Gossip: an empty table with rumours on its back."""
    return packet(sender_id, Sync(False, ()), *updates)


def swim_with(*member_ids: str, now_ns: int = 0) -> Swim:
    swim = new_swim(now_ns)
    swim.receive(packet("a", Sync(False, tuple(about(member_id) for member_id in member_ids))), now_ns)
    return swim


def status_of(swim: Swim, member_id: str) -> Status | None:
    return next((member.status for member in swim.members() if member.member_id == member_id), None)


def messages(reaction: Reaction, kind: type[Message]) -> list[SendPacket]:
    return [effect for effect in reaction.packets if isinstance(effect.packet.message, kind)]


def run(swim: Swim, until_ns: int, answers: bool = False) -> list[SendPacket]:
    """Wake it at each of its deadlines; `answers`: whoever is pinged acks at once."""
    sent: list[SendPacket] = []
    while (deadline := swim.next_deadline()) is not None and deadline <= until_ns:
        packets = swim.wake(deadline).packets
        sent += packets
        for effect in packets if answers else []:
            message = effect.packet.message
            if isinstance(message, Ping):
                swim.receive(packet(message.target_id, Ack(message.sequence)), deadline)
    return sent


def test_alone_it_owns_everything_and_says_nothing() -> None:
    swim = new_swim()
    assert swim.slot_owners() == ("me",)
    assert run(swim, 60 * SECOND) == []


def test_greeting_asks_a_few_unknown_peers_for_their_table_and_follows_up_with_the_others() -> None:
    swim = swim_with("a")
    peers = tuple((name, f"{name}:7") for name in ("me", "a", "b", "c", "d", "e", "f"))
    greeted = [effect.address for effect in messages(swim.greet(peers, 0), Sync)]
    assert len(greeted) == GREETINGS
    later = [
        effect.address for effect in run(swim, 10 * SECOND, answers=True) if isinstance(effect.packet.message, Sync)
    ]
    assert {"b:7", "c:7", "d:7", "e:7", "f:7"} <= {*greeted, *later}
    assert not {"me:7"} & {*greeted, *later}


def test_a_sync_request_is_answered_with_the_whole_table() -> None:
    swim = swim_with("a", "b")
    reaction = swim.receive(packet("c", Sync(True, (about("c"),))), 0)
    (reply,) = messages(reaction, Sync)
    assert reply.address == "c:7"
    assert isinstance(reply.packet.message, Sync)
    assert not reply.packet.message.request
    assert [update.member_id for update in reply.packet.message.table] == ["a", "b", "c", "me"]
    assert [change.after.member_id for change in reaction.changes] == ["c"]


def test_an_unknown_sender_is_asked_who_it_is() -> None:
    swim = new_swim()
    reaction = swim.receive(packet("a", Ping(3, "me")), 0)
    assert [effect.packet.message for effect in messages(reaction, Ack)] == [Ack(3)]
    (request,) = messages(reaction, Sync)
    assert isinstance(request.packet.message, Sync)
    assert request.packet.message.request


def test_a_ping_for_the_process_that_had_this_address_before_is_not_acked() -> None:
    reaction = swim_with("a").receive(packet("a", Ping(3, "predecessor")), 0)
    assert reaction.packets == []
    assert [line.event for line in reaction.lines] == ["ping_for_predecessor"]


def test_its_own_packets_are_ignored() -> None:
    assert swim_with("a").receive(packet("me", Ping(3, "me")), 0) == Reaction.nothing()


def test_a_probe_goes_direct_then_through_helpers_then_accuses() -> None:
    swim = swim_with("a", "b", "c")
    sent: list[SendPacket] = []
    while all(member.status is ALIVE for member in swim.live()):
        sent += swim.wake(swim.next_deadline() or 0).packets
    ping = next(effect for effect in sent if isinstance(effect.packet.message, Ping))
    assert isinstance(ping.packet.message, Ping)
    target = ping.packet.message.target_id
    asked = [effect.packet.message for effect in sent if isinstance(effect.packet.message, PingRequest)]
    assert {request.target_id for request in asked} == {target}
    assert [request.sequence for request in asked] == [ping.packet.message.sequence] * 2
    assert status_of(swim, target) is SUSPECT
    assert swim.slot_owners() == ("a", "b", "c", "me")


def test_an_answer_through_a_helper_saves_the_target() -> None:
    swim = swim_with("a", "b")
    while not (asked := messages(swim.wake(swim.next_deadline() or 0), PingRequest)):
        pass
    request = asked[0].packet.message
    assert isinstance(request, PingRequest)
    now = swim.next_deadline() or 0
    swim.receive(packet("b", Ack(request.sequence)), now - 1)
    swim.wake(now)
    assert [member.status for member in swim.live()] == [ALIVE] * 3


def test_a_failed_probe_counts_against_me_only_if_no_helper_was_heard() -> None:
    for nacks, health in ((0, 1), (1, 0)):
        swim = swim_with("a", "b", "c")
        while not (asked := messages(swim.wake(swim.next_deadline() or 0), PingRequest)):
            pass
        request = asked[0].packet.message
        assert isinstance(request, PingRequest)
        for _ in range(nacks):
            swim.receive(packet("b", Nack(request.sequence)), swim.next_deadline() or 0)
        while status_of(swim, request.target_id) is ALIVE:
            swim.wake(swim.next_deadline() or 0)
        assert swim.health == health


def test_a_helper_pings_passes_the_ack_on_and_nacks_in_time() -> None:
    swim = swim_with("a", "b")
    reaction = swim.receive(packet("a", PingRequest(77, "b", "b:7")), 0)
    (ping,) = messages(reaction, Ping)
    assert isinstance(ping.packet.message, Ping)
    assert (ping.address, ping.packet.message.target_id) == ("b:7", "b")
    nacks = [effect for effect in run(swim, 160 * MS) if isinstance(effect.packet.message, Nack)]
    assert [(effect.address, effect.packet.message) for effect in nacks] == [("a:7", Nack(77))]
    late = swim.receive(packet("b", Ack(ping.packet.message.sequence)), 161 * MS)
    assert [(effect.address, effect.packet.message) for effect in messages(late, Ack)] == [("a:7", Ack(77))]


def test_a_suspect_that_does_not_refute_is_dead_and_off_the_ring() -> None:
    swim = swim_with("a")
    swim.receive(told(about("b")), 0)
    swim.receive(told(about("b", SUSPECT, accuser_id="a")), 0)
    assert swim.slot_owners() == ("a", "b", "me")
    run(swim, 20 * SECOND)
    assert status_of(swim, "b") is DEAD
    assert "b" not in swim.slot_owners()


def test_a_refutation_with_a_higher_incarnation_clears_a_suspect_and_raises_the_dead() -> None:
    swim = swim_with("a", "b")
    swim.receive(told(about("b", SUSPECT)), 0)
    swim.receive(told(about("b", ALIVE, 0)), 0)
    assert status_of(swim, "b") is SUSPECT
    swim.receive(told(about("b", ALIVE, 1)), 0)
    assert status_of(swim, "b") is ALIVE
    swim.receive(told(about("b", SUSPECT, 1)), 0)
    swim.receive(told(about("b", DEAD, 1)), 0)
    assert status_of(swim, "b") is DEAD
    reaction = swim.receive(told(about("b", ALIVE, 2)), 0)
    assert [(change.before and change.before.status, change.after.status) for change in reaction.changes] == [
        (DEAD, ALIVE)
    ]


def test_a_death_out_of_the_blue_is_a_suspicion_first() -> None:
    for by_table in (False, True):
        swim = swim_with("a", "b", "c", "d", "e")
        death = about("b", DEAD, accuser_id="c")
        swim.receive(packet("c", Sync(False, (death,))) if by_table else told(death, sender_id="c"), 0)
        assert status_of(swim, "b") is SUSPECT
        run(swim, 2100 * MS)  # well confirmed, so the minimum
        assert status_of(swim, "b") is DEAD


def test_a_suspect_is_dead_as_soon_as_somebody_says_so_but_not_by_an_old_table() -> None:
    swim = swim_with("a", "b", "c")
    swim.receive(told(about("b", SUSPECT, accuser_id="a")), 0)
    swim.receive(packet("c", Sync(False, (about("b", DEAD, accuser_id="c"),))), 0)
    assert status_of(swim, "b") is SUSPECT
    swim.receive(told(about("b", DEAD, accuser_id="a")), 0)
    assert status_of(swim, "b") is DEAD


def test_it_refutes_what_is_said_of_itself_with_the_next_packet() -> None:
    for status in (SUSPECT, DEAD):
        swim = swim_with("a")
        reaction = swim.receive(packet("a", Ping(1, "me"), about("me", status, 4)), 0)
        assert swim.me.incarnation == 5
        (ack,) = messages(reaction, Ack)
        assert about("me", ALIVE, 5) in ack.packet.updates
        assert swim.health == 1


def test_it_refutes_again_when_the_refutation_was_lost() -> None:
    swim = swim_with("a")
    swim.receive(told(about("me", SUSPECT)), 0)
    run(swim, 2 * SECOND, answers=True)
    (quiet,) = messages(swim.receive(packet("a", Ping(1, "me")), 2 * SECOND), Ack)
    assert quiet.packet.updates == ()
    (ack,) = messages(swim.receive(packet("a", Ping(2, "me"), about("me", SUSPECT)), 2 * SECOND), Ack)
    assert about("me", ALIVE, 1) in ack.packet.updates
    assert swim.me.incarnation == 1


def test_whoever_is_believed_dead_is_told_so_with_the_first_answer() -> None:
    swim = swim_with("a", "b")
    swim.receive(told(about("b", SUSPECT)), 0)
    swim.receive(told(about("b", DEAD, accuser_id="a")), 0)
    (ack,) = messages(swim.receive(packet("b", Ping(9, "me")), 0), Ack)
    assert ack.packet.updates[0] == about("b", DEAD, accuser_id="a")


def test_the_buried_are_told_as_well() -> None:
    swim = swim_with("a", "b")
    swim.receive(told(about("b", SUSPECT)), 0)
    swim.receive(told(about("b", DEAD)), 0)
    run(swim, (FORGET_AFTER_SYNCS + 2) * 10 * SECOND, answers=True)
    assert status_of(swim, "b") is None
    now = swim.next_deadline() or 0
    (ack,) = messages(swim.receive(packet("b", Ping(9, "me")), now), Ack)
    assert ack.packet.updates[0] == about("b", DEAD)
    assert swim.receive(packet("a", Sync(False, (about("b"),))), now).changes == []
    swim.receive(told(about("b", ALIVE, 1)), now)
    assert status_of(swim, "b") is ALIVE


def test_who_left_is_gone_for_good() -> None:
    swim = swim_with("a", "b")
    swim.receive(told(about("b", LEFT, 1)), 0)
    swim.receive(told(about("b", ALIVE, 0)), 0)
    swim.receive(told(about("b", DEAD, 1)), 0)
    assert status_of(swim, "b") is LEFT
    assert swim.slot_owners() == ("a", "me")


def test_whoever_is_said_to_have_left_and_has_not_refutes_it() -> None:
    """A packet of garbage took a living controller off every ring, for as long as its process lived."""
    swim = swim_with("a", "b")
    reaction = swim.receive(told(about("me", LEFT, 7)), 0)
    assert (swim.me.status, swim.me.incarnation) == (ALIVE, 8)
    assert [change.after for change in reaction.changes] == [swim.me]
    swim.receive(told(about("b", LEFT, 7)), 0)
    swim.receive(told(about("b", ALIVE, 8)), 0)
    assert status_of(swim, "b") is ALIVE


def test_what_is_said_at_the_highest_incarnation_can_be_refuted() -> None:
    """It could not: the refutation lay above what anybody hears."""
    swim, other = swim_with("a"), swim_with("a", "me2")
    swim.receive(told(about("me", SUSPECT, INCARNATION_MAX)), 0)
    assert swim.me.incarnation == 0
    swim.receive(told(about("me", SUSPECT, INCARNATION_MAX - 1)), 0)
    assert swim.me.incarnation == INCARNATION_MAX
    other.receive(told(about("me2", DEAD, INCARNATION_MAX - 1)), 0)
    other.receive(told(about("me2", ALIVE, INCARNATION_MAX)), 0)
    assert status_of(other, "me2") is ALIVE


def test_members_that_are_made_up_are_bounded() -> None:
    swim = swim_with("a")
    for number in range(MEMBERS_MAX + 50):
        swim.receive(told(about(f"ghost{number:04}", ALIVE, 0)), 0)
    assert len(swim.live()) == MEMBERS_MAX


def test_draining_keeps_gossiping_but_owns_nothing() -> None:
    swim = swim_with("a")
    reaction = swim.drain(0)
    assert (swim.me.draining, swim.me.incarnation) == (True, 1)
    assert [change.after for change in reaction.changes] == [swim.me]
    assert swim.slot_owners() == ("a",)
    assert swim.drain(0) == Reaction.nothing()
    (pushed,) = messages(swim.wake(swim.next_deadline() or 0), Sync)
    assert swim.me in pushed.packet.updates
    swim.receive(told(about("me", SUSPECT, 1)), swim.next_deadline() or 0)
    assert (swim.me.draining, swim.me.incarnation) == (True, 2)


def test_leaving_says_goodbye_to_some_and_is_silent_afterwards() -> None:
    swim = swim_with(*(f"m{number}" for number in range(30)))
    reaction = swim.leave(0)
    assert len(reaction.packets) == FAREWELLS
    assert len({effect.address for effect in reaction.packets}) == FAREWELLS
    assert all(effect.packet.updates[0].status is LEFT for effect in reaction.packets)
    assert swim.next_deadline() is None
    for after in (
        swim.leave(0),
        swim.drain(0),
        swim.wake(0),
        swim.greet((("z", "z:7"),), 0),
        swim.peer_refused("m1:7", 0),
        swim.receive(packet("m1", Ping(1, "me")), 0),
    ):
        assert after == Reaction.nothing()


def test_a_refused_connection_starts_a_suspicion_at_once_and_can_be_refuted() -> None:
    swim = swim_with("a", "b")
    reaction = swim.peer_refused("b:7", 0)
    assert [(change.after.member_id, change.after.status) for change in reaction.changes] == [("b", SUSPECT)]
    assert swim.peer_refused("b:7", 0).changes == []
    assert swim.peer_refused("nobody:7", 0).changes == []
    swim.receive(told(about("b", ALIVE, 1)), 0)
    assert status_of(swim, "b") is ALIVE


def test_with_nobody_to_confirm_a_suspicion_runs_out_after_its_minimum() -> None:
    swim = swim_with("a")
    swim.peer_refused("a:7", 0)
    run(swim, 1999 * MS)
    assert status_of(swim, "a") is SUSPECT
    run(swim, 2000 * MS)
    assert status_of(swim, "a") is DEAD


def test_whoever_had_my_address_before_me_is_suspected_at_once() -> None:
    swim = new_swim()
    predecessor = Update("old", "me:7", ALIVE, 3, False)
    swim.receive(packet("a", Sync(False, (about("a"), predecessor))), 0)
    assert status_of(swim, "old") is SUSPECT


def test_two_ids_at_one_address_are_probed_before_everybody_else() -> None:
    swim = swim_with("a", "b", "c", "d", "old")
    swim.receive(told(Update("new", "old:7", ALIVE, 0, False)), 0)
    pinged = [
        effect.packet.message.target_id
        for effect in run(swim, 1500 * MS, answers=True)
        if isinstance(effect.packet.message, Ping)
    ]
    assert set(pinged[:2]) == {"old", "new"}


def test_after_a_sleep_nobody_is_judged_by_what_is_still_unread() -> None:
    swim = swim_with("a", "b", "c")
    run(swim, 1 * SECOND, answers=True)
    swim.peer_refused("a:7", 1 * SECOND)
    late = 60 * SECOND
    reaction = swim.wake(late)
    assert [line.event for line in reaction.lines] == ["overslept"]
    assert status_of(swim, "a") is SUSPECT
    assert [effect for effect in messages(reaction, Sync) if effect.packet.message == Sync(True, swim.members())]
    swim.receive(told(about("a", ALIVE, 1)), late)
    run(swim, late + 5 * SECOND, answers=True)
    assert {member.status for member in swim.live()} == {ALIVE}


def test_a_deadline_that_moved_into_the_past_is_no_sleep() -> None:
    swim = swim_with("a", "b", "c")
    swim.peer_refused("b:7", 0)
    run(swim, 5 * SECOND, answers=True)
    assert status_of(swim, "b") is SUSPECT
    now = 5 * SECOND
    swim.receive(told(about("b", SUSPECT, accuser_id="a"), about("b", SUSPECT, accuser_id="c"), sender_id="a"), now)
    assert swim.next_deadline() == now
    reaction = swim.wake(now)
    assert "overslept" not in [line.event for line in reaction.lines]
    assert status_of(swim, "b") is DEAD


def test_packets_are_bounded() -> None:
    swim = new_swim()
    swim.receive(packet("a", Sync(False, tuple(about(f"m{number}") for number in range(500)))), 0)
    for effect in run(swim, 3 * SECOND):
        assert len(effect.packet.updates) <= PACKET_UPDATES


def test_absurd_incarnations_are_refused() -> None:
    swim = swim_with("a")
    reaction = swim.receive(told(about("me", SUSPECT, 2**63), about("a", DEAD, 2**63)), 0)
    assert [line.event for line in reaction.lines] == ["absurd_incarnation"] * 2
    assert (swim.me.incarnation, status_of(swim, "a")) == (0, ALIVE)


def test_the_dead_are_tried_again_in_turn() -> None:
    swim = swim_with("a", *(f"d{number}" for number in range(6)))
    for number in range(6):
        swim.receive(told(about(f"d{number}", SUSPECT)), 0)
        swim.receive(told(about(f"d{number}", DEAD)), 0)
    tried = [effect.address for effect in run(swim, 7500 * MS, answers=True) if effect.address.startswith("d")]
    assert {f"d{number}:7" for number in range(6)} <= set(tried)
