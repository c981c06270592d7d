"""Many jobs made, changed and deleted by one call: behaviour that every store has."""

import json
from collections.abc import Sequence

import pytest

from cronring.controller.core.orders.orders import Cancel
from cronring.controller.errors import CircleOfJobs, NotFound
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Seen
from cronring.schema.execution import Outcome as Ended
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS, World

SPEC = JobSpec("every 1m", timeout_ms=1_000, on_disconnect="stop", labels={"team": "x"})
MANY = 1_003  # more than one statement writes


async def module(world: World, *verbs: str, name: str = "billing", digest: str = "a") -> None:
    declared = Module(name, tuple(Verb(verb) for verb in verbs or ("a", "b")))
    await world.store.create_deployment(declared, digest * 64, 1, TIMEOUT_MS, True)


def new(name: str, spec: JobSpec = SPEC, verb: str = "a", module_name: str = "billing") -> NewJob:
    return NewJob("default", module_name, verb, name, spec)


def key(name: str) -> str:
    return f"billing.a:{name}"


def following(other: str) -> JobSpec:
    return SPEC._replace(schedule="manual", policy=json.dumps({"after": key(other)}, separators=(",", ":")))


def kinds(outcomes: Sequence[Outcome]) -> list[str]:
    """Of each: made, the same, or what kind of error."""
    return [
        type(each).__name__ if isinstance(each, Exception) else "same" if each.unchanged else "done"
        for each in outcomes
    ]


async def test_each_of_many_gets_what_it_would_get_alone(world: World) -> None:
    await module(world)
    there = (await world.control.make_job(new("there"), "me")).job
    outcomes = await world.control.create_jobs(
        [
            new("one"),
            new("there"),
            new("there", SPEC._replace(schedule="every 2m")),
            new("two", verb="nope"),
            new("three", module_name="other"),
            new("past", SPEC._replace(schedule="at 2001-01-01T00:00:00Z")),
            new("four", SPEC._replace(schedule="manual")),
        ],
        "me",
        "by hand",
    )
    assert kinds(outcomes) == ["done", "same", "Conflict", "Conflict", "Conflict", "NeverRuns", "done"]
    assert outcomes[1] == JobDone(there.key, there.job_id, unchanged=True)
    one, four = outcomes[0], outcomes[-1]
    assert isinstance(one, JobDone)
    assert isinstance(four, JobDone)
    made = await world.job(one.job_id)
    assert (made.key, made.schedule, made.next_tick is None) == (key("one"), "every 1m", False)
    assert [span.schedule for span in await world.scene.spans(four.job_id)] == ["manual"]
    (span,) = await world.scene.spans(one.job_id)
    assert (span.schedule, span.until_at) == ("every 1m", None)
    told = [(each.action, each.actor, each.note) for each in await world.scene.actions() if each.note == "by hand"]
    assert told == [("create", "me", "by hand")] * 2
    await world.controller("c1")
    (claimed,) = await world.claim("c1", await world.due(made))
    assert claimed.updated


async def test_all_or_nothing_writes_nothing_where_one_fails(world: World) -> None:
    await module(world)
    changes = len(await world.scene.changes())
    wanted = [new("one"), new("past", SPEC._replace(schedule="at 2001-01-01T00:00:00Z")), new("two")]
    outcomes = await world.control.create_jobs(wanted, "me", whole=True)
    assert kinds(outcomes) == ["done", "NeverRuns", "done"]
    assert outcomes[0] == JobDone(key("one"))
    assert len(await world.scene.changes()) == changes
    done = await world.control.create_jobs([wanted[0], wanted[2]], "me", whole=True)
    assert kinds(done) == ["done", "done"]
    assert all(isinstance(each, JobDone) and each.job_id for each in done)


async def test_a_dry_run_says_the_same_and_writes_nothing(world: World) -> None:
    await module(world)
    await world.control.create_jobs([new("a"), new("b")], "me")
    changes, actions = await world.scene.changes(), await world.scene.actions()
    wanted = [new("a"), new("c"), new("b", SPEC._replace(labels={}))]
    assert kinds(await world.control.create_jobs(wanted, "me", dry_run=True)) == ["same", "done", "Conflict"]
    slower = {key("a"): JobChange.to(schedule="every 5m"), key("c"): JobChange.to(schedule="every 5m")}
    assert kinds(await world.control.update_jobs(slower, "me", dry_run=True)) == ["done", "NotFound"]
    assert kinds(await world.control.delete_jobs([key("a"), key("c")], "me", dry_run=True)) == ["done", "NotFound"]
    assert (await world.scene.changes(), await world.scene.actions()) == (changes, actions)


async def test_one_that_is_made_again_does_not_run_again(world: World) -> None:
    """As an import that is cut goes on with lines that it has made."""
    await module(world)
    lines = [new("one")._replace(run_now=True), new("two"), new("three")._replace(run_now=True)]
    await world.control.create_jobs(lines[:2], "me")
    (waiting,) = await world.waiting()
    assert kinds(await world.control.create_jobs(lines, "me", dry_run=True)) == ["same", "same", "done"]
    assert await world.waiting() == [waiting]
    assert kinds(await world.control.create_jobs(lines, "me")) == ["same", "same", "done"]
    assert [each.job.key for each in await world.waiting()] == [key("one"), key("three")]


async def test_the_same_twice_in_a_call_is_one_job(world: World) -> None:
    await module(world)
    other = new("one", SPEC._replace(schedule="every 2m"))
    outcomes = await world.control.create_jobs([new("one"), new("one"), other], "me")
    assert kinds(outcomes) == ["done", "same", "Conflict"]
    first, second = outcomes[:2]
    assert isinstance(first, JobDone)
    assert isinstance(second, JobDone)
    assert first.job_id == second.job_id
    nope = [new("x", verb="nope")] * 2
    assert kinds(await world.control.create_jobs(nope, "me")) == ["Conflict", "Conflict"]
    assert kinds(await world.control.create_jobs([new("y"), other, new("y")], "me", whole=True)) == [
        "done", "Conflict", "same",
    ]  # fmt: skip
    with pytest.raises(NotFound):
        await world.control.delete_job(key("y"), "me")


async def test_of_jobs_that_would_follow_each_other_in_a_circle_one_is_refused(world: World) -> None:
    await module(world)
    ring = [new("a", following("c")), new("b", following("a")), new("c", following("b")), new("d", following("c"))]
    outcomes = await world.control.create_jobs(ring, "me")
    assert kinds(outcomes) == ["done", "done", "CircleOfJobs", "done"]
    assert isinstance(outcomes[2], CircleOfJobs)
    assert set(outcomes[2].keys) == {key("a"), key("b"), key("c")}
    assert kinds(await world.control.create_jobs([new("e", following("e"))], "me")) == ["CircleOfJobs"]
    made = await world.control.create_jobs([new("c"), new("f")], "me")
    assert kinds(made) == ["done", "done"]
    policy = JobChange.to(policy=following("b").policy, schedule="manual")
    onward = JobChange.to(policy=following("d").policy, schedule="manual")
    changed = await world.control.update_jobs({key("c"): policy, key("f"): onward}, "me")
    assert kinds(changed) == ["CircleOfJobs", "done"]


async def test_a_circle_is_judged_by_what_the_others_follow_after_the_call(world: World) -> None:
    await module(world)
    await world.control.create_jobs([new("a"), new("b", following("a"))], "me")
    turned = {
        key("b"): JobChange.to(policy="", schedule="every 1m"),
        key("a"): JobChange.to(policy=following("b").policy, schedule="manual"),
    }
    assert kinds(await world.control.update_jobs(turned, "me")) == ["done", "done"]


async def test_each_of_many_changes_is_judged_alone(world: World) -> None:
    declared = Module("billing", (Verb("a"), Verb("hourly", schedule="every 1h")))
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)
    await world.control.create_jobs([new(name) for name in ("one", "two", "three", "gone")], "me")
    await world.control.delete_job(key("gone"), "me")
    await world.control.order_job(key("three"), Cancel(), "me")
    wrong = Seen(0, "billing@x", JobSpec("every 1m"))
    changes = {
        key("one"): JobChange.to(schedule="every 5m", labels={"team": "y"}),
        key("two"): JobChange.to(schedule="every 1m"),
        key("three"): JobChange.to(schedule="at 2001-01-01T00:00:00Z"),
        key("gone"): JobChange.to(schedule="every 5m"),
        "billing.hourly": JobChange.to(schedule="every 5m"),
    }
    outcomes = await world.control.update_jobs(changes, "you", "slower")
    assert kinds(outcomes) == ["done", "same", "IllegalTransition", "NotFound", "Conflict"]
    one = outcomes[0]
    assert isinstance(one, JobDone)
    after = await world.job(one.job_id)
    assert (after.schedule, after.revision) == ("every 5m", 2)
    assert [span.schedule for span in await world.scene.spans(one.job_id)] == ["every 1m", "every 5m"]
    late = {key("one"): JobChange.to(wrong, schedule="every 9m"), key("two"): JobChange.to(schedule="every 9m")}
    assert kinds(await world.control.update_jobs(late, "you", whole=True)) == ["Outdated", "done"]
    assert (await world.job(one.job_id)).schedule == "every 5m"


async def test_each_of_many_is_deleted_while_it_may_run(world: World) -> None:
    declared = Module("billing", (Verb("a"), Verb("hourly", schedule="every 1h")))
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)
    made = await world.control.create_jobs([new("one"), new("two"), new("run")], "me")
    running = made[2]
    assert isinstance(running, JobDone)
    await world.controller("c1")
    await world.claim("c1", await world.due(await world.job(running.job_id)))
    keys = [key("one"), "billing.hourly", key("none"), key("run"), key("one")]
    assert kinds(await world.control.delete_jobs(keys, "me", whole=True)) == [
        "done", "Conflict", "NotFound", "done", "done",
    ]  # fmt: skip
    outcomes = await world.control.delete_jobs(keys, "me", "enough")
    assert kinds(outcomes) == ["done", "Conflict", "NotFound", "done", "done"]
    (execution,) = [each for each in await world.scene.executions() if each.outcome is None]
    (unfinished,) = await world.store.get_unfinished((execution.execution_id,))
    assert (await world.end(unfinished, Ended.COMPLETED)).ended, "what runs finishes"
    assert kinds(await world.control.delete_jobs([key("one"), key("two")], "me")) == ["NotFound", "done"]
    assert [span.until_at is None for span in await world.scene.spans(running.job_id)] == [False]


async def test_who_has_lost_the_label_meanwhile_is_not_deleted(world: World) -> None:
    await module(world)
    await world.control.create_jobs([new("one"), new("two")], "me")
    await world.control.update_job(key("two"), JobChange.to(labels={"team": "z"}), "me")
    outcomes = await world.control.delete_jobs([key("one"), key("two")], "me", labels={"team": "x"})
    assert kinds(outcomes) == ["done", "Conflict"]


async def test_more_than_one_statement_writes_are_one_transaction(world: World) -> None:
    await module(world)
    wanted = [new(f"n{number}", SPEC._replace(payload=str(number))) for number in range(MANY)]
    made = await world.control.create_jobs(wanted, "me", whole=True)
    assert kinds(made) == ["done"] * MANY
    assert len({each.job_id for each in made if isinstance(each, JobDone)}) == MANY
    assert kinds(await world.control.create_jobs(wanted, "me", whole=True)) == ["same"] * MANY
    changes = {key(job.name): JobChange.to(labels={"n": job.name}) for job in wanted}
    assert kinds(await world.control.update_jobs(changes, "me", whole=True)) == ["done"] * MANY
    assert kinds(await world.control.delete_jobs(list(changes), "me", whole=True)) == ["done"] * MANY
    of_one = [each for each in await world.scene.changes() if each.subject == f"job {key('n7')}"]
    assert [(each.before is None, each.after is None) for each in of_one] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip
