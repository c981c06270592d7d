"""Templates: behaviour that every store has."""

import pytest

from cronring.controller.errors import Conflict, NotFound, Outdated
from cronring.controller.ports.many import NewJob
from cronring.controller.ports.templates import TemplateRow, TemplateValues
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.booked import BookedAction
from tests.conformance.harness import TIMEOUT_MS, World

NIGHTLY = TemplateValues(
    "what runs at night",
    JobSpec(
        "0 3 * * *", None, 7_000, "finish", '{"timezone":"Europe/Berlin","retries":3}', {"tier": "slow"}, '{"n": 1}'
    ),
)
JOB = NewJob("default", "billing", "a", "x", JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop"), "nightly")
FIRST = ("", "")


async def made(world: World, name: str = "nightly", namespace: str = "default") -> TemplateRow:
    await world.templates.set_template(namespace, name, NIGHTLY, None, "ann", "to begin with")
    return await world.templates.get_template(namespace, name)


async def module(world: World, namespace: str = "default") -> None:
    declared = Module("billing", (Verb("a"),), namespace)
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)


async def test_a_template_is_kept_as_it_was_set(world: World) -> None:
    before = await world.scene.now()
    row = await made(world)
    assert (row.namespace, row.name, row.values) == ("default", "nightly", NIGHTLY)
    assert (row.revision, row.created_by, row.changed_by, row.jobs) == (1, "ann", "ann", 0)
    assert before <= row.created_at == row.changed_at <= await world.scene.now()


async def test_an_anchor_is_kept_with_its_interval(world: World) -> None:
    values = TemplateValues(spec=JobSpec("every 6h", 1_790_000_000_000_000))
    await world.templates.set_template("default", "grid", values, None, "ann")
    assert (await world.templates.get_template("default", "grid")).values == values


async def test_a_change_raises_the_revision_and_keeps_who_made_it(world: World) -> None:
    row = await made(world)
    changed = NIGHTLY._replace(spec=NIGHTLY.spec._replace(schedule="", labels={}, timeout_ms=0))
    await world.templates.set_template("default", "nightly", changed, row, "bob", "less")
    after = await world.templates.get_template("default", "nightly")
    assert (after.values, after.revision, after.template_id) == (changed, 2, row.template_id)
    assert (after.created_at, after.created_by, after.changed_by) == (row.created_at, "ann", "bob")
    assert after.changed_at > row.changed_at


async def test_what_was_judged_by_an_older_one_is_refused(world: World) -> None:
    row = await made(world)
    await world.templates.set_template(
        "default", "nightly", NIGHTLY._replace(spec=NIGHTLY.spec._replace(timeout_ms=1)), row, "bob"
    )
    for seen in (row, None):
        with pytest.raises(Outdated, match="nightly"):
            await world.templates.set_template(
                "default", "nightly", NIGHTLY._replace(spec=NIGHTLY.spec._replace(timeout_ms=2)), seen, "cid"
            )
    assert (await world.templates.get_template("default", "nightly")).values.spec.timeout_ms == 1
    await world.templates.delete_template("default", "nightly", "bob")
    with pytest.raises(Outdated):
        await world.templates.set_template("default", "nightly", NIGHTLY, row, "cid")
    again = await made(world)
    with pytest.raises(Outdated):  # of the same name and revision, and yet another one
        await world.templates.set_template(
            "default", "nightly", NIGHTLY._replace(spec=NIGHTLY.spec._replace(timeout_ms=3)), row, "cid"
        )
    assert again.revision == 1


async def test_templates_are_listed_by_namespace_and_name_without_payloads(world: World) -> None:
    for namespace, name in (("default", "b"), ("staging", "a"), ("default", "a")):
        await made(world, name, namespace)
    listed = await world.templates.list_templates("", FIRST, 10)
    assert [(row.namespace, row.name) for row in listed] == [("default", "a"), ("default", "b"), ("staging", "a")]
    assert {row.values.spec.payload for row in listed} == {""}
    assert listed[0].values == NIGHTLY._replace(spec=NIGHTLY.spec._replace(payload=""))
    rest = await world.templates.list_templates("", ("default", "a"), 1)
    assert [(row.namespace, row.name) for row in rest] == [("default", "b")]
    assert [row.name for row in await world.templates.list_templates("staging", FIRST, 10)] == ["a"]


async def test_it_counts_the_jobs_that_came_from_it_and_are_there(world: World) -> None:
    for namespace in ("default", "staging"):
        await module(world, namespace)
        await made(world, namespace=namespace)
    first = (await world.control.make_job(JOB, "ann", "by the template")).job
    await world.control.make_job(JOB._replace(name="y"), "ann")
    await world.control.make_job(JOB._replace(name="z", template=""), "ann")
    await world.control.make_job(JOB._replace(namespace="staging"), "ann")
    assert (await world.templates.get_template("default", "nightly")).jobs == 2
    await world.control.delete_job(first.key, "ann")
    assert (await world.templates.get_template("default", "nightly")).jobs == 1
    assert (await world.templates.get_template("staging", "nightly")).jobs == 1
    assert BookedAction("create", "ann", "by the template", {"schedule": "every 1h", "template": "nightly"}) in (
        await world.scene.actions()
    )


async def test_the_same_job_of_another_template_is_another_job(world: World) -> None:
    await module(world)
    job = (await world.control.make_job(JOB, "ann")).job
    assert (await world.control.make_job(JOB, "ann")).job == job
    with pytest.raises(Conflict, match="another job"):
        await world.control.make_job(JOB._replace(template=""), "ann")


async def test_jobs_stay_when_their_template_goes_and_all_of_it_is_kept(world: World) -> None:
    await module(world)
    row = await made(world)
    job = (await world.control.make_job(JOB, "ann")).job
    await world.templates.set_template(
        "default", "nightly", NIGHTLY._replace(spec=NIGHTLY.spec._replace(schedule="")), row, "bob", "by job"
    )
    assert await world.job(job.job_id) == job, "a job copies its template"
    assert await world.templates.delete_template("default", "nightly", "cid", "no longer used") == 1
    assert await world.job(job.job_id) == job
    for name in ("nightly", "never"):
        with pytest.raises(NotFound, match=name):
            await world.templates.get_template("default", name)
        with pytest.raises(NotFound, match=name):
            await world.templates.delete_template("default", name, "cid")
    told = [each for each in await world.scene.actions() if "template" in each.action]
    assert told == [
        BookedAction("set_template", "ann", "to begin with", {"revision": 1}),
        BookedAction("set_template", "bob", "by job", {"revision": 2}),
        BookedAction("delete_template", "cid", "no longer used", {"jobs": 1}),
    ]
