"""Journeys of one value through all of cronring, run in a copy of the tree by test_one_value.py.

`python -m tests.conformance.journey report NAME VALUE`: a field of a report, from the runner to the client.
`python -m tests.conformance.journey reason NAME WORDS`: a reason to skip a tick, from a controller to who asks why.
`python -m tests.conformance.journey spec NAME VALUE`: a text that is wanted of a job, from the client to what runs, and
back.
"""

import asyncio
import sys
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.client import convert
from cronring.client.model import JobSpec
from cronring.controller.api.job_specs import Defaults, job_change, new_job
from cronring.controller.api.messages import execution_message, job_message
from cronring.controller.core.ledger.why import explain
from cronring.controller.core.model import Execution, SkipRequest
from cronring.controller.core.node.ending import request_of
from cronring.controller.core.runs import run_of
from cronring.controller.ports.caller import calling
from cronring.controller.ports.templates import TemplateValues
from cronring.controller.store.connect import connect
from cronring.controller.store.ledger import PostgresLedger
from cronring.controller.store.memory.store import MemoryStore
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.executions import decode_reports, decode_runs, encode_runs
from cronring.protos.jobs import decode_spec, encode_spec
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.codec import report_messages
from cronring.runner.held import NOT_KNOWN, Held
from cronring.runner.lines import Row, Told
from cronring.runner.pool import result_of
from cronring.schema.execution import Report, Run, Skipped, SkipReason
from cronring.schema.identity import LOCAL
from cronring.schema.module import Module, Verb
from tests.conformance.harness import LOST_AFTER_MS, SECOND, TIMEOUT_MS, MemoryScene, PostgresScene, World
from tests.support.databases import running_server

# Each is ended by a statement of its own.
TOLD = (Told("failed", "ValueError", "no", "", 0, "", ()), Told("completed", "", "", "", 0, "", ()))


def told_by_a_runner(run: Run, told: Told) -> Report:
    """Of a run that came by the wire, what goes back by the wire."""
    dispatched = wire.Runs.FromString(encode_runs([run]).SerializeToString())
    [received] = decode_runs(dispatched)
    assert received == run
    made = result_of(Held(received), Row(run.execution_id, 0, 5, 1, told), run.claimed_at_us, NOT_KNOWN)
    [message] = report_messages([made])
    [report] = decode_reports(wire.RunnerMessage.FromString(message.SerializeToString()).reports)
    assert report == made
    return report


async def of_a_report(world: World, reads: PostgresReads | None, name: str, value: str) -> None:
    for execution, told in zip(await world.running("c1", "a", "b"), TOLD, strict=True):
        await of_an_end(world, reads, execution, told_by_a_runner(run_of(execution), told), name, value)


async def of_an_end(
    world: World, reads: PostgresReads | None, execution: Execution, report: Report, name: str, value: str
) -> None:
    assert str(getattr(report, name)) == value, "by the wire"
    request = request_of(execution, report, await world.scene.now())
    (result,) = await world.store.end_cron_jobs("c1", [request])
    assert result.ended
    if reads is None:
        assert isinstance(world.store, MemoryStore)
        assert world.store.executions[execution.execution_id].report == report, "in memory"
        return
    row = await reads.get_execution(execution.execution_id)
    assert str(getattr(row, name)) == value, "in PostgreSQL"
    with calling(LOCAL):
        shown = convert.execution(execution_message(row))
    assert str(getattr(shown, name)) == value, "for the client"


async def of_a_reason(world: World, reads: PostgresReads | None, name: str, words: str) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a", schedule="* * * * * *")
    assert job.next_tick is not None
    assert job.next_run_at is not None
    while await world.scene.now() < job.next_run_at:
        pass  # within a second
    later = job.next_tick + 3_600 * SECOND
    skipped = Skipped(SkipReason(name), job.next_tick, job.next_tick, 1)
    await world.store.skip_ticks("c1", [SkipRequest(job.job_id, job.next_tick, job.revision, (skipped,), later, later)])
    assert [skip.reason for skip in await world.scene.skips()] == [name]
    if reads is not None:
        assert (await reads.get_job(job.key)).skipped == ((name, 1),)
        facts = await PostgresLedger(reads._database, LOST_AFTER_MS).facts(job.key, job.next_tick)
        assert words in " ".join(explain(facts))


async def of_a_spec(world: World, reads: PostgresReads | None, name: str, value: str) -> None:
    declared = Module("billing", (Verb("a"),))
    (verb,), defaults = declared.verbs, Defaults(TIMEOUT_MS, "")
    await world.store.create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)
    said = spec_by_wire("every 1m", **{name: value})
    request = jobs_pb2.CreateJobRequest(module="billing", verb="a", name="x", spec=said)
    job = (await world.control.make_job(new_job(request, declared, verb, defaults), "me")).job
    await world.controller("c1")
    await world.runner("r1")
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    assert getattr(execution.job, name) == value, "of what runs"
    if reads is None:
        return
    for wanted, mask in (("other", [name]), ("other", ["timeout_ms"]), ("", [name])):
        change = jobs_pb2.UpdateJobRequest(spec=spec_by_wire(**{name: wanted}), update_mask=FieldMask(paths=mask))
        row = await reads.get_job(job.key)
        assert (
            getattr(
                await world.control.update_job(job.key, job_change(change, row, declared, verb, defaults), "me"), name
            )
            == wanted
        )
        with calling(LOCAL):
            message = job_message(await reads.get_job(job.key), "")
        assert getattr(convert.job(jobs_pb2.Job.FromString(message.SerializeToString())), name) == wanted, (
            "for the client"
        )
    await world.templates.set_template("default", "t", TemplateValues("", decode_spec(said)), None, "me")
    kept = (await world.templates.get_template("default", "t")).values.spec
    assert getattr(convert.spec(encode_spec(kept)), name) == value, "in a template"


def spec_by_wire(schedule: str = "", **fields: Any) -> jobs_pb2.JobSpec:
    return jobs_pb2.JobSpec.FromString(convert.job_spec(JobSpec(schedule, **fields)).SerializeToString())


async def go(url: str, what: str, name: str, value: str) -> None:
    journey = {"report": of_a_report, "reason": of_a_reason, "spec": of_a_spec}[what]
    await journey(World(MemoryScene()), None, name, value)
    database, connection = await Database.open(url, "cronring journey"), await connect(url, "cronring journey")
    await journey(World(PostgresScene(database, connection)), PostgresReads(database, LOST_AFTER_MS), name, value)
    await connection.close()
    await database.close()


if __name__ == "__main__":
    with running_server("postgres18") as server:
        asyncio.run(go(server.url(server.create_database()), *sys.argv[1:]))
