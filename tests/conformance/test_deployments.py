"""Deploying, redeploying and killing: behaviour that every store has."""

import asyncio

import pytest

from cronring.controller.core.model import Job
from cronring.controller.errors import Conflict, InvalidModule, NotFound
from cronring.controller.ports.many import WRITTEN_AT_ONCE
from cronring.controller.ports.store import Deployed, SentModule
from cronring.schema.keys import slot_of
from cronring.schema.module import Module, Verb
from tests.conformance.harness import SECOND, TIMEOUT_MS, World


def module(**schedules: str) -> Module:
    return Module("billing", tuple(Verb(name, schedule=schedule) for name, schedule in schedules.items()))


async def deploy(world: World, module: Module, digest: str = "a", activate: bool = True) -> Deployed:
    return await world.store.create_deployment(module, digest * 64, 1, TIMEOUT_MS, activate)


def by_key(deployed: Deployed) -> dict[str, Job]:
    return {job.key: job for job in deployed.jobs}


async def test_every_scheduled_verb_becomes_a_job(world: World) -> None:
    verbs = (
        Verb("close", schedule="0 6 1 * *", timeout_ms=1_000, on_disconnect="finish"),
        Verb("refresh", schedule="every 30m"),
        Verb("helper"),
    )
    before = await world.scene.now()
    deployed = await world.store.create_deployment(Module("billing", verbs), "a" * 64, 2, TIMEOUT_MS, True)
    assert (deployed.key, deployed.active, deployed.created) == ("billing@aaaaaaaaaaaa", True, True)
    assert deployed.added == ("billing.close", "billing.refresh")
    assert (deployed.removed, deployed.carried_over) == ((), ())
    close, refresh = by_key(deployed)["billing.close"], by_key(deployed)["billing.refresh"]
    assert (close.timeout_ms, close.on_disconnect, close.verb) == (1_000, "finish", "close")
    assert (refresh.timeout_ms, refresh.on_disconnect, refresh.revision) == (TIMEOUT_MS, "stop", 1)
    assert close.slot == slot_of("billing.close")
    assert close.deployment == deployed.key
    assert close.next_tick is not None
    assert close.next_tick > before
    assert refresh.next_tick is not None
    assert refresh.next_run_at is not None
    assert abs(refresh.next_run_at - refresh.next_tick) <= 180 * SECOND  # its jitter
    assert 1790 * SECOND < refresh.next_tick - before < 1801 * SECOND
    assert await world.job(refresh.job_id) == refresh


async def test_a_runner_that_comes_back_is_told_its_deployment_and_of_no_jobs(world: World) -> None:
    """Each does, to each controller, and waits for it: a module may have any number of jobs."""
    first = await deploy(world, module(a="every 1h", b="5s"), activate=False)
    assert len(first.jobs) == 2
    again = await deploy(world, module(a="every 1h", b="5s"), activate=False)
    assert again == Deployed(first.key, True, False, (), (), (), [])
    assert await world.job(first.jobs[0].job_id) == first.jobs[0]


async def test_which_deployments_are_active(world: World) -> None:
    first, second = await deploy(world, module(a="5s")), await deploy(world, module(a="6s"), "b")
    keys = [first.key, second.key, "nobody@cccccccccccc"]
    assert await world.store.find_active(keys) == {second.key}
    assert await world.store.find_active([first.key]) == set()
    await world.store.activate_deployment(first.key, 1, TIMEOUT_MS)
    assert await world.store.find_active(keys) == {first.key}
    await world.store.kill_deployment(first.key)
    assert await world.store.find_active(keys) == set()


async def test_deploying_the_same_again_changes_nothing(world: World) -> None:
    first = await deploy(world, module(a="every 1h", b="5s"))
    second = await deploy(world, module(a="every 1h", b="5s"))
    assert not second.created
    assert second.active
    assert (second.added, second.removed, second.carried_over) == ((), (), ("billing.a", "billing.b"))
    assert sorted(second.jobs) == sorted(first.jobs)


async def test_a_new_version_removes_adds_and_carries_over(world: World) -> None:
    first = by_key(await deploy(world, module(gone="5s", same="every 1h", other="every 1h")))
    second = await deploy(world, module(same="every 1h", other="every 2h", new="5s"), "b")
    assert (second.added, second.removed) == (("billing.new",), ("billing.gone",))
    assert second.carried_over == ("billing.other", "billing.same")
    jobs = by_key(second)
    assert sorted(jobs) == ["billing.new", "billing.other", "billing.same"]
    same = first["billing.same"]
    assert jobs["billing.same"] == same._replace(deployment=second.key)
    other = jobs["billing.other"]
    assert (other.job_id, other.revision) == (first["billing.other"].job_id, 2)
    assert other.schedule == "every 2h"
    assert other.anchor > first["billing.other"].anchor
    assert other.next_tick is not None
    assert other.next_tick > await world.scene.now() + 7190 * SECOND
    _, found = await world.store.get_cron_jobs(tuple(range(4096)), 86_400_000)
    assert sorted(found) == sorted(second.jobs)


async def test_an_executing_job_is_rescheduled_at_once(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    (job,) = (await deploy(world, module(a="every 2h"), "b")).jobs
    assert job.executing
    assert job.next_tick is not None
    assert job.next_tick > await world.scene.now()
    (unfinished,) = await world.store.get_unfinished((execution.execution_id,))
    assert unfinished.deployment == execution.deployment
    assert unfinished.job.deployment == job.deployment != execution.deployment


async def test_what_a_changed_or_removed_schedule_still_owed_is_recorded(world: World) -> None:
    await world.controller("c1")
    jobs = await world.jobs("gone", "changed", "running", schedule="5s")
    gone, changed, running = jobs
    now = await world.scene.now()
    tick = now - now % (5 * SECOND) - 60 * SECOND
    for job in jobs:
        await world.scene.set_anchor(job.job_id, tick - 60 * SECOND)  # nothing is owed from before it
        await world.scene.set_next_tick(job.job_id, tick)
    await world.claim("c1", running._replace(next_tick=tick, next_run_at=tick))
    await deploy(world, module(changed="7s", running="7s"), "b")
    skips = {skip.job_id: skip for skip in await world.scene.skips()}
    assert sorted(skips) == sorted([gone.job_id, changed.job_id, running.job_id])
    assert (skips[gone.job_id].reason, skips[changed.job_id].reason) == ("deployment_removed", "superseded")
    assert skips[running.job_id].reason == "overlap"
    assert skips[gone.job_id].first_tick == tick
    assert skips[running.job_id].first_tick == tick + 5 * SECOND
    for skip in skips.values():
        assert skip.ticks == (skip.last_tick - skip.first_tick) // (5 * SECOND) + 1
        assert 0 <= await world.scene.now() - skip.last_tick < 6 * SECOND


async def test_a_removed_job_is_never_claimed_but_its_run_ends(world: World) -> None:
    running, idle = await world.running("c1", "running", "idle")
    await world.scene.set_next_tick(idle.job.job_id, None)
    deployed = await deploy(world, module(other="5s"), "b")
    assert deployed.removed == ("billing.idle", "billing.running")
    (result,) = await world.claim("c1", running.job)
    assert (result.updated, result.next_tick) == (False, None)
    (unfinished,) = await world.store.get_unfinished((running.execution_id,))
    assert unfinished.execution_id == running.execution_id


async def test_a_job_that_moved_on_is_not_claimed_for_a_runner_of_the_version_before(world: World) -> None:
    """The runner was chosen before NOTIFY came: it would run the old code, and the books would name the new one."""
    await world.controller("c1")
    (before,) = await world.due_jobs("a")
    deployed = await deploy(world, module(a=before.schedule), "b")
    assert deployed.carried_over == (before.key,)
    (refused,) = await world.claim("c1", before)
    assert (refused.updated, refused.executing, refused.active) == (False, False, True)
    assert refused.next_tick == before.next_tick
    (claimed,) = await world.claim("c1", before._replace(deployment=deployed.key))
    assert claimed.updated


async def test_an_older_version_may_come_back(world: World) -> None:
    await deploy(world, module(a="every 1h"), "a")
    await deploy(world, module(b="every 1h"), "b")
    back = await deploy(world, module(a="every 1h"), "a")
    assert (back.active, back.created, back.added, back.removed) == (True, True, ("billing.a",), ("billing.b",))


async def test_without_activation_a_new_version_becomes_active_and_a_known_one_does_not(world: World) -> None:
    first = await deploy(world, module(a="every 1h"), "a", activate=False)
    assert (first.active, first.created, first.added) == (True, True, ("billing.a",))
    second = await deploy(world, module(b="every 1h"), "b", activate=False)
    assert (second.active, second.created, second.removed) == (True, True, ("billing.a",))
    # A runner of the first version reconnects.
    again = await deploy(world, module(a="every 1h"), "a", activate=False)
    assert (again.key, again.active, again.created, again.jobs) == (first.key, False, False, [])
    assert await world.job(second.jobs[0].job_id) == second.jobs[0]
    # An operator means it.
    back = await deploy(world, module(a="every 1h"), "a")
    assert (back.active, back.created, back.removed) == (True, True, ("billing.b",))


async def test_a_killed_version_stays_dead_when_its_runner_reconnects(world: World) -> None:
    first = await deploy(world, module(a="every 1h", b="every 1h"))
    assert await world.store.kill_deployment(first.key) == (("billing.a", "billing.b"), ())
    assert await world.store.kill_deployment(first.key) == ((), ())
    again = await deploy(world, module(a="every 1h", b="every 1h"), activate=False)
    assert (again.active, again.jobs) == (False, [])
    assert (await world.store.get_cron_jobs(tuple(range(4096)), 86_400_000))[1] == []
    revived = await deploy(world, module(a="every 1h", b="every 1h"))
    assert (revived.active, revived.added) == (True, ("billing.a", "billing.b"))


async def test_killing_an_older_version_leaves_the_active_one(world: World) -> None:
    first = await deploy(world, module(a="every 1h"), "a")
    second = await deploy(world, module(a="every 1h"), "b")
    assert await world.store.kill_deployment(first.key) == ((), ())
    assert await world.job(second.jobs[0].job_id) == second.jobs[0]


async def test_killing_what_is_not_there_is_said(world: World) -> None:
    with pytest.raises(NotFound, match="billing@0"):
        await world.store.kill_deployment("billing@0")


async def test_modules_and_namespaces_do_not_touch_each_other(world: World) -> None:
    (job,) = (await deploy(world, module(a="every 1h"), "a")).jobs
    for other in (
        Module("billing", (Verb("a", schedule="every 1h"),), namespace="staging"),
        Module("billing2", (Verb("a", schedule="every 1h"),)),
        Module("bill", (Verb("a", schedule="every 1h"),)),
    ):
        deployed = await deploy(world, other, "a")
        assert (len(deployed.added), deployed.removed) == (1, ())
        await world.store.kill_deployment(deployed.key)
    assert await world.job(job.job_id) == job


async def test_many_deployments_at_once_end_with_one_active(world: World) -> None:
    deployed = await asyncio.gather(*(deploy(world, module(a="every 1h", **{f"v{d}": "5s"}), d) for d in "abcdef"))
    assert sum(each.created for each in deployed) == 6
    _, jobs = await world.store.get_cron_jobs(tuple(range(4096)), 86_400_000)
    (active,) = {job.deployment for job in jobs}
    assert sorted(job.key for job in jobs) == ["billing.a", f"billing.v{active[-1]}"]


class Judges:
    """Counts how often a module that was sent is looked at."""

    def __init__(self, module: Module, fingerprint: str = "f") -> None:
        self.module = module
        self.asked = 0
        self.sent = SentModule(module.namespace, module.name, fingerprint * 64, self._judge)

    async def _judge(self) -> Module:
        self.asked += 1
        if not self.module.verbs:
            raise InvalidModule([("schema.verbs", "there are none")])
        return self.module

    async def register(self, world: World, digest: str = "a") -> Deployed:
        return await world.store.register_deployment(self.sent, digest * 64, TIMEOUT_MS)


async def test_the_first_controller_looks_at_a_module_and_the_others_know_it_by_its_bytes(world: World) -> None:
    judges = Judges(module(a="every 1h", b="5s"))
    registered = await asyncio.gather(*(judges.register(world) for _ in range(5)))
    assert judges.asked == 1
    (made,) = [each for each in registered if each.created]
    assert made.added == ("billing.a", "billing.b")
    assert [each for each in registered if not each.created] == [Deployed(made.key, True, False, (), (), (), [])] * 4


async def test_a_registration_tells_of_the_jobs_alone_that_are_due_soon(world: World) -> None:
    """The others are for their owners' next look at the window."""
    judges = Judges(module(soon="every 5s", later="every 1h"))
    made = await world.store.register_deployment(judges.sent, "a" * 64, TIMEOUT_MS, soon_ms=90_000)
    assert made.added == ("billing.later", "billing.soon")
    assert [job.key for job in made.jobs] == ["billing.soon"]


async def test_jobs_of_a_large_module_are_written_in_batches_and_none_is_left_out(world: World) -> None:
    names = [f"job_{number:04}" for number in range(2 * WRITTEN_AT_ONCE + 1)]
    made = await Judges(module(**dict.fromkeys(names, "every 1h"))).register(world)
    assert [job.key for job in made.jobs] == [f"billing.{name}" for name in names]
    kept, gone = names[: WRITTEN_AT_ONCE + 1], names[WRITTEN_AT_ONCE + 1 :]
    again = await Judges(module(**dict.fromkeys(kept, "every 2h")), "2").register(world, "b")
    assert again.carried_over == tuple(f"billing.{name}" for name in kept)
    assert again.removed == tuple(f"billing.{name}" for name in gone)
    assert {job.schedule for job in again.jobs} == {"every 2h"}


async def test_the_same_module_in_other_bytes_is_looked_at_once_more(world: World) -> None:
    first, other = Judges(module(a="every 1h"), "1"), Judges(module(a="every 1h"), "2")
    made = await first.register(world)
    for _ in range(2):
        assert await other.register(world) == Deployed(made.key, True, False, (), (), (), [])
    assert (first.asked, other.asked) == (1, 1)


async def test_a_known_digest_with_other_bytes_and_another_schema_is_refused(world: World) -> None:
    await Judges(module(a="every 1h"), "1").register(world)
    liar = Judges(module(a="every 2h"), "2")
    for _ in range(2):
        with pytest.raises(Conflict):
            await liar.register(world)
    assert liar.asked == 2


async def test_what_the_judge_refuses_leaves_nothing_behind(world: World) -> None:
    faulty = Judges(module())
    with pytest.raises(InvalidModule):
        await faulty.register(world)
    good = Judges(module(a="every 1h"), "2")
    assert (await good.register(world)).created


async def test_a_version_that_was_deployed_is_known_by_its_bytes(world: World) -> None:
    """`cronring deploy` first, then its runners."""
    judges = Judges(module(a="every 1h"))
    deployed = await world.store.create_deployment(
        judges.module, "a" * 64, 1, TIMEOUT_MS, True, fingerprint=judges.sent.fingerprint
    )
    await world.store.kill_deployment(deployed.key)
    assert await judges.register(world) == Deployed(deployed.key, False, False, (), (), (), [])
    assert judges.asked == 0


async def test_the_same_deployment_from_many_at_once_is_made_once(world: World) -> None:
    deployed = await asyncio.gather(*(deploy(world, module(a="every 1h")) for _ in range(8)))
    assert sum(each.created for each in deployed) == 1
    assert len({each.jobs[0] for each in deployed}) == 1
