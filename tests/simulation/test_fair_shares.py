"""Workspaces take turns in a cluster, in virtual time: whoever has much waiting delays others by a few places."""

from collections import Counter

import pytest

from cronring.controller.core.node import effects
from cronring.runner.core.lanes import ModuleLanes
from cronring.schema.module import Verb
from cronring.schema.policy import Policy
from cronring.virtual.performing import run_now
from tests.simulation.limited_world import LimitedWorld
from tests.simulation.places_world import PlacesWorld

EVERY_MINUTE = "0 * * * * *"


def _verbs(loud: int, quiet: int) -> list[Verb]:
    return [
        *(Verb(f"loud{number}", schedule=EVERY_MINUTE) for number in range(loud)),
        *(Verb(f"quiet{number}", schedule=EVERY_MINUTE) for number in range(quiet)),
    ]


def _label(world: LimitedWorld | PlacesWorld) -> None:
    """Each verb's job is in the workspace of its name without the number."""
    for row in world.store.jobs.values():
        row.spec = row.spec._replace(labels={"workspace": row.verb.rstrip("0123456789")})


def _order(world: LimitedWorld | PlacesWorld) -> list[str]:
    return [verb.rstrip("0123456789") for _, verb, *_ in world.starts]


@pytest.mark.parametrize("controllers", [1, 3])
def test_three_of_one_do_not_wait_for_hundreds_of_another(controllers: int) -> None:
    """300 and 3 are due at once, 2 may run, each for 50 ms: without turns the three would come last, or anywhere."""
    world = LimitedWorld(controllers, _verbs(300, 3), lambda _: 50)
    _label(world)
    run_now(world.store.set_limit("default", "billing", 2, "ann"))
    world.run(75)
    assert world.most == 2
    order = _order(world)
    assert len(order) > 150
    # Each controller has its own turns, and what is refused first is not in them yet.
    assert max(place for place, share in enumerate(order[:200]) if share == "quiet") < 2 + 8 * controllers
    assert Counter(order[:200])["quiet"] == 3


@pytest.mark.parametrize("controllers", [1, 3])
def test_places_of_a_runner_are_taken_in_turn_too(controllers: int) -> None:
    """Two children, and 203 that are due at once. The first few go before anybody waits."""
    verbs = _verbs(200, 3)
    lanes = ModuleLanes(frozenset(verb.name for verb in verbs), 2, 2, 2)
    world = PlacesWorld(controllers, verbs, lambda _: 50, [lanes])
    _label(world)
    world.run(67)
    order = _order(world)
    assert len(order) == 203
    assert max(place for place, share in enumerate(order) if share == "quiet") <= 12


def test_shares_get_equally_many_while_all_of_them_wait() -> None:
    verbs = [Verb(f"{name}{number}", schedule=EVERY_MINUTE) for name in "abc" for number in range(60)]
    world = LimitedWorld(1, verbs, lambda _: 50)
    _label(world)
    run_now(world.store.set_limit("default", "", 1, "ann"))
    world.run(70)
    counts = Counter(_order(world)[:90])
    assert max(counts.values()) - min(counts.values()) <= 3


def test_priority_decides_within_a_share_and_not_between_them() -> None:
    verbs = [
        *(Verb(f"loud{number}", schedule=EVERY_MINUTE, policy=Policy(priority=100)) for number in range(100)),
        *(Verb(f"quiet{number}", schedule=EVERY_MINUTE, policy=Policy(priority=number)) for number in range(3)),
    ]
    world = LimitedWorld(1, verbs, lambda _: 50)
    _label(world)
    run_now(world.store.set_limit("default", "billing", 1, "ann"))
    world.run(66)
    verbs_started = [verb for _, verb in world.starts]
    assert [verb for verb in verbs_started if verb.startswith("quiet")] == ["quiet2", "quiet1", "quiet0"]
    assert verbs_started.index("quiet0") < 12


def test_with_thousands_of_full_values_a_freed_place_costs_one_look() -> None:
    """200 workspaces, one at a time each, with two jobs each. NOTIFY names the value: nobody else is tried for it."""
    verbs = [Verb(f"w{name}x{number}", schedule=EVERY_MINUTE) for name in range(200) for number in range(2)]
    world = LimitedWorld(1, verbs, lambda _: 300)
    for row in world.store.jobs.values():
        row.spec = row.spec._replace(labels={"workspace": row.verb.partition("x")[0]})
    run_now(world.store.set_limit("default", "", 1, "ann", label="workspace"))
    tried = 0

    def count(effect: object) -> None:
        nonlocal tried
        if isinstance(effect, effects.Claim):
            tried += len(effect.requests)

    world.watch = count
    world.run(59)
    before = tried
    world.run(12)
    assert world.most == 200
    assert Counter(verb.partition("x")[0] for _, verb in world.starts) == {f"w{name}": 2 for name in range(200)}
    assert tried - before <= 5 * 400
