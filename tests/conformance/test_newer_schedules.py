"""A job whose schedule a newer release wrote: nothing that touches it fails, and what decides about it says so."""

import pytest

from cronring.controller.errors import Conflict
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.ports.many import JobChange, NewJob
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import SECOND, TIMEOUT_MS, World
from tests.conformance.tampering import hands_of

NEWER = "sunset 30m before"
KEY = "billing.close:x"


def module(*verbs: str) -> Module:
    return Module("billing", tuple(Verb(verb) for verb in verbs))


async def newer(world: World) -> int:
    """The id of a job that is there, and has been rescheduled by a newer release."""
    await world.store.create_deployment(module("close"), "a" * 64, 1, TIMEOUT_MS, True)
    spec = JobSpec(schedule="every 1h", timeout_ms=TIMEOUT_MS, on_disconnect="stop")
    job = (await world.control.make_job(NewJob("default", "billing", "close", "x", spec), "ann")).job
    await world.scene.set_schedule(job.job_id, NEWER)
    return job.job_id


async def test_orders_are_for_who_reads_it(world: World) -> None:
    job_id = await newer(world)
    before = await world.scene.job(job_id)
    with pytest.raises(Conflict, match=r"its schedule is 'sunset 30m before', which this release doesn't read"):
        await world.control.pause_job(KEY, "ann", "for a while")
    assert await world.scene.job(job_id) == before


async def test_another_version_of_its_module_leaves_it_alone(world: World) -> None:
    job_id = await newer(world)
    before = await world.scene.job(job_id)
    await world.store.create_deployment(module("close", "other"), "b" * 64, 1, TIMEOUT_MS, True)
    assert await world.scene.job(job_id) == before
    await world.store.create_deployment(module("other"), "c" * 64, 1, TIMEOUT_MS, True)
    assert await world.scene.state(job_id) == "orphaned"


async def test_with_another_schedule_it_ticks_again(world: World) -> None:
    job_id = await newer(world)
    change = JobChange(JobSpec(schedule="every 2h"), ("schedule",), None)
    job = await world.control.update_job(KEY, change, "ann")
    assert (job.schedule, job.next_tick is not None) == ("every 2h", True)
    assert (await world.scene.job(job_id)).revision > 1


async def test_the_audit_judges_no_books_of_it_and_says_so(world: World) -> None:
    job_id = await newer(world)
    hands = hands_of(world.scene)
    await hands.add_run(job_id, await world.scene.now() // SECOND * SECOND)  # whoever reads it knew that it was due
    for key in ("", KEY):
        for thorough in (False, True):
            report = await hands.ledger.audit(AuditRequest(None, None, key, 10 * SECOND, thorough))
            assert (report.audit.clean, report.audit.jobs) == (True, 0)
            assert (
                f"1 jobs were left out, as a newer release wrote their schedules, the first of them {KEY}"
                in report.remark
            )


async def test_it_can_be_deleted(world: World) -> None:
    job_id = await newer(world)
    await world.control.delete_job(KEY, "ann")
    assert await world.scene.state(job_id) == "cancelled"
