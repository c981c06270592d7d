"""The way of a tick through real controllers, with a scripted runner at its end."""

import asyncio
import signal

import pytest

from cronring.protos.cronring.v1.executions_pb2 import ExecutionFilter, GetExecutionRequest, ListExecutionsRequest
from cronring.protos.cronring.v1.ledger_pb2 import AuditRequest, WhyRequest
from cronring.protos.executions import decode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.execution import Run
from tests.integration.controller.conftest import Client, Clients, exit_code, get, start, wait_agreed
from tests.support.cluster import Cluster, Process
from tests.support.fake_runner import FakeRunner, hello
from tests.support.waiting import TIMEOUT_S, wait_until


def completed(run: Run, now_us: int) -> wire.Reports:
    report = wire.Report(
        execution_id=run.execution_id, job_id=run.job_id, claimed_at_us=run.claimed_at_us,
        outcome=wire.OUTCOME_COMPLETED, started_at_us=now_us, ended_at_us=now_us + 1_000, output="done\n",
    )  # fmt: skip
    return wire.Reports(reports=[report])


async def test_a_tick_runs_once_and_is_recorded(cluster: Cluster, clients: Clients) -> None:
    (process,) = await start(cluster, 1)
    client = await clients.of(process)
    async with FakeRunner(client.channel, places=True) as runner:
        (module,) = (await runner.introduce(hello(schedule="1s"))).modules
        assert module.active
        dispatch = (await runner.hear_of("dispatch")).dispatch
        (run,) = decode_runs(dispatch.runs)
        assert (run.job, run.verb, run.attempt, run.trigger) == ("billing.close_month", "close_month", 1, "schedule")
        assert run.run_at_us <= run.claimed_at_us <= dispatch.now_us
        await runner.say(beat=wire.Beat(sequence=1, renew=True))
        ack = (await runner.hear_of("beat_ack")).beat_ack
        assert (ack.sequence, ack.database_ok) == (1, True)
        await runner.say(reports=completed(run, dispatch.now_us))
        assert run.execution_id in (await runner.hear_of("reports_ack")).reports_ack.execution_ids
        execution = await client.executions.GetExecution(GetExecutionRequest(id=run.execution_id))
        assert (execution.outcome, execution.output, execution.runner) == ("completed", "done\n", "r-1")
        listed = (
            await client.executions.ListExecutions(
                ListExecutionsRequest(filter=ExecutionFilter(outcomes=["completed"]))
            )
        ).executions
        assert [each.id for each in listed] == [run.execution_id]
        audit = await client.ledger.Audit(AuditRequest(thorough=True))
        assert audit.executed >= 1
        assert (audit.unaccounted, audit.duplicates, audit.early, audit.undue) == (0, 0, 0, 0)
        why = await client.ledger.Why(WhyRequest(job="billing.close_month", at=execution.tick))
        assert (why.verdict, [each.id for each in why.attempts]) == ("executed", [run.execution_id])


async def test_a_runs_end_may_be_told_to_another_controller_when_its_own_is_killed(
    cluster: Cluster, clients: Clients
) -> None:
    processes = await start(cluster, 2)
    everyone = [await clients.of(process) for process in processes]
    await wait_agreed(everyone, 2)
    runners = [FakeRunner(client.channel, beats=True, places=True) for client in everyone]
    for runner in runners:
        await runner.introduce(hello(schedule="1s"))
    hearing = [asyncio.create_task(runner.hear_of("dispatch")) for runner in runners]
    await asyncio.wait(hearing, timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    at = next(number for number, task in enumerate(hearing) if task.done())
    dispatch = hearing[at].result().dispatch
    processes[at].kill()
    other, (run,) = runners[1 - at], decode_runs(dispatch.runs)
    hearing[1 - at].cancel()
    await other.say(reports=completed(run, dispatch.now_us))
    assert run.execution_id in (await other.hear_of("reports_ack")).reports_ack.execution_ids
    execution = await everyone[1 - at].executions.GetExecution(GetExecutionRequest(id=run.execution_id))
    assert execution.outcome == "completed"
    assert execution.ended_at.ToMicroseconds() == dispatch.now_us + 1_000
    for runner in runners:
        await runner.close()


async def test_draining_waits_for_what_runs_and_claims_no_more(cluster: Cluster, clients: Clients) -> None:
    (process,) = await start(cluster, 1, "--drain-timeout", "20s")
    client = await clients.of(process)
    async with FakeRunner(client.channel, beats=True, places=True) as runner:
        await runner.introduce(hello(schedule="1s"))
        dispatch = (await runner.hear_of("dispatch")).dispatch
        process.send(signal.SIGTERM)
        await wait_until(lambda: is_draining(client, process), "it doesn't say that it drains")
        assert process.alive()
        await runner.say(reports=completed(decode_runs(dispatch.runs)[0], dispatch.now_us))
        assert await exit_code(process) == 0


async def is_draining(client: Client, process: Process) -> bool:
    status, body = await get(process, "/readyz")
    (own,) = (await client.view()).members
    return status == 503 and "draining" in body["reason"] and own.status == "draining"


@pytest.mark.parametrize(("drain_timeout", "signals"), [("60s", 2), ("1s", 1)])
async def test_a_second_signal_and_the_drains_timeout_leave_at_once(
    cluster: Cluster, clients: Clients, drain_timeout: str, signals: int
) -> None:
    (process,) = await start(cluster, 1, "--drain-timeout", drain_timeout)
    async with FakeRunner((await clients.of(process)).channel, beats=True, places=True) as runner:
        await runner.introduce(hello(schedule="1s"))
        await runner.hear_of("dispatch")
        for _ in range(signals):
            process.send(signal.SIGTERM)
            await wait_until(lambda: '"stopping"' in process.tail(), "the signal was not heard")
        assert await exit_code(process) == 0
