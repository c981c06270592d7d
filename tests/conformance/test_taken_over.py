"""What an operator set stays with the (module, verb): a declared job comes back paused or cancelled as it was."""

from collections.abc import Callable
from typing import Any

import pytest

from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.core.model import Job
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.ports.store import Deployed
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World
from tests.conformance.tampering import hands_of

MINUTE = 60 * SECOND
OFF = Policy(jitter="off")
KEY = "billing.daily"
OTHER = Verb("other", schedule="0 0 * * *", policy=OFF)
WITH = Module("billing", (Verb("daily", schedule="* * * * *", policy=OFF), OTHER))
WITHOUT = Module("billing", (OTHER,))
CHANGED = Module("billing", (Verb("daily", schedule="*/5 * * * *", policy=OFF), OTHER))


async def deploy(world: World, module: Module, digest: str) -> Deployed:
    return await world.store.create_deployment(module, digest * 64, 1, TIMEOUT_MS, True, by="ada", note="release")


async def undeployed_and_activated(world: World, key: str) -> Deployed:
    await world.store.kill_deployment(key, "ada", "a mistake")
    return (await world.store.activate_deployment(key, 1, TIMEOUT_MS, by="ada", note="release")).deployed


async def lacked_and_rolled_back(world: World, key: str) -> Deployed:
    assert (await deploy(world, WITHOUT, "b")).removed == (KEY,)
    return (await world.store.activate_deployment(key, 1, TIMEOUT_MS, by="ada", note="release")).deployed


async def lacked_and_deployed_again(world: World, key: str) -> Deployed:
    await deploy(world, WITHOUT, "b")
    await deploy(world, Module("billing", (OTHER, Verb("new", schedule="0 0 * * *"))), "d")
    return await deploy(world, WITH, "e")


WAYS = [undeployed_and_activated, lacked_and_rolled_back, lacked_and_deployed_again]
ways = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
async def job(world: World) -> Job:
    await world.controller("c1")
    return found(await deploy(world, WITH, "a"))


def found(deployed: Deployed) -> Job:
    assert KEY in {*deployed.added, *deployed.carried_over}
    return next(job for job in deployed.jobs if job.key == KEY)


async def skipped(world: World, job: Job) -> list[tuple[str, int, int]]:
    rows = [skip for skip in await world.scene.skips() if skip.job_id == job.job_id]
    return sorted((skip.reason, skip.first_tick, skip.ticks) for skip in rows)


async def kept(world: World) -> list[tuple[str, str, str, dict[str, object]]]:
    found = [each for each in await world.scene.actions() if each.action.startswith("keep_")]
    return [(each.action, each.actor, each.note, each.details) for each in found]


async def assert_accounted(world: World) -> None:
    for thorough in (False, True):
        found = (await hands_of(world.scene).ledger.audit(AuditRequest(None, None, "", 10 * SECOND, thorough))).audit
        assert found.clean, found


@ways
async def test_a_pause_without_an_end(world: World, job: Job, way: Callable[..., Any]) -> None:
    await world.control.order_job(KEY, Pause("month end"), "eve")
    back = found(await way(world, job.deployment))
    assert back.job_id != job.job_id
    assert (back.next_tick, await world.scene.state(back.job_id)) == (None, "paused")
    booked = await world.scene.job(back.job_id)
    assert (booked.paused_by, booked.paused_note) == ("eve", "month end")
    opened_at = (await world.scene.spans(back.job_id))[-1].from_at
    assert booked.paused_tick == opened_at - opened_at % MINUTE + MINUTE, "none before its return is the pause's"
    ((action, actor, note, details),) = await kept(world)
    assert (action, actor, note) == ("keep_paused", "ada", "release")
    assert (details["by"], details["note"], details["deployment"]) == ("eve", "month end", back.deployment)
    text = " ".join(explain(await hands_of(world.scene).ledger.facts(KEY, booked.paused_tick)))
    assert "by eve (“month end”), until somebody resumes it" in text
    assert "That was taken over from the job of that name before, as a deployment by ada (“release”)" in text
    # So long ago that ticks have passed.
    first = booked.paused_tick - 9 * MINUTE
    await world.scene.set_paused_tick(back.job_id, first)
    await hands_of(world.scene).open_books(back.job_id, first - 1, None)
    await assert_accounted(world)
    facts = await hands_of(world.scene).ledger.facts(KEY, first + MINUTE)
    assert verdict(facts) == "paused"
    assert "by eve (“month end”)" in " ".join(explain(facts))
    resumed = (await world.control.order_job(KEY, Resume(), "eve")).job
    assert resumed.next_tick is not None
    assert [(reason, tick) for reason, tick, _ in await skipped(world, back)] == [("paused", first)]
    await assert_accounted(world)


@ways
async def test_a_pause_with_an_end(world: World, job: Job, way: Callable[..., Any]) -> None:
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    await world.control.order_job(KEY, Pause("maintenance", until), "eve")
    back = found(await way(world, job.deployment))
    assert (back.next_tick, back.next_run_at) == (until, until)
    assert await world.scene.state(back.job_id) == "paused"
    assert await skipped(world, job) == [], "what was decided ahead of the removed one is taken back"
    ((reason, first, ticks),) = await skipped(world, back)
    assert (reason, first + ticks * MINUTE) == ("paused", until)
    assert first >= job.next_tick
    await assert_accounted(world)
    facts = await hands_of(world.scene).ledger.facts(KEY, first)
    text = " ".join(explain(facts))
    assert "(paused): the job was paused" in text
    assert "by eve (“maintenance”)" in text
    # Resumed, what is to come is taken back; and nothing of the pause is left to take over.
    resumed = (await world.control.order_job(KEY, Resume(), "eve")).job
    assert resumed.next_tick == first
    again = found(await way(world, back.deployment)) if way is undeployed_and_activated else None
    if again is not None:
        assert again.next_tick is not None
        assert await world.scene.state(again.job_id) == "scheduled"
        assert len(await kept(world)) == 1


async def test_a_pause_whose_end_has_passed_is_over(world: World, job: Job) -> None:
    await world.scene.set_pause(job.job_id, await world.scene.now() - SECOND, 0)
    back = found(await undeployed_and_activated(world, job.deployment))
    assert (await world.scene.state(back.job_id), await kept(world)) == ("scheduled", [])
    # So it is where the clock was set back before its end, and a tick from then on had run.
    until = await world.scene.now() + 10 * MINUTE
    await world.scene.set_pause(back.job_id, until, until)
    again = found(await undeployed_and_activated(world, job.deployment))
    assert (await world.scene.state(again.job_id), await kept(world)) == ("scheduled", [])


async def test_another_schedule_is_paused_by_its_own_ticks(world: World, job: Job) -> None:
    await world.control.order_job(KEY, Pause("month end"), "eve")
    await deploy(world, WITHOUT, "b")
    back = found(await deploy(world, CHANGED, "c"))
    booked = await world.scene.job(back.job_id)
    assert booked.paused_tick is not None
    assert booked.paused_tick % (5 * MINUTE) == 0
    await assert_accounted(world)


@ways
async def test_a_cancelled_job_stays_cancelled(world: World, job: Job, way: Callable[..., Any]) -> None:
    await world.control.order_job(KEY, Cancel("never again"), "eve")
    back = found(await way(world, job.deployment))
    assert (back.next_tick, await world.scene.state(back.job_id)) == (None, "cancelled")
    ((action, actor, note, details),) = await kept(world)
    assert (action, actor, note, details["by"]) == ("keep_cancelled", "ada", "release", "eve")
    await assert_accounted(world)
    text = " ".join(explain(await hands_of(world.scene).ledger.facts(KEY, None)))
    assert "by eve (“never again”)" in text
    restored = (await world.control.order_job(KEY, Restore(), "eve")).job
    assert restored.next_tick is not None
    await assert_accounted(world)


async def test_only_what_was_set_last_counts(world: World, job: Job) -> None:
    await world.control.order_job(KEY, Pause("month end"), "eve")
    back = found(await undeployed_and_activated(world, job.deployment))
    await world.control.order_job(KEY, Resume(), "eve")
    await lacked_and_rolled_back(world, back.deployment)
    latest = found(await undeployed_and_activated(world, back.deployment))
    assert await world.scene.state(latest.job_id) == "scheduled"
    assert len(await kept(world)) == 1


async def test_a_dry_run_takes_nothing_over(world: World, job: Job) -> None:
    await world.control.order_job(KEY, Pause("month end"), "eve")
    await deploy(world, WITHOUT, "b")
    would = await world.store.activate_deployment(job.deployment, 1, TIMEOUT_MS, dry_run=True)
    assert would.deployed.added == (KEY,)
    assert await kept(world) == []
