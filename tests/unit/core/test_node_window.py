from cronring.controller.core.model import Job
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.window import Duty
from cronring.controller.core.swim.messages import Packet, Status, Sync, Update
from cronring.schema.keys import SLOTS
from tests.unit.core.told import S_US, T, Told, job, won

DUE = T + 10 * S_US


def _appears(told: Told, peer_id: str) -> None:
    update = Update(peer_id, f"host:{peer_id}", Status.ALIVE, 1, False)
    told.tell(events.PacketReceived(Packet(peer_id, f"host:{peer_id}", (), Sync(False, (update,)))))


def _backup_slot(told: Told) -> int:
    return told.node.ring.backup_slots("c1")[0]


def test_alone_all_slots_are_mine() -> None:
    told = Told()
    told.tell(events.Woke())
    told.renewed()
    told.tell(events.PeersFound(()))
    told.wait(20)
    assert told.one(effects.FetchWindow).slots == tuple(range(SLOTS))


def test_with_peers_known_of_the_first_read_waits_for_them_a_moment() -> None:
    told = Told()
    told.tell(events.Woke())
    told.renewed()
    told.tell(events.PeersFound((("c2", "host:2"),)))
    told.wait(900)
    assert not told.take(effects.FetchWindow)
    told.renewed()
    told.wait(200)
    told.renewed()
    assert len(told.take(effects.FetchWindow)) == 1


def test_notifications_that_come_together_are_one_read() -> None:
    told = Told()
    told.ready()
    for _ in range(100):
        told.tell(events.JobsNotified())
    told.wait(20)
    told.tell(events.JobsNotified())  # one more while it is under way: it may have come too late for it
    told.wait(200)
    told.fetched()
    told.wait(20)
    assert len(told.take(effects.FetchWindow)) == 1


def test_a_job_that_is_gone_from_the_window_is_forgotten() -> None:
    told = Told()
    told.ready(job(1), job(2))
    told.tell(events.JobsNotified())
    told.wait(20)
    told.fetched(job(2))
    told.wait_renewing(10_000)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [2]


def test_what_a_claim_said_after_the_read_was_sent_is_newer_than_the_read() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(9_985)
    told.wait_renewing(85)
    told.tell(events.JobsNotified())
    told.wait(90)
    told.claimed()
    told.fetched(job())  # idle and due, as it was before the claim
    told.wait(500)
    told.renewed()
    assert not told.take(effects.Claim)


def test_a_newer_revision_wins_whenever_it_comes() -> None:
    told = Told()
    told.ready(job())
    told.tell(events.JobsNotified())
    told.wait(20)
    later = DUE + 4 * S_US
    told.fetched(job(schedule="*/7 * * * * *", revision=2, next_tick=later, next_run_at=later))
    told.wait_renewing(10_100)
    assert not told.take(effects.Claim)
    told.wait_renewing(4_000)
    assert told.one(effects.Claim).requests[0].expected_tick == later


def test_a_due_tick_that_is_put_off_waits_again() -> None:
    """It was due, and waited while another claim was under way, when its policy changed."""
    told = Told(claims_in_flight=1, claim_batch=1)
    told.ready(job(1), job(2))
    told.wait_renewing(10_000)
    first = told.one(effects.Claim)
    told.tell(events.JobsNotified())
    told.wait(30)
    put_off = DUE + 2 * S_US
    told.fetched(job(1), job(2, policy='{"jitter":"5s"}', revision=2, next_run_at=put_off))
    told.tell(events.Claimed(first.request_id, told.database_us, [won(first.requests[0], 100, told.database_us)]))
    assert not told.take(effects.Claim)
    told.wait_renewing(2_100)
    (request,) = told.one(effects.Claim).requests
    assert (request.run_tick, request.run_at, request.revision) == (DUE, put_off, 2)


def _of_three(told: Told) -> int:
    """c1 is one of three controllers now. A slot that it neither owns nor is the backup of."""
    _appears(told, "c2")
    _appears(told, "c3")
    told.wait(25)
    told.fetched()
    return next(slot for slot in range(SLOTS) if "c1" not in told.node.ring.owners(slot))


def test_a_job_made_here_is_mine_at_first_even_if_its_slot_is_not() -> None:
    """Its owners hear of it by NOTIFY; what is due until then must not wait for that."""
    told = Told(probe_interval_ms=60_000)
    told.ready()
    slot = _of_three(told)
    soon = told.database_us + S_US // 2
    told.tell(events.JobsCreated([job(slot=slot, next_tick=soon, next_run_at=soon)]))
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched()
    told.wait_renewing(500)
    assert len(told.take(effects.Claim)) == 1


def test_then_it_is_watched_as_by_a_backup() -> None:
    """NOTIFY may be lost: until the next regular read nobody else may know of it."""
    told = Told(probe_interval_ms=60_000)
    told.ready()
    slot = _of_three(told)
    made = job(slot=slot)
    told.tell(events.JobsCreated([made]))
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched()
    told.wait_renewing(10_400)
    assert not told.take(effects.Claim)
    assert not told.take(effects.FetchOverdue)
    told.wait_renewing(200)
    look = told.one(effects.FetchOverdue)
    assert look.slots == (slot,)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, [made]))
    assert len(told.take(effects.Claim)) == 1


def test_a_job_made_here_is_its_owners_alone_after_a_minute() -> None:
    told = Told(probe_interval_ms=60_000)
    told.ready()
    slot = _of_three(told)
    due = T + 90 * S_US
    told.tell(events.JobsCreated([job(slot=slot, next_tick=due, next_run_at=due)]))
    told.wait_renewing(100_000)
    assert not told.take(effects.Claim)
    assert not told.take(effects.FetchOverdue)


def test_standing_in_for_a_tick_of_a_job_made_here_keeps_it_watched() -> None:
    told = Told(probe_interval_ms=60_000)
    told.ready()
    slot = _of_three(told)
    window, made = told.node._parts.window, job(slot=slot)
    window.add_own([made])
    window.stand_in(made)
    entry = window.entries[1]
    assert window.duty(entry) is Duty.PRIMARY
    told.wait_renewing(12_000)
    assert window.duty(entry) is Duty.BACKUP


def test_slots_that_are_lost_are_dropped() -> None:
    told = Told()
    told.ready(job())
    told.tell(events.DrainRequested())
    assert told.node.stats().window_jobs == 0


def test_the_backup_looks_once_for_all_that_was_due_and_claims_what_lies_there() -> None:
    told = Told(probe_interval_ms=60_000)
    told.ready()
    _appears(told, "c2")
    slot = _backup_slot(told)
    told.wait(25)
    told.fetched(job(1, slot=slot), job(2, slot=slot))
    told.wait_renewing(10_300)
    assert not told.take(effects.Claim)
    assert not told.take(effects.FetchOverdue)
    told.wait_renewing(300)
    look = told.one(effects.FetchOverdue)
    assert look.slots == (slot,)
    assert look.delay_ms <= 500
    told.tell(events.OverdueFetched(look.request_id, told.database_us, [job(2, slot=slot)]))
    assert [request.job_id for request in told.one(effects.Claim).requests] == [2]


def _herd_is_called(told: Told) -> tuple[list[Job], effects.FetchOverdue]:
    """150 jobs of one primary, all overdue."""
    told.ready()
    _appears(told, "c2")
    slot = _backup_slot(told)
    told.wait(25)
    herd = [job(number, slot=slot) for number in range(1, 151)]
    told.fetched(*herd)
    told.wait_renewing(10_600)
    return herd, told.one(effects.FetchOverdue)


def test_a_backup_leaves_a_herd_to_a_primary_that_is_at_work() -> None:
    told = Told(probe_interval_ms=60_000)
    herd, look = _herd_is_called(told)
    for left, wait_ms in ((herd, 110), (herd[20:], 210), (herd[40:], 410)):  # it looks less and less often
        told.tell(events.OverdueFetched(look.request_id, told.database_us, left))
        assert not told.take(effects.Claim)
        told.wait_renewing(wait_ms - 110)
        told.wait(70)
        assert not told.take(effects.FetchOverdue)
        told.wait(40)
        look = told.one(effects.FetchOverdue)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, herd[100:]))  # few: no herd any more
    assert [request.job_id for request in told.one(effects.Claim).requests] == list(range(101, 151))


def test_a_backup_claims_a_herd_that_stands_still() -> None:
    told = Told(probe_interval_ms=60_000)
    herd, look = _herd_is_called(told)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, herd))
    assert not told.take(effects.Claim)
    told.wait_renewing(110)
    look = told.one(effects.FetchOverdue)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, herd))
    assert [request.job_id for claim in told.take(effects.Claim) for request in claim.requests][:3] == [1, 2, 3]


def test_a_herd_of_before_says_nothing_of_the_next_one() -> None:
    """It begins with the same job, each time."""
    told = Told(probe_interval_ms=60_000)
    herd, look = _herd_is_called(told)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, herd))
    told.wait_renewing(110)
    look = told.one(effects.FetchOverdue)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, []))
    told.wait_renewing(10_000)
    look = told.one(effects.FetchOverdue)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, herd))
    assert not told.take(effects.Claim)


def test_a_backup_follows_the_schedule_without_reading_rows() -> None:
    told = Told(probe_interval_ms=60_000)
    told.ready()
    _appears(told, "c2")
    slot = _backup_slot(told)
    told.wait(25)
    told.fetched(job(1, slot=slot, executing=True, due=DUE - 10 * S_US))
    looks = 0
    for _ in range(310):
        told.wait_renewing(100)
        for look in told.take(effects.FetchOverdue):
            looks += 1
            told.tell(events.OverdueFetched(look.request_id, told.database_us, []))
    # Its tick of 0 s runs, so it is looked for at 10, 20 and 30 s; nothing due, no query.
    assert looks == 3
    assert not told.take(effects.FetchWindow)


def test_while_a_run_by_hand_holds_the_job_its_next_tick_is_still_to_come() -> None:
    """Who read the row meanwhile waited for the tick after it (seed 50203)."""
    told = Told()
    told.ready(job(executing=True))
    told.wait_renewing(10_000)
    assert [request.run_tick for request in told.one(effects.Claim).requests] == [T + 10 * S_US]
