"""Gossip says who lives, the `controllers` table who belongs: nobody owns slots by a packet alone."""

from cronring.controller.core.node import effects, events
from cronring.controller.core.swim.messages import Packet, Status, Sync, Update
from tests.unit.core.told import ROWS, Told

STRANGER = "intruder"


def _appears(told: Told, member_id: str, status: Status = Status.ALIVE) -> None:
    update = Update(member_id, f"host:{member_id}", status, 1, False)
    told.tell(events.PacketReceived(Packet(member_id, f"host:{member_id}", (update,), Sync(False, (update,)))))


def _renew(told: Told, *rows: str) -> None:
    while not any(isinstance(effect, effects.RenewLease) for effect in told.effects):
        told.wait(50)
    told.renewed(controllers=tuple((row, f"api:{row}") for row in rows))


def test_a_member_without_a_row_owns_nothing() -> None:
    told = Told()
    told.ready()
    _appears(told, STRANGER)
    assert STRANGER in {member.member_id for member in told.node.members()}
    assert list(told.node.ring.members) == ["c1"]
    _renew(told, "c1", "c2")
    assert list(told.node.ring.members) == ["c1"]


def test_it_is_named_to_no_runner() -> None:
    told = Told()
    told.ready()
    _appears(told, STRANGER)
    _appears(told, "c2")
    assert [controller_id for controller_id, _ in told.node.peers] == ["c1", "c2"]


def test_runners_hear_of_it_once_this_controller_reads_no_rows() -> None:
    """Who came since PostgreSQL was cut off here has a row, and may declare runners lost: it isn't away for all."""
    told = Told()
    told.ready()
    _renew(told, "c1")
    _appears(told, "c2")
    told.tell(events.RunnerBeat("r1", 7, False, False, 0))
    assert told.one(effects.AckBeat).peers == (("c1", "host:1"),)
    told.wait(1_200)
    told.fail(told.one(effects.RenewLease))
    told.wait(3_000)
    told.take(effects.AckBeat)
    told.tell(events.RunnerBeat("r1", 8, False, False, 0))
    answer = told.one(effects.AckBeat)
    assert (answer.database_ok, answer.peers) == (False, (("c1", "host:1"), ("c2", "host:c2")))
    _appears(told, "c2", Status.LEFT)
    told.tell(events.RunnerBeat("r1", 9, False, False, 0))
    assert told.one(effects.AckBeat).peers == (("c1", "host:1"),)


def test_who_has_a_row_gets_its_slots_with_the_next_renewal() -> None:
    told = Told()
    told.ready()
    _renew(told, "c1")
    _appears(told, "c2")
    assert list(told.node.ring.members) == ["c1"]
    _renew(told, "c1", "c2")
    assert list(told.node.ring.members) == ["c1", "c2"]


def test_who_loses_its_row_loses_its_slots() -> None:
    """It has had no lease for a minute, so it claims nothing, however alive it is."""
    told = Told()
    told.ready()
    _appears(told, "c2")
    assert list(told.node.ring.members) == ["c1", "c2"]
    _renew(told, "c1")
    assert list(told.node.ring.members) == ["c1"]


def test_a_stranger_keeps_nobody_from_adopting() -> None:
    """The living member whose id comes next adopts from the dead: a made-up one would be next, and adopt nothing."""
    told = Told()
    told.ready()
    _appears(told, "c2")
    _appears(told, "c2a")  # next after c2, and made up
    assert len(ROWS) == 9
    _appears(told, "c2", Status.SUSPECT)
    _appears(told, "c2", Status.LEFT)
    assert told.take(effects.Adopt)
