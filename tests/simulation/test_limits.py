"""Limits and priorities in a cluster, in virtual time: who waits for how long, and what waiting costs PostgreSQL."""

import itertools
import random
from functools import partial

import pytest

from cronring.controller.core.node import events
from cronring.schema.module import Verb
from cronring.schema.policy import Policy
from cronring.virtual.clock import SECOND
from cronring.virtual.performing import run_now
from tests.simulation.limited_world import LimitedWorld
from tests.simulation.world import World


def _limit(world: LimitedWorld, places: int, module: str = "billing") -> None:
    run_now(world.store.set_limit("default", module, places, "ann"))


def _verbs(count: int, schedule: str = "* * * * * *", **policy: int) -> list[Verb]:
    return [Verb(f"v{number}", schedule=schedule, policy=Policy(**policy)) for number in range(count)]  # type: ignore[arg-type]  # counts


@pytest.mark.parametrize("module", ["billing", ""])
def test_places_are_used_all_the_time_and_everybody_gets_one_in_turn(module: str) -> None:
    """20 jobs each second, 2 places, 300 ms a run: 6.7 a second can run, so each job does about every 3 s."""
    world = LimitedWorld(3, _verbs(20), lambda _: 300)
    _limit(world, 2, module)
    world.run(30)
    assert world.most == 2
    assert len(world.starts) > 0.85 * 27 * 2 / 0.3
    for verb in {verb for _, verb in world.starts}:
        starts = [ms for ms, each in world.starts if each == verb]
        assert max(later - sooner for sooner, later in itertools.pairwise(starts)) < 8_000
    assert len({verb for _, verb in world.starts}) == 20


def test_waiting_costs_few_statements_for_each_place_that_is_freed() -> None:
    world = LimitedWorld(3, _verbs(20), lambda _: 300)
    _limit(world, 2)
    world.run(30)
    starts = len(world.starts) / 27
    each_second = world.claims_each_second()
    assert max(each_second[second] for second in range(5, 29)) < 3 * 2.5 * starts + 3 * 3


@pytest.mark.parametrize("notify", [True, False])
def test_while_nothing_frees_a_place_each_controller_tries_about_once_a_second(notify: bool) -> None:
    world = LimitedWorld(3, _verbs(50), lambda _: 40_000, notify=notify)
    _limit(world, 2)
    world.run(40)
    each_second = world.claims_each_second()
    assert sum(each_second[second] for second in range(10, 40)) <= 3 * 30 * 1.5
    assert len(world.starts) == 2
    world.run(6)
    assert len(world.starts) == 4
    assert world.most == 2


def test_without_notify_places_are_found_within_a_second() -> None:
    world = LimitedWorld(2, _verbs(10), lambda _: 300, notify=False)
    _limit(world, 2)
    world.run(30)
    assert world.most == 2
    assert len(world.starts) > 27


def test_a_raised_limit_is_used_at_once() -> None:
    world = LimitedWorld(2, _verbs(60), lambda _: 20_000)
    _limit(world, 2)
    world.run(5)
    assert len(world.starts) == 2
    _limit(world, 50)
    world.run(0.5)
    assert len(world.starts) == 50


def test_priorities_say_who_gets_the_places_and_nobody_starves() -> None:
    """One controller, one place, 100 ms a run. Thirty ticks a second of priority 10 come ahead of one of 0: by 10 s."""
    urgent = [Verb(f"u{number}", schedule="* * * * * *", policy=Policy(priority=10)) for number in range(30)]
    plain = Verb("plain", schedule="* * * * * *")
    world = LimitedWorld(1, [*urgent, plain], lambda _: 90)
    _limit(world, 1)
    world.run(40)
    starts = [ms for ms, verb in world.starts if verb == "plain"]
    assert len(starts) >= 2
    assert starts[0] <= 14_000
    assert all(later - sooner < 16_000 for sooner, later in itertools.pairwise(starts))


@pytest.mark.parametrize("seed", [712, 716, 733])
def test_in_a_world_of_faults_what_waited_for_places_is_made_up_for(seed: int) -> None:
    """A limit far too low for half a minute of kills, cuts and stopped clocks; then all that waited must come."""
    world, chance = World(seed, hard=False, places=False), random.Random(seed)
    store = world.database.store
    told = 0

    def places_freed(limit: int | None) -> None:
        nonlocal told
        told += 1
        for controller in world.controllers:
            if controller.alive and chance.random() >= world.notify_loss:
                world.clock.call_after(2_000_000, partial(controller.put, events.PlacesFreed(limit)))

    store.on_places = places_freed
    run_now(store.set_limit("default", "", 3, "ann"))
    world.clock.call_after(30 * SECOND, lambda: run_now(store.remove_limit("default", "", "ann")))
    world.run()
    assert told > 10
