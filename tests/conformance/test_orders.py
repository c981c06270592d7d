"""Pauses with an end, ticks skipped ahead, cancelled jobs: behaviour that every store has."""

import pytest

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.errors import Conflict, IllegalTransition, NotFound
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill, RunByHand
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.booked import BookedSkip
from tests.conformance.harness import SECOND, TIMEOUT_MS, World

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
OFF = Policy(jitter="off")


async def minutely(world: World, *names: str, policy: Policy = OFF) -> list[Job]:
    """Jobs each minute by the clock, whose next tick is to come."""
    verbs = tuple(Verb(name, schedule="* * * * *", policy=policy) for name in names or ("a",))
    deployed = await world.store.create_deployment(Module("billing", verbs), "a" * 64, 1, TIMEOUT_MS, True)
    return sorted(deployed.jobs)


async def skips(world: World, job: Job) -> list[tuple[str, int, int, int]]:
    """In order of their ticks."""
    found = [skip for skip in await world.scene.skips() if skip.job_id == job.job_id]
    return sorted((skip.reason, skip.first_tick, skip.last_tick, skip.ticks) for skip in found)


async def test_a_pause_with_an_end_has_decided_about_every_tick_before_it(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    paused = (await world.control.order_job(job.key, Pause("maintenance", until), "me")).job
    assert (paused.next_tick, paused.next_run_at, paused.revision) == (until, until, job.revision + 1)
    booked = await world.scene.job(job.job_id)
    assert (booked.paused, booked.paused_tick, booked.paused_note) == (True, job.next_tick, "maintenance")
    assert await skips(world, job) == [("paused", job.next_tick, until - MINUTE, 10)]


async def test_an_end_between_two_ticks_is_for_the_one_after_it(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + 30 * SECOND
    paused = (await world.control.order_job(job.key, Pause("", until), "me")).job
    assert paused.next_tick == job.next_tick + MINUTE
    assert await skips(world, job) == [("paused", job.next_tick, job.next_tick, 1)]


async def test_no_run_begins_before_a_pause_ends_whatever_the_jitter(world: World) -> None:
    verb = Verb("a", schedule="every 1h", policy=Policy(jitter="±10%"))
    deployed = await world.store.create_deployment(Module("billing", (verb,)), "a" * 64, 1, TIMEOUT_MS, True)
    (job,) = deployed.jobs
    assert job.next_tick is not None
    for hours in range(1, 9):
        until = job.next_tick + hours * HOUR
        paused = (await world.control.order_job(job.key, Pause("", until), "me")).job
        assert paused.next_tick == until
        assert paused.next_run_at is not None
        assert paused.next_run_at >= until


async def test_its_end_comes_by_itself_and_the_first_tick_then_is_claimed(world: World) -> None:
    (job,) = await minutely(world)
    await world.controller("c1")
    done = await world.control.order_job(job.key, Pause("", await world.scene.now() + HOUR), "me")
    assert (await world.scene.job(job.job_id)).paused
    until = await world.scene.now() + 500_000  # begun anew, as a busy machine may take longer from here to the check
    done = await world.control.order_job(job.key, Pause("", until), "me")
    assert done.job.next_tick is not None
    due = await world.due(done.job)  # its first tick from the end on
    while await world.scene.now() <= until:
        pass  # PostgreSQL's clock is what ends it
    assert not (await world.scene.job(job.job_id)).paused
    (claimed,) = await world.claim("c1", due)
    assert claimed.updated
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    ended = await world.end(execution, Outcome.COMPLETED)
    assert ended.next_tick == execution.tick + HOUR, "its end counts, though nobody has resumed it"


async def test_resumed_early_it_takes_back_what_has_not_come(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    await world.control.order_job(job.key, Pause("", job.next_tick + 10 * MINUTE), "me")
    resumed = (await world.control.order_job(job.key, Resume("done"), "me")).job
    assert (resumed.next_tick, resumed.next_run_at) == (job.next_tick, job.next_tick)
    assert await skips(world, job) == []
    assert not (await world.scene.job(job.job_id)).paused


async def test_resumed_in_the_middle_the_past_stays_in_the_books(world: World) -> None:
    (job,) = await world.jobs("a", schedule="1s", policy=OFF)
    due = await world.due(job, seconds_ago=5)
    assert due.next_tick is not None
    now = await world.scene.now()
    await world.control.order_job(job.key, Pause("", now + HOUR), "me")
    resumed = (await world.control.order_job(job.key, Resume(), "me")).job
    assert resumed.next_tick is not None
    last = resumed.next_tick - SECOND
    assert await skips(world, job) == [("paused", due.next_tick, last, (last - due.next_tick) // SECOND + 1)]


async def test_repeating_a_pause_changes_nothing_and_another_end_moves_it(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    first = await world.control.order_job(job.key, Pause("why", until), "me")
    again = await world.control.order_job(job.key, Pause("", until), "you")
    assert (first.changed, again.changed, again.job) == (True, False, first.job)
    assert (await world.scene.job(job.job_id)).paused_by == "me"
    sooner = await world.control.order_job(job.key, Pause("", until - 5 * MINUTE), "you")
    assert (sooner.changed, sooner.job.next_tick) == (True, until - 5 * MINUTE)
    assert await skips(world, job) == [("paused", job.next_tick, until - 6 * MINUTE, 5)]
    booked = await world.scene.job(job.job_id)
    assert (booked.paused_by, booked.paused_note) == ("you", "why")
    for_good = await world.control.order_job(job.key, Pause("later"), "me")
    assert (for_good.changed, for_good.job.next_tick) == (True, None)
    assert await skips(world, job) == []
    booked = await world.scene.job(job.job_id)
    assert (booked.paused_tick, booked.paused_note) == (job.next_tick, "later")
    with_an_end = await world.control.order_job(job.key, Pause("", until), "me")
    assert with_an_end.job.next_tick == until
    assert await skips(world, job) == [("paused", job.next_tick, until - MINUTE, 10)]


async def test_a_pause_with_an_end_stays_over_a_redeployment(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + HOUR
    paused = (await world.control.order_job(job.key, Pause("", until), "me")).job
    same = Module("billing", (Verb("a", schedule="* * * * *", policy=OFF), Verb("b", schedule="1h")))
    carried = {each.key: each for each in (await world.store.create_deployment(same, "b" * 64, 1, 1, True)).jobs}
    assert carried["billing.a"] == paused._replace(deployment=carried["billing.a"].deployment, timeout_ms=1)
    other = Module("billing", (Verb("a", schedule="*/7 * * * *", policy=OFF),))
    (carried_on,) = (await world.store.create_deployment(other, "c" * 64, 1, 1, True)).jobs
    assert carried_on.next_tick is not None
    assert until <= carried_on.next_tick < until + 7 * MINUTE, "by the new schedule, and not before the pause's end"
    ((reason, _, last, _),) = await skips(world, job)
    assert (reason, last < until) == ("paused", True)
    old, new = await world.scene.spans(job.job_id)
    assert old.until_at == new.from_at
    assert new.from_at <= await world.scene.now(), "its books begin now, and not behind the pause"
    assert (await world.scene.job(job.job_id)).paused


async def test_the_end_of_a_run_does_not_undo_a_pause_with_an_end(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    now = await world.scene.now()
    done = await world.control.order_job(execution.job.key, Pause("", now + 5 * HOUR), "me")
    assert (done.running_execution_id, done.job.executing) == (execution.execution_id, True)
    ended = await world.end(execution)
    assert ended.next_tick == done.job.next_tick
    assert ended.next_tick is not None
    assert ended.next_tick >= now + 5 * HOUR


async def test_retries_and_backfills_wait_for_the_end_of_a_pause(world: World) -> None:
    (job,) = await minutely(world)
    await world.controller("c1")
    now = await world.scene.now()
    await world.control.backfill_job(job.key, "me", Backfill(now - HOUR, now, beside=True, again=True))
    await world.control.order_job(job.key, Pause("", now + HOUR), "me")
    assert [each.run_at for each in await world.waiting()] == [now + HOUR]
    await world.control.order_job(job.key, Pause(), "me")
    assert await world.waiting() == [], "nobody knows until when"
    await world.control.order_job(job.key, Resume(), "me")
    (waiting,) = await world.waiting()
    assert waiting.run_at < now + HOUR


async def test_the_next_tick_is_skipped_once_whoever_asks(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    rehearsed = await world.control.order_job(job.key, SkipNext(), "me", dry_run=True)
    assert (rehearsed.changed, rehearsed.job) == (True, job)
    for by in ("me", "you"):
        done = await world.control.order_job(job.key, SkipNext(job.next_tick, "no"), by)
        assert (done.changed, done.details["tick"]) == (by == "me", rehearsed.details["tick"])
        assert (done.job.next_tick, done.job.revision) == (job.next_tick + MINUTE, job.revision + 1)
    assert await skips(world, job) == [("cancelled", job.next_tick, job.next_tick, 1)]
    await world.control.order_job(job.key, SkipNext(), "me")
    assert [skip[1] for skip in await skips(world, job)] == [job.next_tick, job.next_tick + MINUTE]


async def test_a_tick_that_has_begun_or_is_not_next_is_told(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    with pytest.raises(Conflict, match=f"has begun as execution {execution.execution_id}"):
        await world.control.order_job(execution.job.key, SkipNext(execution.tick), "me")
    with pytest.raises(Conflict, match=r"the next tick of 'billing\.a' is"):
        await world.control.order_job(execution.job.key, SkipNext(execution.tick + 7 * HOUR), "me")


async def test_while_it_runs_the_tick_after_is_skipped(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    done = await world.control.order_job(execution.job.key, SkipNext(), "me")
    first = execution.job.next_tick or 0
    ((reason, skipped, _, _),) = await skips(world, execution.job)
    assert (reason, skipped > first) == ("cancelled", True)
    ended = await world.end(execution)
    assert ended.next_tick == done.job.next_tick
    assert (ended.next_tick or 0) > skipped


async def test_what_passed_while_it_runs_is_overlap_before_the_tick_that_is_skipped(world: World) -> None:
    (job,) = await world.jobs("a", schedule="1s", policy=OFF)
    await world.controller("c1")
    due = await world.due(job, seconds_ago=10)
    (claimed,) = await world.claim("c1", due)
    assert claimed.updated
    assert due.next_tick is not None
    done = await world.control.order_job(job.key, SkipNext(), "me")
    assert done.job.next_tick is not None
    skipped = done.job.next_tick - SECOND
    overlap, cancelled = sorted(await skips(world, job), key=lambda skip: skip[1])
    assert overlap[:3] == ("overlap", due.next_tick + SECOND, skipped - SECOND)
    assert cancelled == ("cancelled", skipped, skipped, 1)


async def test_outside_its_window_the_next_tick_is_the_next_that_would_run(world: World) -> None:
    (job,) = await minutely(world, policy=Policy(jitter="off", window="03:00-03:05"))
    done = await world.control.order_job(job.key, SkipNext(), "me")
    booked = sorted(await skips(world, job), key=lambda skip: skip[1])
    assert booked[-1][0] == "cancelled"
    minute_of_day = booked[-1][1] // MINUTE % 1440
    assert 180 <= minute_of_day <= 185
    assert all(reason == "outside_window" for reason, *_ in booked[:-1])
    assert done.job.next_tick == booked[-1][1] + MINUTE


async def test_a_new_schedule_takes_back_what_was_skipped_ahead(world: World) -> None:
    declared = Module("billing", (Verb("a"),))
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)
    yearly = NewJob(
        "default", "billing", "a", "x", JobSpec("0 0 1 1 *", timeout_ms=1_000, on_disconnect="stop", policy=OFF.text)
    )
    job = (await world.control.make_job(yearly, "me")).job
    await world.control.order_job(job.key, SkipNext(), "me")
    changed = await world.control.update_job(job.key, JobChange.to(schedule="* * * * *"), "me")
    assert changed.next_tick is not None
    assert changed.next_tick <= await world.scene.now() + MINUTE, "and not behind the year's tick that was skipped"
    assert await skips(world, job) == []


async def test_a_cancelled_job_has_neither_ticks_nor_books_until_it_is_restored(world: World) -> None:
    (job,) = await minutely(world)
    due = await world.due(job)
    await world.control.trigger_job(job.key, "me", None)
    done = await world.control.order_job(job.key, Cancel("enough"), "me")
    assert (done.job.next_tick, done.job.revision, done.changed) == (None, job.revision + 1, True)
    assert [skip[0] for skip in await skips(world, job)] == ["cancelled"]
    assert await world.scene.activations() == []
    (span,) = await world.scene.spans(job.job_id)
    assert span.until_at is not None
    again = await world.control.order_job(job.key, Cancel(), "you")
    assert (again.changed, again.job) == (False, done.job)
    await world.controller("c1")
    assert not (await world.claim("c1", due))[0].updated
    restored = await world.control.order_job(job.key, Restore("again"), "me")
    assert restored.job.next_tick is not None
    assert restored.job.next_tick > await world.scene.now() - MINUTE
    _, opened = await world.scene.spans(job.job_id)
    assert (opened.until_at, opened.from_at >= span.until_at) == (None, True)
    assert not (await world.control.order_job(job.key, Restore(), "me")).changed


async def test_cancelling_a_job_tells_what_runs_to_stop(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    done = await world.control.order_job(execution.job.key, Cancel("stop it"), "me")
    assert done.cancelling == 1
    renewal = await world.renewed("c1")
    assert [(each.execution_id, each.by, each.note) for each in renewal.cancels] == [
        (execution.execution_id, "me", "stop it")
    ]
    ended = await world.end(execution, Outcome.CANCELLED, retry_at=execution.claimed_at)
    assert (ended.ended, ended.next_tick, ended.retry_id) == (True, None, None)
    assert await world.scene.activations() == []


async def test_a_cancelled_job_stays_so_over_deployments(world: World) -> None:
    (job,) = await minutely(world)
    await world.control.order_job(job.key, Cancel(), "me")
    for digest, schedule in (("b", "* * * * *"), ("c", "every 3h")):
        declared = Module("billing", (Verb("a", schedule=schedule, policy=OFF),))
        deployed = await world.store.create_deployment(declared, digest * 64, 1, TIMEOUT_MS, True)
        (carried,) = deployed.jobs
        assert (carried.job_id, carried.schedule, carried.next_tick) == (job.job_id, schedule, None)
        assert [span.until_at is None for span in await world.scene.spans(job.job_id)] == [False]
    restored = (await world.control.order_job(job.key, Restore(), "me")).job
    assert restored.schedule == "every 3h"
    assert restored.next_tick is not None
    spans = await world.scene.spans(job.job_id)
    assert [(span.schedule, span.until_at is None) for span in spans] == [("* * * * *", False), ("every 3h", True)]
    await world.store.kill_deployment(restored.deployment)
    with pytest.raises(NotFound):
        await world.control.order_job(job.key, Cancel(), "me")


async def test_what_a_state_does_not_allow_names_both_states(world: World) -> None:
    (job,) = await minutely(world)
    await world.control.order_job(job.key, Cancel(), "me")
    for attempt in (
        world.control.order_job(job.key, Pause(), "me"),
        world.control.order_job(job.key, Resume(), "me"),
        world.control.order_job(job.key, SkipNext(), "me"),
        world.control.trigger_job(job.key, "me", None),
        world.control.backfill_job(job.key, "me", Backfill(0, 1, beside=False, again=False)),
    ):
        with pytest.raises(IllegalTransition, match="cancelled") as refused:
            await attempt
        assert (refused.value.job, refused.value.state) == (job.key, "cancelled")
        assert refused.value.target in str(refused.value)
        assert "cronring jobs restore" in str(refused.value)


async def test_many_jobs_at_once_each_with_its_own_fate(world: World) -> None:
    jobs = await minutely(world, "a", "b", "c")
    await world.control.order_job(jobs[1].key, Cancel(), "me")
    await world.control.order_job(jobs[2].key, Pause("x"), "me")
    ids = [job.job_id for job in jobs]
    rehearsed = await world.control.order_jobs([*ids, 999], Pause("x"), "me", dry_run=True)
    done = await world.control.order_jobs([*ids, 999], Pause("x"), "me")
    for first, second, third, gone in (rehearsed, done):
        assert not isinstance(first, Conflict)
        assert not isinstance(third, Conflict)
        assert first is not None
        assert third is not None
        assert (first.changed, third.changed, gone) == (True, False, None)
        assert isinstance(second, IllegalTransition)
    assert (await world.scene.job(ids[0])).paused
    made = await world.control.order_jobs(ids, RunByHand(), "me")
    assert [isinstance(each, Conflict) for each in made] == [False, True, False]
    assert [each.job_id for each in await world.scene.activations()] == [ids[0], ids[2]]


async def test_every_action_is_kept_with_who_and_why(world: World) -> None:
    (job,) = await minutely(world)
    control = world.control
    await control.order_job(job.key, Pause("bank"), "ada")
    await control.order_job(job.key, Pause("bank"), "ada")  # changes nothing
    await control.order_job(job.key, Resume("open"), "bob")
    await control.order_job(job.key, SkipNext(None, "by hand"), "ada")
    activation = await control.trigger_job(job.key, "ada", None, "now")
    assert await control.cancel_activation(job.key, activation.activation_id, "bob", "no")
    await control.order_job(job.key, Cancel("over"), "ada")
    await control.order_job(job.key, Restore("not over"), "bob")
    await world.store.kill_deployment(job.deployment, "bob", "moved")
    kept = await world.scene.actions()
    assert [(each.action, each.actor, each.note) for each in kept] == [
        ("deploy", "", ""), ("pause", "ada", "bank"), ("resume", "bob", "open"), ("skip_next", "ada", "by hand"),
        ("trigger", "ada", "now"), ("cancel_activation", "bob", "no"), ("cancel", "ada", "over"),
        ("restore", "bob", "not over"), ("undeploy", "bob", "moved"),
    ]  # fmt: skip
    assert "tick" in kept[3].details
    assert kept[4].details == kept[5].details == {"activation": activation.activation_id}


async def test_an_older_version_is_activated_again(world: World) -> None:
    old = Module("billing", (Verb("a", schedule="* * * * *", policy=OFF), Verb("gone", schedule="1h")))
    new = Module("billing", (Verb("a", schedule="* * * * *", policy=OFF), Verb("new", schedule="1h")))
    first = await world.store.create_deployment(old, "a" * 64, 1, TIMEOUT_MS, True)
    second = await world.store.create_deployment(new, "b" * 64, 1, TIMEOUT_MS, True)
    await world.control.order_job("billing.a", Pause("stays"), "me")
    back = await world.store.activate_deployment(first.key, 1, TIMEOUT_MS, "", "ada", "wrong totals")
    assert (back.previous, back.running, back.deployed.created) == (second.key, 0, True)
    assert (back.deployed.added, back.deployed.removed) == (("billing.gone",), ("billing.new",))
    assert {job.deployment for job in back.deployed.jobs} == {first.key}
    paused = next(job for job in back.deployed.jobs if job.key == "billing.a")
    assert (await world.scene.job(paused.job_id)).paused_note == "stays"
    again = await world.store.activate_deployment(first.key, 1, TIMEOUT_MS, "", "ada", "")
    assert (again.deployed.created, again.previous) == (False, None)
    assert [each.action for each in await world.scene.actions()] == ["deploy", "deploy", "pause", "activate"]
    with pytest.raises(NotFound, match="billing@zzz"):
        await world.store.activate_deployment("billing@zzz", 1, TIMEOUT_MS)


async def test_what_runs_of_the_version_before_goes_on_and_is_told(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    other = Module("billing", (Verb("a", schedule="every 1h", policy=OFF), Verb("b")))
    second = await world.store.create_deployment(other, "b" * 64, 1, TIMEOUT_MS, True)
    back = await world.store.activate_deployment(execution.deployment, 1, TIMEOUT_MS)
    assert (back.previous, back.running) == (second.key, 0)
    forth = await world.store.activate_deployment(second.key, 1, TIMEOUT_MS)
    assert (forth.previous, forth.running) == (execution.deployment, 1)
    unfinished: list[Execution] = await world.store.get_unfinished((execution.execution_id,))
    assert [each.deployment for each in unfinished] == [execution.deployment]
    ended = await world.end(execution)
    assert ended.ended


def _is_booked(skip: BookedSkip, tick: int) -> bool:
    return skip.first_tick <= tick <= skip.last_tick


async def test_along_any_orders_no_tick_is_booked_twice(world: World) -> None:
    (job,) = await world.jobs("a", schedule="1s", policy=OFF)
    now = await world.scene.now()
    for order in (
        SkipNext(), SkipNext(), Pause("", now + 20 * SECOND), Pause("", now + 9 * SECOND), Resume(), SkipNext(),
        Pause(), Pause("", now + 30 * SECOND), Cancel(), Restore(), SkipNext(), Pause("", now + 40 * SECOND),
    ):  # fmt: skip
        await world.control.order_job(job.key, order, "me")
        booked = await world.scene.skips()
        for skip in booked:
            assert skip.ticks == (skip.last_tick - skip.first_tick) // SECOND + 1
            for tick in range(skip.first_tick, skip.last_tick + 1, SECOND):
                assert sum(_is_booked(other, tick) for other in booked) == 1, (order, tick, booked)
        row = await world.scene.job(job.job_id)
        if row.next_tick is not None:
            assert not any(_is_booked(skip, row.next_tick) for skip in booked), (order, row, booked)
            before = row.next_tick - SECOND
            if before > await world.scene.now():
                assert any(_is_booked(skip, before) for skip in booked), (order, row, booked)


# PostgreSQL's clock set back: a pause that had ended seems to be in force again, though a tick from its end on has run


async def test_the_run_of_a_tick_after_a_pause_moves_its_job_on_though_the_clock_was_set_back(world: World) -> None:
    """Or its tick stays next for ever: nobody may claim it a second time."""
    (execution,) = await world.running("c1", "a", policy=OFF)
    job = execution.job
    await world.scene.set_pause(job.job_id, execution.tick + HOUR, execution.tick)
    result = await world.end(execution)
    assert result.ended
    assert result.next_tick is not None
    assert result.next_tick > execution.tick
    assert (await world.job(job.job_id)).next_tick == result.next_tick


async def test_resuming_such_a_job_leaves_its_ticks_as_they_are(world: World) -> None:
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    await world.control.order_job(job.key, Pause("", until), "me")
    before = await skips(world, job)
    await world.scene.set_pause(job.job_id, until, until)
    await world.scene.set_next_tick(job.job_id, until + MINUTE)
    resumed = await world.control.order_job(job.key, Resume(), "me")
    assert (resumed.changed, resumed.job.next_tick) == (True, until + MINUTE)
    assert not (await world.scene.job(job.job_id)).paused
    assert await skips(world, job) == before
    again = await world.control.order_job(job.key, Resume(), "me")
    assert not again.changed


async def test_resuming_it_while_that_tick_runs_lets_its_end_move_on(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=OFF)
    job = execution.job
    await world.scene.set_pause(job.job_id, execution.tick + HOUR, execution.tick + HOUR)
    resumed = await world.control.order_job(job.key, Resume(), "me")
    assert (resumed.changed, resumed.job.next_tick) == (True, execution.tick)
    result = await world.end(execution)
    assert (result.ended, result.next_tick) == (True, (await world.job(job.job_id)).next_tick)
    assert result.next_tick is not None
    assert result.next_tick > execution.tick


async def test_a_schedule_that_changes_then_takes_nothing_back(world: World) -> None:
    """What the pause kept has passed, and a later tick has run: its books can't be opened again before that."""
    (job,) = await minutely(world)
    assert job.next_tick is not None
    until = job.next_tick + 10 * MINUTE
    await world.control.order_job(job.key, Pause("", until), "me")
    before = await skips(world, job)
    await world.scene.set_pause(job.job_id, until, until)
    await world.scene.set_next_tick(job.job_id, until + MINUTE)
    verb = Verb("a", schedule="*/2 * * * *", policy=OFF)
    deployed = await world.store.create_deployment(Module("billing", (verb,)), "b" * 64, 1, TIMEOUT_MS, True)
    (changed,) = deployed.jobs
    assert changed.next_tick is not None
    assert changed.next_tick > until
    assert await skips(world, job) == before
