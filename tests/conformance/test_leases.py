"""Leases, adoption, and what is found lost or overdue: behaviour that every store has."""

import pytest

from cronring.controller.core.model import LeaseRenewal, RunnerInfo
from cronring.controller.ports.store import ControllerInfo
from tests.conformance.harness import LEASE_MS, LOST_AFTER_MS, World, end_of

OBSERVER = ControllerInfo("observer", "127.0.0.1:3", "127.0.0.1:4", 9, "0.1.0", "2026.6")


async def observe(world: World, *runner_ids: str) -> LeaseRenewal:
    return await world.store.renew_lease(OBSERVER, False, LEASE_MS, runner_ids, LOST_AFTER_MS)


async def test_a_renewal_tells_the_time_and_which_runners_it_renewed(world: World) -> None:
    await world.runner("r1")
    await world.runner("r2")
    before = await world.scene.now()
    renewal = await observe(world, "r2", "r1", "unknown")
    assert before <= renewal.database_now <= await world.scene.now()
    assert renewal[1:] == (("r1", "r2"), (), (), False, (), (("observer", "127.0.0.1:3"),), False)


async def test_peers_are_those_whose_lease_is_valid(world: World) -> None:
    await observe(world)
    await world.controller("c1")
    await world.controller("c2")
    await world.controller("c3")
    await world.scene.expire_lease("c2", 0)
    await world.store.remove_controller("c3")
    peers = await world.store.find_peers()
    assert [peer.controller_id for peer in peers] == ["c1", "observer"]
    assert peers[1] == OBSERVER
    await world.controller("c2")
    assert "c2" in {peer.controller_id for peer in await world.store.find_peers()}


async def test_a_controller_is_dead_when_its_lease_ran_out_while_it_holds_executions(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.controller("c2")
    assert (await observe(world)).dead_controllers == ()
    await world.scene.expire_lease("c1", 1)
    await world.scene.expire_lease("c2", 1)
    assert (await observe(world)).dead_controllers == ("c1",)
    await world.store.end_cron_jobs("c2", [end_of(execution)])
    assert (await observe(world)).dead_controllers == ()


async def test_a_controller_that_left_with_runs_is_to_be_swept(world: World) -> None:
    await world.running("c1", "a")
    await world.store.remove_controller("c1")
    assert (await observe(world)).dead_controllers == ("c1",)


async def test_adopted_executions_carry_the_adopters_id(world: World) -> None:
    executions = await world.running("c1", "a", "b", "c")
    await world.store.end_cron_jobs("c1", [end_of(executions[0])])
    await world.controller("c2")
    adopted = await world.store.adopt_executions("c2", ("c1", "nobody"))
    assert sorted(adopted) == sorted(executions[1:])
    assert [row.controller_id for row in await world.scene.executions()] == ["c1", "c2", "c2"]
    assert await world.store.adopt_executions("c3", ("c1",)) == []
    # Both may end them: a claim doesn't change hands.
    results = await world.store.end_cron_jobs("c1", [end_of(execution) for execution in executions])
    assert [result.ended for result in results] == [False, True, True]


async def test_only_those_on_some_runners_are_adopted(world: World) -> None:
    executions = await world.running("c1", "a", "b")
    (runner_id,) = {execution.runner_id for execution in executions}
    assert await world.store.adopt_executions("c2", ("c1",), ("another",)) == []
    adopted = await world.store.adopt_executions("c2", ("c1",), ("another", runner_id))
    assert sorted(adopted) == sorted(executions)


async def test_a_controller_may_adopt_from_itself(world: World) -> None:
    executions = await world.running("c1", "a", "b")
    assert sorted(await world.store.adopt_executions("c1", ("c1",))) == sorted(executions)


async def test_executions_of_a_runner_not_seen_for_long_are_lost(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    assert (await observe(world)).lost_runners == ()
    await world.scene.last_saw_runner("r1", 8)
    assert (await observe(world)).lost_runners == ()
    assert await world.store.get_lost(LOST_AFTER_MS) == []
    await world.scene.last_saw_runner("r1", 9)
    assert (await observe(world)).lost_runners == ("r1",)
    assert await world.store.get_lost(LOST_AFTER_MS) == [execution]
    # A renewal that brings the runner back doesn't call it lost in the same breath.
    assert (await observe(world, "r1")).lost_runners == ()
    assert await world.store.get_lost(LOST_AFTER_MS) == []


async def test_a_silent_runner_without_executions_is_nobodys_business(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.store.end_cron_jobs("c1", [end_of(execution)])
    await world.scene.last_saw_runner("r1", 60)
    assert (await observe(world)).lost_runners == ()


async def test_runs_that_finish_without_contact_are_left_to_their_hard_timeout(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    (job,) = await world.jobs("a", on_disconnect="finish")
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.execution_id is not None
    await world.scene.last_saw_runner("r1", 60)
    assert (await observe(world)).lost_runners == ()
    assert await world.store.get_lost(LOST_AFTER_MS) == []
    await world.scene.pass_hard_deadline(claimed.execution_id)
    assert (await observe(world)).overdue_executions
    assert [found.execution_id for found in await world.store.get_overdue_executions()] == [claimed.execution_id]


async def test_executions_past_their_hard_deadline_are_found(world: World) -> None:
    late, early = await world.running("c1", "late", "early")
    assert not (await observe(world)).overdue_executions
    await world.scene.pass_hard_deadline(late.execution_id)
    assert (await observe(world)).overdue_executions
    assert await world.store.get_overdue_executions() == [late]
    await world.store.end_cron_jobs("observer", [end_of(late)])
    assert not (await observe(world)).overdue_executions
    assert await world.store.get_unfinished((late.execution_id, early.execution_id)) == [early]


async def test_what_another_has_adopted_is_held_no_longer(world: World) -> None:
    kept, other = await world.running("c1", "kept", "other")
    ids = (kept.execution_id, other.execution_id)
    assert await world.store.get_held("c1", ids) == [kept, other]
    assert await world.store.get_held("observer", ids) == []
    await world.store.end_cron_jobs("c1", [end_of(kept)])
    await world.store.adopt_executions("observer", ("c1",))
    assert await world.store.get_held("c1", ids) == []
    assert await world.store.get_held("observer", ids) == [other]


@pytest.mark.parametrize("holds", [True, False])
async def test_rows_of_controllers_long_gone_are_forgotten_unless_they_hold_something(
    world: World, holds: bool
) -> None:
    (execution,) = await world.running("c1", "a")
    if not holds:
        await world.store.end_cron_jobs("c1", [end_of(execution)])
    await world.scene.expire_lease("c1", 59)
    await observe(world)
    assert await world.scene.controllers() == ["c1", "observer"]
    await world.scene.expire_lease("c1", 61)
    await observe(world)
    assert await world.scene.controllers() == (["c1", "observer"] if holds else ["observer"])


@pytest.mark.parametrize("holds", [True, False])
async def test_rows_of_runners_long_gone_are_forgotten_unless_they_hold_something(world: World, holds: bool) -> None:
    (execution,) = await world.running("c1", "a")
    await world.runner("r2")
    if not holds:
        await world.store.end_cron_jobs("c1", [end_of(execution)])
    await world.scene.last_saw_runner("r1", 86_300)
    await observe(world)
    assert sorted(await world.scene.runners()) == ["r1", "r2"]
    await world.scene.last_saw_runner("r1", 86_500)
    await observe(world)
    assert sorted(await world.scene.runners()) == (["r1", "r2"] if holds else ["r2"])


async def test_a_runner_is_kept_with_the_places_that_it_told_last(world: World) -> None:
    await world.runner("r1")
    assert await world.scene.runners() == {"r1": [0, 0]}
    await world.store.register_runner(RunnerInfo("r1", "host", 8, "0.1.0", (), None, 8, 4_096))
    assert await world.scene.runners() == {"r1": [8, 4_096]}


async def test_of_thousands_of_runners_that_came_and_went_the_newest_are_remembered(world: World) -> None:
    """Each row was kept for a day, and looked at by each renewal."""
    names = [f"r{number:04}" for number in range(1_003)]
    for name in names:
        await world.runner(name)
    for name in names[:4]:
        await world.scene.last_saw_runner(name, 50)
    await observe(world)
    assert len(await world.scene.runners()) == 1_003
    for age, name in enumerate(names[:4]):
        await world.scene.last_saw_runner(name, 80 - age)
    await observe(world)
    assert sorted(await world.scene.runners()) == names[3:]


async def test_a_renewal_after_a_long_absence_is_as_good_as_the_first(world: World) -> None:
    await observe(world)
    await world.runner("r1")
    await world.scene.expire_lease("observer", 3600)
    await world.scene.last_saw_runner("r1", 100_000)
    assert (await observe(world, "r1")).renewed_runners == ("r1",)
    assert await world.scene.controllers() == ["observer"]
    assert sorted(await world.scene.runners()) == ["r1"]
    assert [peer.controller_id for peer in await world.store.find_peers()] == ["observer"]
