"""Sets of jobs that files declare: behaviour that every store has."""

import asyncio
from typing import Any

import pytest

from cronring.controller.core.orders.orders import Cancel
from cronring.controller.errors import Outdated
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Seen, Who
from cronring.controller.ports.sets import SetWork
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS, World
from tests.conformance.test_many import SPEC, following, key, module, new

FILE = Who("ci", "release 7", "prod")
SLOWER = SPEC._replace(schedule="every 5m")


def work(revision: int = 0, **parts: Any) -> SetWork:
    return SetWork("default", "prod", revision, **parts)


def creates(*names: str, spec: JobSpec = SPEC) -> dict[str, NewJob]:
    return {key(name): new(name, spec) for name in names}


def slower(seen: Seen | None = None) -> JobChange:
    return JobChange(SLOWER, ("schedule",), seen)


async def applied(world: World, revision: int = 0, **parts: Any) -> dict[str, Outcome]:
    return await world.sets.apply_set(work(revision, **parts), FILE)


async def owned(world: World) -> list[str]:
    return await world.sets.set_keys("default", "prod", "", 100)


async def seen(world: World, name: str) -> Seen:
    """Of a job as it is: what a file would have read."""
    outcome = (await world.control.update_jobs({key(name): JobChange(SPEC, ("on_disconnect",))}, "me"))[0]
    assert isinstance(outcome, JobDone)
    booked = await world.job(outcome.job_id)
    spec = SPEC._replace(anchor=booked.anchor, schedule=booked.schedule)
    return Seen(outcome.job_id, booked.deployment, spec)


async def test_what_a_file_makes_is_its_sets(world: World) -> None:
    await module(world)
    outcomes = await applied(world, creates=creates("one", "two"))
    assert [type(each) for each in outcomes.values()] == [JobDone, JobDone]
    assert await owned(world) == [key("one"), key("two")]
    assert await world.sets.set_keys("default", "prod", key("one"), 1) == [key("two")]
    row = await world.sets.get_set("default", "prod")
    assert row is not None
    assert (row.revision, row.applied_by, row.note, row.jobs) == (1, "ci", "release 7", 2)
    assert await world.sets.list_sets("", ("", ""), 9) == [row]
    assert await world.sets.list_sets("", ("", ""), 9, ("other",)) == []
    assert await world.sets.list_sets("other", ("", ""), 9) == []
    assert await world.sets.list_sets("", ("default", "prod"), 9) == []
    asked = (("", None), ("default", ("default",)), ("", ("other",)), ("other", None))
    assert [await world.sets.count_sets(*each) for each in asked] == [1, 1, 0, 0]
    told = [(each.action, each.actor, each.note, each.details["set"]) for each in await world.scene.actions()
            if each.action == "create"]  # fmt: skip
    assert told == [("create", "ci", "release 7", "prod")] * 2


async def test_one_transaction_makes_changes_and_removes(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("change", "gone", "stays"))
    gone = await seen(world, "gone")
    outcomes = await applied(
        world, 1, creates=creates("new"), changes={key("change"): slower()}, removes={key("gone"): gone}
    )
    assert not [each for each in outcomes.values() if isinstance(each, Exception)]
    assert await owned(world) == [key("change"), key("new"), key("stays")]
    changed = outcomes[key("change")]
    assert isinstance(changed, JobDone)
    assert (await world.job(changed.job_id)).schedule == "every 5m"


async def test_where_one_is_refused_nothing_is_done(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("change", "cancelled"))
    await world.control.order_job(key("cancelled"), Cancel(), "ops")
    before = await world.scene.actions(), await world.scene.changes()
    past = SPEC._replace(schedule="at 2001-01-01T00:00:00Z")
    wanted = {"creates": creates("new") | creates("past", spec=past),
              "changes": {key("change"): slower(), key("cancelled"): slower()}}  # fmt: skip
    for dry_run in (True, False):
        outcomes = await world.sets.apply_set(work(1, **wanted), FILE, dry_run=dry_run)
        refused = {name: type(each).__name__ for name, each in outcomes.items() if isinstance(each, Exception)}
        assert refused == {key("past"): "NeverRuns", key("cancelled"): "IllegalTransition"}
    assert (await world.scene.actions(), await world.scene.changes()) == before
    assert await owned(world) == [key("cancelled"), key("change")]
    row = await world.sets.get_set("default", "prod")
    assert row is not None
    assert row.revision == 1


async def test_a_dry_run_writes_nothing(world: World) -> None:
    await module(world)
    outcomes = await world.sets.apply_set(work(creates=creates("one")), FILE, dry_run=True)
    assert outcomes == {key("one"): JobDone(key("one"))}
    assert (await owned(world), await world.sets.get_set("default", "prod")) == ([], None)


async def test_of_two_at_once_the_later_one_is_refused(world: World) -> None:
    await module(world)
    both = await asyncio.gather(
        applied(world, creates=creates("a")), applied(world, creates=creates("b")), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in both) == ["Outdated", "dict"]
    assert len(await owned(world)) == 1
    with pytest.raises(Outdated):
        await applied(world, creates=creates("c"))
    await applied(world, 1, creates=creates("c"))
    assert len(await owned(world)) == 2


async def test_what_was_changed_since_the_plan_is_told(world: World) -> None:
    """By hand, or deleted, or made: nothing of the file is written then."""
    await module(world)
    await applied(world, creates=creates("edited", "deleted", "pruned"))
    edited, deleted, pruned = [await seen(world, name) for name in ("edited", "deleted", "pruned")]
    await world.control.update_jobs({key("edited"): slower(), key("pruned"): slower()}, "ops")
    await world.control.delete_jobs([key("deleted")], "ops")
    await world.control.create_jobs([new("made", SLOWER)], "ops")
    for name, parts in (
        ("edited", {"changes": {key("edited"): JobChange(SPEC, ("labels",), edited)}}),
        ("deleted", {"changes": {key("deleted"): JobChange(SPEC, ("labels",), deleted)}}),
        ("pruned", {"removes": {key("pruned"): pruned}}),
        ("made", {"creates": creates("made")}),
    ):
        outcomes = await applied(world, 1, **parts, **({"creates": creates("new")} if name != "made" else {}))
        assert isinstance(outcomes[key(name)], Outdated), name
    assert await owned(world) == [key("edited"), key("pruned")]


async def test_the_same_made_by_hand_meanwhile_is_not_taken_silently(world: World) -> None:
    await module(world)
    await world.control.create_jobs([new("made")], "ops")
    outcomes = await applied(world, creates=creates("made"))
    assert isinstance(outcomes[key("made")], Outdated)
    assert await owned(world) == []


async def test_adopting_and_releasing(world: World) -> None:
    await module(world)
    await world.control.create_jobs([new("hand"), new("other")], "ops")
    await world.sets.apply_set(
        SetWork("default", "mine", 0, adopts={key("other"): await seen(world, "other")}), Who("ci", "", "mine")
    )
    taken = await applied(world, adopts={key("other"): await seen(world, "other")})
    assert isinstance(taken[key("other")], Outdated), "it is another set's"
    adopted = await applied(world, adopts={key("hand"): await seen(world, "hand")}, changes={key("hand"): slower()})
    assert isinstance(adopted[key("hand")], JobDone)
    assert await owned(world) == [key("hand")]
    assert [(each.action, each.details.get("set")) for each in await world.scene.actions()][-2:] == [
        ("update", "prod"), ("adopt", "prod"),
    ]  # fmt: skip
    released = await applied(world, 1, releases={key("hand"): await seen(world, "hand")})
    assert isinstance(released[key("hand")], JobDone)
    assert (await owned(world), await world.sets.get_set("default", "prod")) == ([], None), "an empty set is none"
    assert [each.action for each in await world.scene.actions()][-1] == "release"


async def test_what_somebody_did_by_hand_is_told(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("edited", "deleted", "kept"))
    assert await world.sets.hand_changes("prod", [key("edited"), key("deleted"), key("kept")]) == {}
    await world.control.update_jobs({key("edited"): slower()}, "ops", "hotfix")
    await world.control.delete_jobs([key("deleted")], "eve")
    found = await world.sets.hand_changes("prod", [key("edited"), key("deleted"), key("kept"), key("never")])
    assert {name: (each.action, each.by, each.note) for name, each in found.items()} == {
        key("edited"): ("update", "ops", "hotfix"), key("deleted"): ("delete", "eve", ""),
    }  # fmt: skip
    assert await world.sets.hand_changes("other", [key("edited")]) == {}
    await applied(world, 1, changes={key("edited"): JobChange(SPEC, ("schedule",))}, creates=creates("deleted"))
    assert await world.sets.hand_changes("prod", [key("edited"), key("deleted")]) == {}


async def test_what_a_file_removed_was_not_removed_by_hand(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("one", "two"))
    await applied(world, 1, removes={key("one"): await seen(world, "one")})
    assert await world.sets.hand_changes("prod", [key("one")]) == {}


async def test_a_set_outlives_a_deployment_without_its_verbs(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("one"))
    declared = Module("billing", (Verb("b"),))
    await world.store.create_deployment(declared, "b" * 64, 1, TIMEOUT_MS, True)
    assert await owned(world) == [key("one")]


async def test_a_circle_of_followers_is_refused_as_a_whole(world: World) -> None:
    await module(world)
    await applied(world, creates=creates("one"))
    one = await seen(world, "one")
    follows = JobChange(following("two"), ("schedule", "policy"), one)
    outcomes = await applied(world, 1, creates=creates("two", spec=following("one")), changes={key("one"): follows})
    assert [type(each).__name__ for each in outcomes.values() if isinstance(each, Exception)] == ["CircleOfJobs"]
    assert await owned(world) == [key("one")]
