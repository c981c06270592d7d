"""Every change leaves its row of the audit log, in both stores alike, and what changes nothing leaves none."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

import pytest

from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.errors import Conflict, NotFound, Outdated
from cronring.controller.ports.caller import calling, remarking
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill, RunByHand
from cronring.controller.ports.templates import TemplateValues
from cronring.controller.services.audit_changes import FIELD_MAX, canonical
from cronring.controller.store.connect import connect
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.limits import PostgresLimits
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from cronring.schema.identity import LOCAL, Kind, Principal
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.booked import BookedChange
from tests.conformance.harness import SECOND, TIMEOUT_MS, PostgresScene, World

ADA = Principal(Kind.TOKEN, "ada")
HOUR = 3_600 * SECOND
SECRET = '{"card": "4111"}'
SPEC = JobSpec(schedule="every 1h", anchor=0, timeout_ms=TIMEOUT_MS, on_disconnect="stop", payload=SECRET)
NEW = NewJob("default", "billing", "a", "mine", SPEC)
KEY = "billing.a:mine"
DIGESTED = {"bytes": len(SECRET), "sha256": hashlib.sha256(SECRET.encode()).hexdigest()}


async def done(world: World, doing: Awaitable[Any]) -> list[BookedChange]:
    """The rows that this leaves, when ada calls for it."""
    before = len(await world.scene.changes())
    with calling(ADA, "/cronring.v1.Jobs/Try", "ipv4:127.0.0.1:7"), remarking("bob", "why not"):
        await doing
    rows = (await world.scene.changes())[before:]
    assert {row[:3] for row in rows} <= {("token:ada", "/cronring.v1.Jobs/Try", "ipv4:127.0.0.1:7")}
    assert {row.remark for row in rows} <= {"for bob: why not"}
    assert not any("4111" in json.dumps(row) for row in rows), "a payload stands in it by digest"
    return rows


async def one(world: World, doing: Awaitable[Any]) -> BookedChange:
    (row,) = await done(world, doing)
    return row


async def test_jobs_are_made_changed_and_deleted(world: World) -> None:
    await world.jobs("a")
    made = await one(world, world.control.make_job(NEW, "ada"))
    assert (made.namespace, made.subject, made.before) == ("default", f"job {KEY}", None)
    assert made.after == {
        "anchor": "1970-01-01T00:00:00Z", "labels": {}, "on_disconnect": "stop", "payload": DIGESTED, "policy": {},
        "schedule": "every 1h", "timeout_ms": TIMEOUT_MS,
    }  # fmt: skip
    assert await done(world, world.control.make_job(NEW, "ada")) == [], "it is there already"
    slower = JobChange.to(schedule="every 2h", labels={"team": "x"})
    updated = await one(world, world.control.update_job(KEY, slower, "ada"))
    anew = str((updated.after or {})["anchor"])  # as of now: another schedule counts from another instant
    assert updated.before == {"anchor": made.after["anchor"], "labels": {}, "schedule": "every 1h"}
    assert updated.after == {"anchor": anew, "labels": {"team": "x"}, "schedule": "every 2h"}
    assert await done(world, world.control.update_job(KEY, slower, "ada")) == []
    gone = await one(world, world.control.delete_job(KEY, "ada"))
    assert (gone.subject, gone.after) == (f"job {KEY}", None)
    assert gone.before == {**made.after, **(updated.after or {})}, "as the last change had left it"


async def test_orders_tell_what_of_the_row_they_changed(world: World) -> None:
    (job,) = await world.jobs("a")
    assert job.next_tick is not None
    paused = await one(world, world.control.order_job(job.key, Pause("bank holiday"), "ada"))
    before, after = paused.before or {}, paused.after or {}
    assert (before["next_tick"], after["next_tick"]) == (format_instant(job.next_tick), None)
    assert (before["paused_by"], after["paused_by"], after["paused_note"]) == (None, "ada", "bank holiday")
    assert "cancelled_at" not in after, "only what differs"
    assert await done(world, world.control.order_job(job.key, Pause("bank holiday"), "ada")) == []
    resumed = await one(world, world.control.order_job(job.key, Resume(), "ada"))
    assert (resumed.before or {})["paused_at"] == after["paused_at"], "what one change leaves, the next one finds"
    skipping = await world.control.order_job(job.key, SkipNext(), "ada", dry_run=True)
    assert await done(world, world.control.order_job(job.key, SkipNext(), "ada", dry_run=True)) == []
    skipped = await one(world, world.control.order_job(job.key, SkipNext(), "ada"))
    assert (skipped.after or {})["tick"] == skipping.details["tick"]
    with pytest.raises(Conflict):
        await done(world, world.control.delete_job(job.key, "ada"))
    cancelled = await one(world, world.control.order_job(job.key, Cancel("over"), "ada"))
    assert (cancelled.after or {})["cancelled_note"] == "over"
    restored = await one(world, world.control.order_job(job.key, Restore(), "ada"))
    assert (restored.before or {})["cancelled_at"] == (cancelled.after or {})["cancelled_at"]
    with pytest.raises(NotFound):
        await done(world, world.control.order_job("billing.none", Pause(), "ada"))


async def test_an_order_to_many_is_a_row_for_each_job_that_it_changed(world: World) -> None:
    jobs = await world.jobs("a", "b", "c")
    await world.control.pause_job(jobs[1].key, "bob", "before")
    ids = [job.job_id for job in jobs]
    rows = await done(world, world.control.order_jobs(ids, Pause("before"), "ada"))
    assert [row.subject for row in rows] == [f"job {jobs[0].key}", f"job {jobs[2].key}"]
    assert await done(world, world.control.order_jobs(ids, Cancel(), "ada", dry_run=True)) == []
    rows = await done(world, world.control.order_jobs(ids, RunByHand(SECRET), "ada"))
    assert [(row.subject, (row.after or {})["payload"]) for row in rows] == [(f"job {j.key}", DIGESTED) for j in jobs]


async def test_runs_beside_the_schedule(world: World) -> None:
    (job,) = await world.jobs("a", schedule="0 * * * *")
    ran = await one(world, world.control.trigger_job(job.key, "ada", SECRET))
    waiting = ran.after or {}
    assert (ran.subject, ran.before, waiting["trigger"], waiting["payload"]) == (
        f"job {job.key}", None, "manual", DIGESTED,
    )  # fmt: skip
    activation = waiting["activation"]
    assert isinstance(activation, int)
    undone = await one(world, world.control.cancel_activation(job.key, activation, "ada"))
    assert (undone.before, undone.after) == (waiting, None)
    assert await done(world, world.control.cancel_activation(job.key, activation, "ada")) == []
    now = await world.scene.now()
    again = await one(world, world.control.backfill_job(job.key, "ada", Backfill(now - 3 * HOUR, now, True, True)))
    assert (again.after or {})["trigger"] == "backfill"
    nothing = Backfill(now - 3 * SECOND, now - 3 * SECOND, beside=True, again=True)
    assert await done(world, world.control.backfill_job(job.key, "ada", nothing)) == []


async def test_executions_are_cancelled_and_tried_again(world: World) -> None:
    (run,) = await world.running("c1", "a")
    execution_id, key = run.execution_id, run.job.key
    marked = await one(world, world.execution_control.cancel_execution(execution_id, "ada", "no"))
    assert (marked.namespace, marked.subject) == ("default", f"execution {execution_id}")
    assert (marked.before, marked.after) == (None, {"cancel_requested_by": "ada", "job": key})
    assert await done(world, world.execution_control.cancel_execution(execution_id, "ada", "no")) == []
    assert [each.details for each in await world.scene.actions()][-1] == {"requested_by": "bob"}
    assert await done(world, world.end(run, Outcome.CANCELLED)) == [], "an end is nobody's change"
    retried = await one(world, world.execution_control.retry_execution(execution_id, "ada"))
    assert (retried.subject, (retried.after or {})["trigger"]) == (f"execution {execution_id}", "retry")


async def test_a_deployment_is_one_row_with_what_it_did_to_jobs(world: World) -> None:
    def version(number: int, *verbs: str, schedule: str = "every 1h") -> Awaitable[Any]:
        module = Module("billing", tuple(Verb(name, schedule=schedule) for name in verbs))
        return world.store.create_deployment(module, str(number) * 64, 1, TIMEOUT_MS, True, by="ada")

    first = await one(world, version(1, "a", "b"))
    assert (first.namespace, first.subject) == ("default", "module billing")
    assert first.before == {"deployment": None, "digest": None, "min_replicas": 0}
    assert first.after == {
        "added": 2, "added_keys": ["billing.a", "billing.b"], "deployment": "billing@111111111111", "digest": "1" * 64,
        "min_replicas": 1,
    }  # fmt: skip
    assert await done(world, version(1, "a", "b")) == []
    await world.control.make_job(NEW, "ada")
    second = await one(world, version(2, "b", "c", schedule="every 2h"))
    assert second.before == {"deployment": "billing@111111111111", "digest": "1" * 64}
    assert second.after == {
        "added": 1, "added_keys": ["billing.c"], "deployment": "billing@222222222222", "digest": "2" * 64,
        "orphaned": 1, "orphaned_keys": [KEY], "removed": 1, "removed_keys": ["billing.a"], "rescheduled": 1,
        "rescheduled_keys": ["billing.b"],
    }  # fmt: skip
    back = "billing@111111111111"
    assert await done(world, world.store.activate_deployment(back, 1, TIMEOUT_MS, by="ada", dry_run=True)) == []
    third = await one(world, world.store.activate_deployment(back, 3, TIMEOUT_MS, by="ada"))
    assert ((third.after or {})["back_keys"], (third.after or {})["min_replicas"]) == ([KEY], 3)
    more = await one(world, world.store.activate_deployment(back, 4, TIMEOUT_MS, by="ada"))
    assert (more.before, more.after) == ({"min_replicas": 3}, {"min_replicas": 4})
    assert await done(world, world.store.kill_deployment(back, by="ada", dry_run=True)) == []
    killed = await one(world, world.store.kill_deployment(back, by="ada"))
    assert killed.before == {"deployment": back, "digest": "1" * 64, "min_replicas": 4}
    assert ((killed.after or {})["deployment"], (killed.after or {})["removed"]) == (None, 2)
    assert await done(world, world.store.kill_deployment(back, by="ada")) == []


async def test_templates_and_limits(world: World) -> None:
    values = TemplateValues("nightly", JobSpec(schedule="0 1 * * *", payload=SECRET))
    made = await one(world, world.templates.set_template("ops", "night", values, None, "ada"))
    assert (made.namespace, made.subject, made.before) == ("ops", "template ops/night", None)
    with pytest.raises(Outdated):
        await done(world, world.templates.set_template("ops", "night", values, None, "ada"))
    seen = await world.templates.get_template("ops", "night")
    later = values._replace(description="later")
    changed = await one(world, world.templates.set_template("ops", "night", later, seen, "ada"))
    assert (changed.before, changed.after) == ({"description": "nightly"}, {"description": "later"})
    gone = await one(world, world.templates.delete_template("ops", "night", "ada"))
    assert (gone.before, gone.after) == ({**(made.after or {}), "description": "later"}, None)

    first = await one(world, world.limits.set_limit("ops", "", 3, "ada", "few"))
    assert (first.namespace, first.subject, first.before) == ("ops", "limit ops/", None)
    second = await one(world, world.limits.set_limit("ops", "", 4, "ada", "few"))
    assert (second.before, second.after) == ({"max_concurrent": 3}, {"max_concurrent": 4})
    assert await done(world, world.limits.set_limit("ops", "", 4, "ada", "few")) == []
    last = await one(world, world.limits.remove_limit("ops", "", "ada"))
    assert (last.before, last.after) == ({"max_concurrent": 4, "note": "few"}, None)


async def test_a_refused_change_and_what_cronring_decides_itself_leave_nothing(world: World) -> None:
    (run,) = await world.running("c1", "a")
    deployed = len(await world.scene.changes())
    await world.end(run)
    with pytest.raises(Conflict):
        await world.control.make_job(NEW._replace(verb="none"), "ada")
    assert len(await world.scene.changes()) == deployed


async def test_who_is_on_this_machine_is_local(world: World) -> None:
    (job,) = await world.jobs("a")
    with calling(LOCAL, "/cronring.v1.Jobs/PauseJob", "ipv4:127.0.0.1:7"), remarking("ada@laptop"):
        await world.control.pause_job(job.key, "ada@laptop", "")
    last = (await world.scene.changes())[-1]
    assert (last.principal, last.remark) == ("local", "for ada@laptop")
    assert [(each.actor, each.details) for each in await world.scene.actions()][-1] == ("ada@laptop", {})


def test_a_row_is_bounded_and_always_written_the_same() -> None:
    assert canonical({"b": 1, "a": {"d": [1, None], "c": "\x00é"}}) == '{"a":{"c":"\\u0000\\u00e9","d":[1,null]},"b":1}'
    long = "x" * (FIELD_MAX + 1)
    digest = {"bytes": len(long), "sha256": hashlib.sha256(long.encode()).hexdigest()}
    keys = [f"billing.verb{number}" for number in range(1_000)]
    found = json.loads(canonical({"text": long, "keys": keys}) or "")
    kept = len(found["keys"]) - 1
    assert found["text"] == digest
    assert found["keys"] == [*keys[:kept], f"... and {1_000 - kept} more"]
    assert 100 < kept < 1_000
    assert canonical(None) is None


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
async def test_writers_at_once_leave_one_chain(database_url: str) -> None:
    """Each row's before is what the row of the change before it left: rows are read under the lock of the change."""
    databases = [await Database.open(database_url, f"cronring {number}") for number in range(2)]
    connection = await connect(database_url, "cronring test scene")
    world = World(PostgresScene(databases[0], connection))
    try:
        await world.jobs("a")
        await world.control.make_job(NEW, "ada")
        first = len(await world.scene.changes())

        async def write(database: Database, odd: int) -> None:
            control, limits = PostgresControl(database), PostgresLimits(database)
            for number in range(25):
                await control.update_job(KEY, JobChange.to(timeout_ms=60_000 + 2 * number + odd), "ada")
                await limits.set_limit("default", "billing", 10 + 2 * number + odd, "ada")

        await asyncio.gather(*[write(database, odd) for odd, database in enumerate(databases)])
        rows = (await world.scene.changes())[first:]
    finally:
        await connection.close()
        for database in databases:
            await database.close()
    assert len(rows) == 100
    for subject, field in ((f"job {KEY}", "timeout_ms"), ("limit default/billing", "max_concurrent")):
        chain = [row for row in rows if row.subject == subject]
        assert len(chain) == 50
        for earlier, later in pairwise(chain):
            assert (earlier.after or {})[field] == (later.before or {})[field]
