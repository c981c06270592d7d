"""Jobs that somebody made by hand outlive their verb: what every store does with them."""

import pytest

from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.core.model import Job
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.core.orders.orphaning import misfits
from cronring.controller.errors import Conflict, IllegalTransition
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill, Deployed, RunByHand
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, SLOTS, TIMEOUT_MS, World
from tests.conformance.tampering import hands_of

MINUTE = 60 * SECOND
OFF = Policy(jitter="off")
KEY = "billing.close:berlin"
WITH = Module("billing", (Verb("close", request="String"), Verb("daily", schedule="0 0 * * *", policy=OFF)))
WITHOUT = Module("billing", (Verb("daily", schedule="0 0 * * *", policy=OFF), Verb("new", schedule="* * * * *")))


async def deploy(world: World, module: Module, digest: str, *, dry_run: bool = False) -> Deployed:
    return await world.store.create_deployment(
        module, digest * 64, 1, TIMEOUT_MS, True, by="ada", note="release", dry_run=dry_run
    )


async def make(world: World, name: str = "berlin", policy: Policy = OFF, schedule: str = "* * * * *") -> Job:
    wanted = NewJob(
        "default",
        "billing",
        "close",
        name,
        JobSpec(
            schedule, timeout_ms=7_000, on_disconnect="stop", policy=policy.text, labels={"tier": "slow"}, payload='"x"'
        ),
    )
    return (await world.control.make_job(wanted, "bob", "by hand")).job


@pytest.fixture
async def job(world: World) -> Job:
    """One each minute."""
    await world.controller("c1")
    await deploy(world, WITH, "a")
    return await make(world)


async def orphaned_for(world: World, job: Job, minutes: int) -> int:
    """As if its verb had gone so many minutes ago; the first tick that it has missed."""
    now = await world.scene.now()
    first = now - now % MINUTE - (minutes - 1) * MINUTE
    await world.scene.set_orphaned_tick(job.job_id, first)
    await hands_of(world.scene).open_books(job.job_id, first - 1, first - MINUTE)
    return first


async def reasons(world: World, job: Job) -> list[tuple[str, int, int]]:
    found = [skip for skip in await world.scene.skips() if skip.job_id == job.job_id]
    return sorted((skip.reason, skip.first_tick, skip.ticks) for skip in found)


async def test_a_version_without_its_verb_orphans_what_was_made_by_hand_and_removes_what_was_declared(
    world: World, job: Job
) -> None:
    deployed = await deploy(world, WITHOUT, "b")
    assert (deployed.removed, deployed.orphaned, deployed.back) == ((), (KEY,), ())
    assert (deployed.added, deployed.carried_over) == (("billing.new",), ("billing.daily",))
    assert await world.scene.state(job.job_id) == "orphaned"
    booked = await world.scene.job(job.job_id)
    assert (booked.next_tick, booked.next_run_at, booked.revision) == (None, None, job.revision + 1)
    _, due = await world.store.get_cron_jobs(SLOTS, 10 * 86_400_000)
    assert KEY not in [each.key for each in due]
    # Another version without it changes nothing.
    again = await deploy(world, Module("billing", WITHOUT.verbs[:1]), "c")
    assert (again.removed, again.orphaned, again.back) == (("billing.new",), (), ())
    assert (await world.scene.job(job.job_id)).revision == booked.revision


async def test_its_ticks_are_no_verb_in_one_row_and_it_goes_on_with_the_next_one(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 10)
    ledger = hands_of(world.scene).ledger
    assert await reasons(world, job) == [], "nothing is written while it waits"
    back = await deploy(world, WITH, "a")
    assert (back.back, back.orphaned, back.removed) == ((KEY,), (), ("billing.new",))
    now = await world.job(job.job_id)
    assert await reasons(world, job) == [("no_verb", first, 10)]
    assert (now.next_tick, now.next_run_at) == (first + 10 * MINUTE, first + 10 * MINUTE)
    assert (now.payload, now.timeout_ms, now.deployment, now.policy) == ('"x"', 7_000, back.key, job.policy)
    assert await world.scene.state(job.job_id) == "scheduled"
    assert ledger is not None


async def test_undeploying_orphans_and_an_activation_brings_back(world: World, job: Job) -> None:
    paused = (await world.control.order_job(job.key, Pause("month end"), "eve")).job
    killed = await world.store.kill_deployment(job.deployment, "ada", "retired")
    assert killed == (("billing.daily",), (KEY,))
    assert await world.scene.state(job.job_id) == "orphaned"
    activated = await world.store.activate_deployment(job.deployment, 1, TIMEOUT_MS)
    assert (activated.deployed.back, activated.deployed.added) == ((KEY,), ("billing.daily",))
    assert await world.scene.state(job.job_id) == "paused"
    booked = await world.scene.job(job.job_id)
    assert (booked.paused_by, booked.paused_note, booked.next_tick) == ("eve", "month end", None)
    resumed = (await world.control.order_job(job.key, Resume(), "eve")).job
    assert resumed.next_tick is not None
    assert resumed.revision > paused.revision
    actions = [(each.action, each.actor) for each in await world.scene.actions()]
    assert ("undeploy", "ada") in actions
    assert ("orphan", "ada") in actions
    (undeployed,) = [each for each in await world.scene.actions() if each.action == "undeploy"]
    assert undeployed.details == {
        "removed": 1, "removed_keys": ["billing.daily"], "orphaned": 1, "orphaned_keys": [KEY]
    }  # fmt: skip


async def test_a_dry_run_names_what_would_go_and_changes_nothing(world: World, job: Job) -> None:
    actions = len(await world.scene.actions())
    would = await deploy(world, Module("billing", WITHOUT.verbs[1:]), "b", dry_run=True)
    assert (would.removed, would.orphaned, would.added) == (("billing.daily",), (KEY,), ("billing.new",))
    killed = await world.store.kill_deployment(job.deployment, dry_run=True)
    assert killed == (("billing.daily",), (KEY,))
    assert await world.job(job.job_id) == job
    assert len(await world.scene.actions()) == actions
    done = await deploy(world, Module("billing", WITHOUT.verbs[1:]), "b")
    assert (done.key, done.removed, done.orphaned) == (would.key, would.removed, would.orphaned)
    back = await world.store.activate_deployment(job.deployment, 1, TIMEOUT_MS, dry_run=True)
    assert (back.deployed.back, back.previous) == ((KEY,), done.key)
    assert await world.scene.state(job.job_id) == "orphaned"


@pytest.mark.parametrize("orphaned", [False, True])
async def test_a_dry_run_tells_whose_payload_the_verb_would_no_longer_take(
    world: World, job: Job, *, orphaned: bool
) -> None:
    if orphaned:
        await deploy(world, WITHOUT, "b")
    taking = Module("billing", (Verb("close", request="int"), WITH.verbs[1]))
    would = await deploy(world, taking, "c", dry_run=True)
    assert would.back == ((KEY,) if orphaned else ())
    (found,) = misfits(taking, would.jobs)
    assert (found.key, len(found.faults)) == (job.key, 1)
    assert misfits(WITH, (await deploy(world, WITH, "d", dry_run=True)).jobs) == []


async def test_what_runs_finishes_and_its_end_does_not_bring_ticks_back(world: World, job: Job) -> None:
    await world.runner("r1")
    due = await world.due(job)
    (claimed,) = await world.claim("c1", due)
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    await deploy(world, WITHOUT, "b")
    ended = await world.end(execution, Outcome.FAILED, retry_at=await world.scene.now())
    assert (ended.ended, ended.next_tick, ended.retry_id, ended.paused) == (True, None, None, False)
    assert await world.scene.state(job.job_id) == "orphaned"
    with pytest.raises(Conflict, match="orphaned"):
        await world.execution_control.retry_execution(execution.execution_id, "bob")
    back = await deploy(world, WITH, "a")
    assert back.back == (KEY,)
    assert (await world.scene.job(job.job_id)).next_tick is not None


async def test_what_waits_beside_the_schedule_waits_for_the_verb(world: World, job: Job) -> None:
    await world.runner("r1")
    waiting = await world.control.trigger_job(job.key, "bob", None)
    await deploy(world, WITHOUT, "b")
    assert await world.waiting() == []
    (refused,) = await world.activate("c1", waiting)
    assert (refused.execution, refused.gone) == (None, False)
    back = await deploy(world, WITH, "a")
    (again,) = await world.waiting()
    assert again.activation_id == waiting.activation_id
    (started,) = await world.activate("c1", again)
    assert started.execution is not None
    assert started.execution.deployment == back.key


async def test_orders_are_answered_by_the_table_of_states(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    for refused in (
        world.control.trigger_job(KEY, "bob", None),
        world.control.backfill_job(KEY, "bob", Backfill(0, job.anchor, beside=False, again=False)),
        world.control.order_job(KEY, SkipNext(), "bob"),
    ):
        with pytest.raises(IllegalTransition, match="it is orphaned") as error:
            await refused
        assert error.value.state == "orphaned"
    (many,) = await world.control.order_jobs([job.job_id], RunByHand(None, ""), "bob")
    assert isinstance(many, IllegalTransition)
    assert not (await world.control.order_job(KEY, Resume(), "bob")).changed


async def test_a_pause_of_an_orphaned_job_is_in_force_when_its_verb_is_back(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 5)
    paused = await world.control.order_job(KEY, Pause("not yet"), "bob")
    assert (paused.changed, await world.scene.state(job.job_id)) == (True, "orphaned")
    assert await reasons(world, job) == [("no_verb", first, 5)]
    await deploy(world, WITH, "a")
    assert await world.scene.state(job.job_id) == "paused"
    booked = await world.scene.job(job.job_id)
    assert (booked.paused_tick, booked.paused_note) == (first + 5 * MINUTE, "not yet")
    resumed = (await world.control.order_job(KEY, Resume(), "bob")).job
    assert resumed.next_tick == first + 5 * MINUTE


async def test_a_pause_with_an_end_keeps_its_ticks_and_its_end(world: World, job: Job) -> None:
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    await world.control.order_job(KEY, Pause("maintenance", until), "bob")
    await deploy(world, WITHOUT, "b")
    assert await reasons(world, job) == [("paused", job.next_tick, 10)]
    await deploy(world, WITH, "a")
    assert await world.scene.state(job.job_id) == "paused"
    assert (await world.job(job.job_id)).next_tick == until
    await deploy(world, WITHOUT, "b")
    await world.control.order_job(KEY, Resume(), "bob")
    assert await world.scene.state(job.job_id) == "orphaned"
    await deploy(world, WITH, "a")
    assert (await world.job(job.job_id)).next_tick == job.next_tick
    assert await reasons(world, job) == []


async def test_ticks_that_were_skipped_ahead_stay_skipped(world: World, job: Job) -> None:
    assert job.next_tick is not None
    await world.control.order_job(KEY, SkipNext(), "bob")
    await deploy(world, WITHOUT, "b")
    await deploy(world, WITH, "a")
    assert await reasons(world, job) == [("cancelled", job.next_tick, 1)]
    assert (await world.job(job.job_id)).next_tick == job.next_tick + MINUTE


async def test_an_update_is_for_when_the_verb_is_back(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 3)
    updated = await world.control.update_job(KEY, JobChange.to(schedule="*/5 * * * *", payload='"y"'), "bob")
    assert (updated.next_tick, updated.schedule, updated.payload) == (None, "*/5 * * * *", '"y"')
    assert await world.scene.state(job.job_id) == "orphaned"
    assert await reasons(world, job) == [("no_verb", first, 3)]
    await deploy(world, WITH, "a")
    back = await world.job(job.job_id)
    assert back.next_tick is not None
    assert (back.next_tick % (5 * MINUTE), back.payload) == (0, '"y"')


async def test_cancelled_and_restored_it_is_orphaned_again(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 4)
    await world.control.order_job(KEY, Cancel("stop"), "bob")
    assert await world.scene.state(job.job_id) == "cancelled"
    assert await reasons(world, job) == [("no_verb", first, 4)]
    await world.control.order_job(KEY, Restore(), "bob")
    assert await world.scene.state(job.job_id) == "orphaned"
    await world.control.order_job(KEY, Cancel("stop"), "bob")
    await deploy(world, WITH, "a")
    assert await world.scene.state(job.job_id) == "cancelled"
    restored = (await world.control.order_job(KEY, Restore(), "bob")).job
    assert restored.next_tick is not None


async def test_deleting_it_is_an_order_and_closes_its_books(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 6)
    await world.control.delete_job(KEY, "bob", "no longer")
    assert await reasons(world, job) == [("no_verb", first, 6)]
    back = await deploy(world, WITH, "a")
    assert (back.back, back.added) == ((), ())
    assert (await world.scene.spans(job.job_id))[-1].until_at is not None
    assert (await make(world)).job_id != job.job_id


async def test_the_same_job_is_not_made_beside_an_orphan(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    with pytest.raises(Conflict, match="has no verb 'close'"):
        await make(world)
    await deploy(world, WITH, "a")
    assert (await make(world)).job_id == job.job_id


async def test_ticks_of_a_job_that_it_follows_lead_to_nothing_meanwhile(world: World, job: Job) -> None:
    follower = await make(world, "after", Policy(after="billing.daily", jitter="off"), "manual")
    await world.runner("r1")
    await deploy(world, WITHOUT, "b")
    assert await world.scene.state(follower.job_id) == "orphaned"
    jobs = {each.key: each for each in (await world.store.get_cron_jobs(SLOTS, 10 * 86_400_000))[1]}
    daily = await world.due(jobs["billing.daily"])
    (claimed,) = await world.claim("c1", daily)
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    ended = await world.end(execution)
    assert (ended.ended, ended.followers) == (True, None)
    assert await world.scene.activations() == []
    assert job.key == KEY


async def test_the_audit_counts_every_tick_of_an_orphan(world: World, job: Job) -> None:
    await deploy(world, WITHOUT, "b")
    await orphaned_for(world, job, 8)
    hands = hands_of(world.scene)

    for thorough in (False, True):
        found = (await hands.ledger.audit(AuditRequest(None, None, KEY, 10 * SECOND, thorough))).audit
        assert (found.clean, dict(found.skipped), found.pending) == (True, {"no_verb": 8}, 0)
    await deploy(world, WITH, "a")
    for thorough in (False, True):
        found = (await hands.ledger.audit(AuditRequest(None, None, KEY, 10 * SECOND, thorough))).audit
        assert (found.clean, found.skipped["no_verb"]) == (True, 8)


async def test_why_says_so_before_and_after(world: World, job: Job) -> None:

    await deploy(world, WITHOUT, "b")
    first = await orphaned_for(world, job, 8)
    hands = hands_of(world.scene)
    facts = await hands.ledger.facts(KEY, first + MINUTE)
    text = " ".join(explain(facts))
    assert verdict(facts) == "orphaned"
    assert "It does not run (no_verb): no active version of its module has its verb." in text
    assert "It has been orphaned since" in text
    assert "cronring jobs delete billing.close:berlin" in text
    await deploy(world, WITH, "a")
    facts = await hands.ledger.facts(KEY, first + MINUTE)
    text = " ".join(explain(facts))
    assert verdict(facts) == "skipped"
    assert "It was skipped (no_verb): no active version of its module had its verb" in text
    assert "by ada (“release”) (bring_back)" in text


async def test_a_digest_names_one_schema(world: World, job: Job) -> None:
    for activate in (True, False):
        with pytest.raises(Conflict, match="is that of billing@aaaaaaaaaaaa already, with another schema"):
            await world.store.create_deployment(WITHOUT, "a" * 64, 1, TIMEOUT_MS, activate)
    with pytest.raises(Conflict, match="with another schema"):  # its name is made of the first twelve digits
        await world.store.create_deployment(WITHOUT, "a" * 63 + "b", 1, TIMEOUT_MS, True)
    assert await world.job(job.job_id) == job
    same = await world.store.create_deployment(WITH, "a" * 64, 1, TIMEOUT_MS, True)
    assert (same.key, same.created) == (job.deployment, False)
