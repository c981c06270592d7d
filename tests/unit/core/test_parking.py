import random

from cronring.controller.core.cancelling import Cancelling
from cronring.controller.core.desk import Desk
from cronring.controller.core.effects import Note, SkipTicks
from cronring.controller.core.lease import Lease
from cronring.controller.core.parking import Parking
from cronring.controller.core.sessions import Sessions
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.skipping import Skipping
from cronring.controller.core.window import Duty, Window
from cronring.schema.keys import SLOTS
from tests.unit.core.told import MS, S_US, T, job


def _parking() -> tuple[Desk, Window, Skipping, Parking]:
    desk = Desk("c1", ClusterSettings(), random.Random(1), 0)
    desk.clock.sample(0, 0, T)
    window = Window(desk)
    window.set_duties([Duty.PRIMARY] * SLOTS, [0] * SLOTS)
    lease = Lease(desk, Cancelling(desk, Sessions()))
    lease.valid_until_ns = 3_600_000 * MS
    skipping = Skipping(desk, window, lease)
    return desk, window, skipping, Parking(desk, window, lease, skipping)


def test_nothing_is_kept_of_jobs_that_moved_on_or_went_while_they_waited_for_a_runner() -> None:
    desk, window, _, parking = _parking()
    for version in range(20):
        parking.park(window.learn(job(1, due=T, deployment=f"d{version}", revision=version + 1)))
    parking.park(window.learn(job(2, due=T, deployment="d0")))
    assert parking.waits_for() == ["d0", "d19"]
    window.forget(2)
    desk.now_ns = ClusterSettings().runner_grace_ms * MS + S_US * 1_000
    parking.turn()
    assert parking.waits_for() == []


def test_a_later_tick_has_a_grace_of_its_own_though_that_of_one_before_ended_while_postgres_was_away() -> None:
    """Seed 90249: the job had been rescheduled meanwhile, and its new tick was skipped as soon as it came due."""
    desk, window, skipping, parking = _parking()
    parking.park(window.learn(job(1, due=T)))
    desk.store_down_since_ns = 0
    desk.now_ns = (ClusterSettings().runner_grace_ms + 1_000) * MS
    parking.turn()
    parking.park(window.learn(job(1, due=desk.now_us, revision=2)))
    desk.store_down_since_ns = None
    parking.turn()
    skipping.turn()
    assert desk.effects == []
    desk.now_ns += (ClusterSettings().runner_grace_ms + 1_000) * MS
    parking.turn()
    skipping.turn()
    assert [type(effect) for effect in desk.effects] == [Note, SkipTicks]
