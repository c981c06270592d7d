"""A drill: the node claims nothing for a while, and everything else goes on."""

import pytest

from cronring.controller.core.model import Activation
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.drill import LONGEST_MS, DrillEnd
from cronring.controller.core.swim.messages import Ack, Packet, Ping, Status, Sync, Update
from cronring.schema.execution import Trigger
from tests.unit.core.told import S_US, T, Told, job, report

FIVE_S = events.DrillRequested(5_000, False, "ann")


def with_peer() -> Told:
    """Ready, with a second controller on the ring, and a job each 10 s that is its own."""
    told = Told()
    told.ready()
    hear(told, Status.ALIVE)
    told.wait(50)
    own = next(slot for slot in range(4096) if told.node.ring.owners(slot)[0] == "c1")
    told.fetched(job(own))
    told.take(effects.LogLine)
    return told


def hear(told: Told, status: Status) -> None:
    update = Update("c2", "host:2", status, 1 if status is Status.ALIVE else 2, False, "")
    told.tell(events.PacketReceived(Packet("c2", "host:2", (), Sync(False, (update,)))))


def why_over(told: Told) -> DrillEnd | None:
    return None if told.node.past_drill is None else told.node.past_drill.why


def told_of(told: Told) -> list[str]:
    return [line.event for line in told.take(effects.LogLine)]


def keep_peer(told: Told, ms: float) -> None:
    """Time passes, PostgreSQL answers renewals, and c2 says again and again that it lives."""
    for _ in range(int(ms // 100)):
        told.wait(100)
        told.renewed()
        for sent in told.take(effects.SendPacket):
            if isinstance(sent.packet.message, Ping):
                told.tell(events.PacketReceived(Packet("c2", "host:2", (), Ack(sent.packet.message.sequence))))


def test_what_comes_due_meanwhile_is_not_claimed_and_then_it_is() -> None:
    told = with_peer()
    keep_peer(told, 9_000)
    told.tell(FIVE_S)
    assert told.node.in_drill
    keep_peer(told, 4_800)
    assert not told.take(effects.Claim), "its tick came due a second later"
    assert told.node.lease_valid
    keep_peer(told, 400)
    assert not told.node.in_drill
    drill = told.node.past_drill
    assert drill is not None
    assert drill.why is DrillEnd.TIME
    assert drill.ended_us is not None
    assert T + 9 * S_US < drill.begun_us < T + 9_200_000
    assert abs(drill.ended_us - drill.begun_us - 5 * S_US) < 50_000, "the clock is an estimate"
    (request,) = told.one(effects.Claim).requests
    assert request.expected_tick == T + 10 * S_US
    assert told.take(effects.FetchWindow), "what became of what was due, the rows say"


def test_it_says_so_counts_it_and_is_woken_for_its_end() -> None:
    told = with_peer()
    told.tell(FIVE_S)
    assert told.node.next_deadline() is not None
    keep_peer(told, 5_100)
    lines = [line for line in told.take(effects.LogLine) if line.event in {"in_drill", "claiming_again"}]
    assert [(line.event, line.level) for line in lines] == [("in_drill", "warning"), ("claiming_again", "info")]
    assert lines[0].values == {"for_ms": 5_000, "by": "ann", "forced": False}
    assert lines[1].values == {"after_ms": 5_000, "why": "its time is over"}
    assert told.node.stats().drills == 1


def test_it_ends_at_once_when_it_is_released() -> None:
    told = with_peer()
    keep_peer(told, 9_000)
    told.tell(FIVE_S)
    keep_peer(told, 2_000)
    assert not told.take(effects.Claim)
    told.tell(events.DrillReleased())
    assert told.one(effects.Claim).requests
    assert why_over(told) is DrillEnd.RELEASED


def test_a_release_without_a_drill_is_nothing() -> None:
    told = with_peer()
    told.tell(events.DrillReleased())
    assert told.node.past_drill is None
    assert told_of(told) == []


def test_what_runs_is_ended_and_its_next_tick_is_left_to_others() -> None:
    told = with_peer()
    keep_peer(told, 10_000)
    told.claimed()
    (execution,) = told.one(effects.Dispatch).executions
    told.tell(FIVE_S)
    told.tell(events.ReportsReceived("r1", [report(execution)]))
    (request,) = told.one(effects.End).requests
    assert request.next_tick == T + 20 * S_US


def test_it_refetches_and_adopts_and_answers_beats_meanwhile() -> None:
    told = with_peer()
    told.tell(FIVE_S)
    told.tell(events.JobsNotified())
    told.wait(50)
    assert told.take(effects.FetchWindow)
    told.tell(events.RunnerBeat("r1", 7, False, False, 0))
    assert told.one(effects.AckBeat).database_ok
    told.wait(1_200)
    told.renewed(dead_controllers=("c9",))
    assert told.one(effects.Adopt).controller_ids == ("c9",)


def test_it_does_not_look_after_others_slots_either() -> None:
    told = with_peer()
    theirs = next(slot for slot in range(4096) if told.node.ring.owners(slot)[0] == "c2")
    told.tell(events.JobsNotified())
    told.wait(50)
    told.fetched(job(theirs))
    told.tell(events.DrillRequested(15_000, False, "ann"))
    keep_peer(told, 14_000)
    assert not told.take(effects.FetchOverdue)


def test_runs_by_hand_wait_until_it_is_over() -> None:
    told = with_peer()
    own = next(slot for slot in range(4096) if told.node.ring.owners(slot)[0] == "c1")
    told.tell(FIVE_S)
    waiting = Activation(7, job(own), T, None, 1, Trigger.MANUAL, T, "", False)
    told.tell(events.ActivationsCreated([waiting]))
    keep_peer(told, 4_000)
    assert not told.take(effects.Activate)
    keep_peer(told, 1_200)
    assert [each.activation_id for each in told.one(effects.Activate).requests] == [7]


def test_no_tick_is_skipped_for_want_of_a_runner_meanwhile() -> None:
    told = with_peer()
    told.tell(events.RunnerLeft("r1"))
    keep_peer(told, 11_000)  # awaiting_runner since T + 10 s
    told.tell(events.DrillRequested(30_000, False, "ann"))
    keep_peer(told, 15_000)
    assert not told.take(effects.SkipTicks)


def test_it_is_refused_where_nobody_would_take_over() -> None:
    told = Told()
    told.ready()
    assert told.node.why_no_drill(False) == "no other controller is on its ring, so nobody would take over"
    told.tell(FIVE_S)
    assert not told.node.in_drill
    assert told.node.why_no_drill(True) is None
    told.tell(events.DrillRequested(5_000, True, "ann"))
    assert told.node.in_drill
    told.wait_renewing(4_900)
    assert told.node.in_drill, "forced: alone or not"


def test_it_is_refused_twice_and_without_a_lease_and_while_draining() -> None:
    told = with_peer()
    told.tell(FIVE_S)
    assert told.node.why_no_drill(True) == "it is in a drill already, for ann, for 5s more"
    told.tell(events.DrillRequested(60_000, True, "bob"))
    keep_peer(told, 5_100)
    assert not told.node.in_drill
    told.wait(4_100)
    told.tell(events.Woke())
    reason = told.node.why_no_drill(True)
    assert reason is not None
    assert "no valid lease" in reason
    told.tell(events.DrainRequested())
    assert told.node.why_no_drill(True) == "it is about to leave"


@pytest.mark.parametrize("status", [Status.LEFT, Status.DEAD])
def test_it_ends_by_itself_when_nobody_is_left(status: Status) -> None:
    told = with_peer()
    keep_peer(told, 9_000)
    told.tell(events.DrillRequested(60_000, False, "ann"))
    keep_peer(told, 2_000)
    assert not told.take(effects.Claim)
    hear(told, status)
    for _ in range(60):  # a death is believed only once it isn't refuted
        told.wait(100)
        told.renewed()
    assert why_over(told) is DrillEnd.ALONE
    assert told.one(effects.Claim).requests


def test_a_drain_ends_it() -> None:
    told = with_peer()
    told.tell(FIVE_S)
    told.tell(events.DrainRequested())
    assert not told.node.in_drill
    assert why_over(told) is DrillEnd.DRAINING


def test_it_lasts_a_minute_at_most() -> None:
    told = with_peer()
    told.tell(events.DrillRequested(10 * LONGEST_MS, False, "ann"))
    keep_peer(told, LONGEST_MS - 100)
    assert told.node.in_drill
    keep_peer(told, 200)
    assert not told.node.in_drill
