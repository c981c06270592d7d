from cronring.controller.core.node import effects, events
from tests.unit.core.told import S_US, T, Told, job


def _beat(sequence: int, renew: bool) -> events.RunnerBeat:
    return events.RunnerBeat("r1", sequence, renew, False, 0)


def test_a_plain_beat_is_answered_at_once() -> None:
    told = Told()
    told.ready()
    told.tell(_beat(7, renew=False))
    assert told.one(effects.AckBeat) == effects.AckBeat("r1", 7, False, True, (("c1", "host:1"),))


def test_a_renewal_is_acknowledged_only_when_it_is_committed() -> None:
    told = Told()
    told.ready()
    told.tell(_beat(7, renew=True))
    told.tell(_beat(8, renew=True))
    assert not told.take(effects.AckBeat)
    told.wait(1_200)
    renewal = told.one(effects.RenewLease)
    assert renewal.runner_ids == ("r1",)
    told.tell(_beat(9, renew=True))  # too late for the one under way
    told.effects.append(renewal)
    told.renewed()
    assert [(ack.sequence, ack.renewed) for ack in told.take(effects.AckBeat)] == [(8, True)]


def test_a_runner_that_postgresql_does_not_know_is_not_renewed() -> None:
    told = Told()
    told.ready()
    told.tell(_beat(7, renew=True))
    told.wait(1_200)
    told.renewed(renewed_runners=())
    assert not told.one(effects.AckBeat).renewed


def test_the_database_is_said_to_be_away_only_without_a_lease() -> None:
    """With one, this controller might still declare a runner lost."""
    told = Told()
    told.ready()
    told.tell(_beat(7, renew=True))
    told.wait(1_200)
    told.fail(told.one(effects.RenewLease))
    ack = told.one(effects.AckBeat)
    assert (ack.renewed, ack.database_ok) == (False, True)
    told.wait(3_000)
    told.tell(_beat(8, renew=False))
    assert not told.one(effects.AckBeat).database_ok


def test_while_a_renewal_hangs_runners_hear_as_soon_as_the_lease_is_over() -> None:
    """They take silence for a broken stream, and without a word from all controllers they stop their runs."""
    told = Told()
    told.ready()
    told.wait(1_500)
    told.one(effects.RenewLease)  # and no answer
    told.tell(events.RunnerBeat("r1", 8, True, False, 0))
    told.wait(1_000)
    assert not told.take(effects.AckBeat), "it may still be renewed"
    told.wait(2_000)
    ack = told.one(effects.AckBeat)
    assert (ack.sequence, ack.renewed, ack.database_ok) == (8, False, False)
    told.tell(events.RunnerBeat("r1", 9, True, False, 0))
    ack = told.one(effects.AckBeat)
    assert (ack.sequence, ack.renewed, ack.database_ok) == (9, False, False)


def test_the_lease_counts_from_the_sending_of_its_renewal() -> None:
    told = Told()
    told.tell(events.Woke())
    told.wait(3_500)
    told.renewed()  # sent 3.5 s ago; of 5 s, less 1 s of margin, half a second is left
    assert told.node.lease_valid
    told.wait(400)
    told.tell(events.Woke())
    assert told.node.lease_valid
    told.wait(200)
    told.tell(events.Woke())
    assert not told.node.lease_valid


def test_an_answer_older_than_the_lease_gives_none() -> None:
    told = Told()
    told.tell(events.Woke())
    told.wait(4_100)
    told.renewed()
    assert not told.node.lease_valid


def test_nothing_is_claimed_without_a_lease() -> None:
    told = Told()
    told.ready(job(due=T + 5 * S_US))
    told.wait(6_000)  # renewals get no answer
    assert not told.take(effects.Claim)
    told.renewed()
    assert not told.take(effects.Claim)  # that answer was 5 s old
    told.wait(1_000)
    told.renewed()
    assert len(told.take(effects.Claim)) == 1


def test_a_runner_that_left_is_not_renewed() -> None:
    told = Told()
    told.ready()
    told.tell(_beat(7, renew=True))
    told.tell(events.RunnerLeft("r1"))
    told.wait(1_200)
    assert told.one(effects.RenewLease).runner_ids == ()


def test_with_a_lease_anew_all_runners_heard_just_now_are_renewed() -> None:
    """It claims for them at once; others, who had the database all the time, would declare those runs lost."""
    told = Told()
    told.ready()
    told.wait(3_000)  # renewals get no answer
    told.tell(_beat(1, renew=False)._replace(runner_id="r2"))
    told.wait(3_000)
    told.tell(_beat(2, renew=False))
    told.renewed()  # too old to give a lease: the next goes out at once
    renewal = told.one(effects.RenewLease)
    assert renewal.runner_ids == ("r1",), "r2 was last heard three seconds ago"
    told.effects.append(renewal)
    told.renewed()
    told.tell(_beat(3, renew=False))
    told.wait(1_500)
    assert told.one(effects.RenewLease).runner_ids == (), "it has its lease, and r1 another controller that renews it"


def test_one_renewal_at_a_time_and_none_in_step() -> None:
    told = Told()
    told.tell(events.Woke())
    told.wait(10_000)
    assert len(told.take(effects.RenewLease)) == 1


def test_runners_hear_of_a_controller_that_held_a_lease_though_gossip_has_lost_it() -> None:
    """It may be cut off from here only: this one, without PostgreSQL, must not seem to be the whole cluster."""
    told = Told()
    told.ready()
    told.tell(events.PeersFound((("c1", "host:1"), ("c2", "host:2"))))  # and c2 never says a word
    told.tell(_beat(7, renew=False))
    assert told.one(effects.AckBeat).peers == (("c1", "host:1"), ("c2", "host:2"))
    told.tell(events.PeersFound((("c1", "host:1"),)))  # its lease is over
    told.tell(_beat(8, renew=False))
    assert told.one(effects.AckBeat).peers == (("c1", "host:1"),)
