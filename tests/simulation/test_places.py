"""Places in a cluster, in virtual time: what has none waits in its job's row, and no place stands still for nothing."""

import itertools
from collections import Counter

import pytest

from cronring.controller.core.node import events
from cronring.runner.core import events as runner_events
from cronring.runner.core.lanes import ModuleLanes
from cronring.schema.execution import Outcome, SkipReason
from cronring.schema.module import Verb
from cronring.schema.policy import Policy
from cronring.virtual.performing import run_now
from tests.simulation.places_world import PlacesWorld

WARM_S = 3


def _world(
    controllers: int, jobs: int, run_ms: float, places: int, *, runners: int = 1, schedule: str = "* * * * * *",
    store_ms: float = 2, placeless: bool = False, sync: bool = True,
) -> PlacesWorld:  # fmt: skip
    verbs = [Verb(f"v{number}", schedule=schedule, is_async=not sync) for number in range(jobs)]
    lanes = _lanes(verbs, places)
    return PlacesWorld(controllers, verbs, lambda _: run_ms, [lanes] * runners, store_ms=store_ms, placeless=placeless)


def _lanes(verbs: list[Verb], places: int) -> ModuleLanes:
    return ModuleLanes(frozenset(verb.name for verb in verbs if not verb.is_async), places, places, places)


def _used(world: PlacesWorld, seconds: float, places: int, run_ms: float) -> float:
    """The share of what there was room for."""
    return sum(ms >= WARM_S * 1_000 for ms, *_ in world.starts) / (places * (seconds - WARM_S) * 1_000 / run_ms)


@pytest.mark.parametrize(
    ("controllers", "places", "runners", "run_ms"),
    [(1, 2, 1, 1_000), (3, 2, 1, 1_000), (3, 2, 1, 100), (3, 1, 1, 20), (5, 1, 1, 500), (3, 4, 2, 300), (3, 16, 1, 50)],
)
@pytest.mark.parametrize("sync", [True, False])
def test_three_times_what_there_is_room_for(
    controllers: int, places: int, runners: int, run_ms: float, sync: bool
) -> None:
    """No place stands still, next to nothing waits on the runner, and no job is left out."""
    jobs = round(3 * places * runners * 1_000 / run_ms)
    world = _world(controllers, jobs, run_ms, places, runners=runners, sync=sync)
    world.run(WARM_S + 12)
    assert _used(world, WARM_S + 12, places * runners, run_ms) > 0.95
    waits = world.waits_ms(WARM_S)
    assert waits[int(len(waits) * 0.99)] < 100
    assert max(runner.most_waiting for runner in world.runners.values()) <= 2 * places
    assert len({verb for _, verb, _ in world.starts}) == jobs


def test_every_job_gets_its_turn() -> None:
    """36 jobs, room for twelve of them a second: each about every third second, whoever owns it."""
    world = _world(3, 36, 166, 2)
    world.run(33)
    for verb in {verb for _, verb, _ in world.starts}:
        starts = [ms for ms, each, _ in world.starts if each == verb]
        assert max(later - sooner for sooner, later in itertools.pairwise(starts)) < 7_000


def test_what_waited_for_too_long_is_superseded_in_the_books() -> None:
    world = _world(2, 12, 1_000, 2)
    world.run(20)
    reasons: Counter[SkipReason] = Counter()
    for row in world.store.skips:
        reasons[row.skipped.reason] += row.skipped.ticks
    assert reasons[SkipReason.SUPERSEDED] > 100
    assert set(reasons) <= {SkipReason.SUPERSEDED, SkipReason.OVERLAP}


def test_without_shortage_every_claim_goes_out_at_its_run_at() -> None:
    """As many jobs as each controller has idle places for: the same lateness as on runners without places."""
    lateness = []
    for placeless in (False, True):
        world = _world(3, 6, 50, 12, placeless=placeless)
        world.run(10)
        lateness.append(sorted(late for ms, _, late in world.starts if ms >= WARM_S * 1_000))
    with_places, without = lateness
    assert len(with_places) == len(without)
    assert with_places[-1] <= without[-1]


@pytest.mark.parametrize("run_ms", [10, 100])
def test_a_database_far_away_leaves_no_child_idle(run_ms: float) -> None:
    """A claim takes 200 ms: runs are sent ahead, for as long as they take alike."""
    world = _world(3, round(3 * 2_000 / run_ms), run_ms, 2, store_ms=100)
    world.run(WARM_S + 15)
    assert _used(world, WARM_S + 15, 2, run_ms) > 0.75
    waits = world.waits_ms(WARM_S)
    assert waits[int(len(waits) * 0.99)] <= 150


def test_a_stopped_controller_loses_what_others_wait_for() -> None:
    """It holds places and demands more; within about a second the others have them. Later it gets its part back."""
    world = _world(3, 60, 100, 2)
    world.run(5)
    world.stop("host:0")
    world.run(10)
    counts = Counter(ms // 1_000 for ms, *_ in world.starts)
    assert all(counts[second] >= 16 for second in range(7, 15)), counts
    world.resume("host:0")
    world.run(8)
    assert len({verb for ms, verb, _ in world.starts if ms >= 17_000}) == 60
    assert max(runner.most_waiting for runner in world.runners.values()) <= 3 * 2


def test_fewer_places_than_controllers_starve_nobody() -> None:
    world = _world(5, 10, 90, 1)
    world.run(30)
    for node in world.nodes.values():
        assert node.stats().claims_won > 0
    by_verb = Counter(verb for ms, verb, _ in world.starts if ms > 3_000)
    assert len(by_verb) == 10
    assert max(by_verb.values()) < 2 * min(by_verb.values())


def test_priority_says_who_gets_a_place() -> None:
    urgent = [Verb(f"u{n}", schedule="* * * * * *", is_async=False, policy=Policy(priority=10)) for n in range(3)]
    plain = [Verb(f"p{n}", schedule="* * * * * *", is_async=False) for n in range(27)]
    verbs = [*urgent, *plain]
    world = PlacesWorld(3, verbs, lambda _: 100, [_lanes(verbs, 1)])
    world.run(30)
    runs = Counter(verb[0] for ms, verb, _ in world.starts if ms >= 3_000)
    assert runs["u"] / 3 > 3 * runs["p"] / 27
    assert len({verb for _, verb, _ in world.starts}) == 30


def test_a_runner_that_drains_gives_what_waits_to_another() -> None:
    world = _world(2, 20, 100, 1, runners=2)
    world.run(6)
    first = world.runners["r0"]
    first.tell(runner_events.DrainAsked())
    before = len(first.waits)
    world.run(6)
    assert len(first.waits) - before <= 3
    assert len({verb for ms, verb, _ in world.starts if ms > 6_500}) == 20


@pytest.mark.parametrize("after_ms", [-1, 0, 1, 2, 3, 4, 6, 10, 50])
@pytest.mark.parametrize("places", [8, 64, 4_096])
def test_a_runner_that_drains_in_the_middle_of_a_herd_ends_all_that_it_was_sent(places: int, after_ms: int) -> None:
    """Claimed for it, on its way, or waiting there: it begins all of that. The rest of the herd another one takes."""
    world = _world(3, 400, 20, places, runners=2, schedule="*/10 * * * * *", sync=False)
    world.run(10 + after_ms / 1_000)
    drained = world.runners["r0"]
    drained.tell(runner_events.DrainAsked())
    world.run(9)
    outcomes = Counter((row.outcome, row.tick) for row in world.store.executions.values())
    assert set(outcomes.values()) == {400}, outcomes
    assert {outcome for outcome, _ in outcomes} == {Outcome.COMPLETED}
    assert not world.store.skips
    assert not any(drained.waiting.values())
    assert drained.core.running == 0


def test_a_broken_stream_gives_its_places_back_at_once() -> None:
    world = _world(3, 60, 100, 2)
    world.run(5)
    runner = world.runners["r0"]
    world.stop("host:1")
    runner.tell(runner_events.LinkDown("host:1", "broken"))
    assert "host:1" not in {address for lane in runner.core.places.lanes() for address in lane.shares}
    world.run(4)
    counts = Counter(ms // 1_000 for ms, *_ in world.starts)
    assert all(counts[second] >= 18 for second in range(6, 9)), counts


def test_manual_runs_and_retries_wait_for_places_as_well() -> None:
    verbs = [
        Verb("busy", schedule="* * * * * *", is_async=False),
        Verb("by_hand", schedule="0 0 1 1 *", is_async=False),
    ]
    world = PlacesWorld(1, verbs, lambda verb: 400 if verb == "busy" else 50, [_lanes(verbs, 1)])
    world.run(4)
    job = next(row for row in world.store.jobs.values() if row.verb == "by_hand")
    for _ in range(3):
        activation = run_now(world.store.trigger_job(job.key, "ann", None))
        world.tell("host:0", events.ActivationsCreated([activation]))
        world.run(2)
    assert sum(verb == "by_hand" for _, verb, _ in world.starts) == 3
    assert max(runner.most_waiting for runner in world.runners.values()) <= 1
    assert not world.nodes["host:0"].stats().waiting_for_place
