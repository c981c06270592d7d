"""How long controllers held their leases, and runners were seen: the same history in every store."""

from cronring.controller.core.ledger.lives import Life
from tests.conformance.harness import LOST_AFTER_MS, SECOND, World

HOUR = 3_600 * SECOND


async def lives(world: World, *, since: int = 0, until: int | None = None) -> list[Life]:
    """The latest that began last; those of "observer" left out, who looks after the others."""
    end = await world.scene.now() if until is None else until
    found = await world.scene.lives.list_lives(since, end, LOST_AFTER_MS)
    return sorted((life for life in found if life.member != "observer"), key=lambda life: (life.from_at, life.member))


async def test_whoever_holds_a_lease_lives(world: World) -> None:
    before = await world.scene.now()
    await world.controller("c1")
    await world.runner("r1", "billing-1")
    await world.controller("c1", ("r1",))
    first, second = await lives(world)
    assert before <= first.from_at <= second.from_at <= await world.scene.now()
    assert first[:2] == ("controller", "c1")
    assert first[3:] == (None, False, "127.0.0.1:1", "0.1.0", ())
    assert second[:2] == ("runner", "r1")
    assert second[3:] == (None, False, "host", "0.1.0", ("billing-1",))


async def test_a_lease_that_ran_out_ends_a_life_and_the_next_one_begins_another(world: World) -> None:
    await world.controller("c1")
    await world.scene.expire_lease("c1", 0)
    (over,) = await lives(world)
    assert over.until_at is not None
    assert not over.departed
    await world.controller("c1")
    first, second = await lives(world)
    assert first == over, "written once, as it had been told before"
    assert second.from_at >= over.until_at
    assert second.until_at is None
    await world.controller("c1")
    assert await lives(world) == [first, second], "a renewal in time ends nothing"


async def test_who_leaves_has_departed(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    await world.store.remove_controller("c1")
    await world.store.runner_left("r1")
    assert [(life.member, life.departed, life.until_at is None) for life in await lives(world)] == [
        ("c1", True, False), ("r1", True, False),
    ]  # fmt: skip


async def test_what_is_forgotten_stays_in_the_history(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1", "billing-1")
    await world.scene.expire_lease("c1", 61)
    await world.scene.last_saw_runner("r1", 86_401)
    told = [(life.kind, life.member, life.until_at, life.deployments) for life in await lives(world)]
    await world.controller("observer")
    assert await world.scene.controllers() == ["observer"]
    assert sorted(await world.scene.runners()) == []
    assert [(life.kind, life.member, life.until_at, life.deployments) for life in await lives(world)] == told
    assert len(told) == 2


async def test_a_runner_that_was_away_for_long_has_two_lives(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    await world.scene.last_saw_runner("r1", 9)
    await world.runner("r1")
    assert len([life for life in await lives(world) if life.kind == "runner"]) == 1, "nobody had called it lost"
    await world.scene.last_saw_runner("r1", 11)
    await world.controller("c1", ("r1",))
    away = [life for life in await lives(world) if life.kind == "runner"]
    assert [life.until_at is None for life in away] == [False, True]
    await world.store.runner_left("r1")
    await world.runner("r1")
    back = [life for life in await lives(world) if life.kind == "runner"]
    assert [(life.until_at is None, life.departed) for life in back] == [(False, False), (False, True), (True, False)]


async def test_only_what_lived_in_the_time_asked_for_is_told(world: World) -> None:
    await world.controller("c1")
    await world.scene.expire_lease("c1", 0)
    await world.controller("c1")
    now = await world.scene.now()
    (first, second) = await lives(world)
    assert first.until_at is not None
    assert await lives(world, since=first.until_at + 1) == [second]
    assert await lives(world, until=second.from_at - 1) == [first]
    assert await lives(world, since=0, until=now - HOUR) == []
