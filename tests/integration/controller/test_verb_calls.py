"""Calls of verbs at a real controller, from a scripted runner: also such as no runner of ours sends."""

import asyncio
from typing import Any

import grpc
import pytest

from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.executions import decode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.execution import Run
from tests.integration.controller.conftest import Client, Clients, start
from tests.integration.controller.test_runs import completed
from tests.support.cluster import Cluster
from tests.support.fake_runner import HEAR_TIMEOUT_S, FakeRunner, hello

KEY = "billing.close_month:made"
FLOOD = 1_000


def made(name: str = "made", payload: str = "") -> jobs_pb2.CreateJobRequest:
    spec = jobs_pb2.JobSpec(schedule="every 1h", payload=payload)
    return jobs_pb2.CreateJobRequest(module="billing", verb="close_month", name=name, spec=spec)


class Verb:
    """A run on a scripted runner, that asks."""

    def __init__(self, runner: FakeRunner, run: Run, now_us: int) -> None:
        self.runner = runner
        self.run = run
        self._now_us = now_us

    async def ask(self, number: int, **request: Any) -> wire.VerbAnswer:
        await self.say(number, **request)
        answer = (await self.runner.hear_of("verb_answer")).verb_answer
        assert (answer.execution_id, answer.number) == (self.run.execution_id, number)
        return answer

    async def say(self, number: int, **request: Any) -> None:
        await self.runner.say(verb_call=wire.VerbCall(execution_id=self.run.execution_id, number=number, **request))

    async def end(self) -> None:
        await self.runner.say(reports=completed(self.run, self._now_us))
        while self.run.execution_id not in (await self.runner.hear_of("reports_ack")).reports_ack.execution_ids:
            pass


async def verb_on(client: Client, runner: FakeRunner) -> Verb:
    await runner.introduce(hello(schedule="1s"))
    dispatch = (await runner.hear_of("dispatch")).dispatch
    return Verb(runner, decode_runs(dispatch.runs)[0], dispatch.now_us)


async def keys(client: Client) -> list[str]:
    listed = await client.jobs.ListJobs(jobs_pb2.ListJobsRequest(filter=jobs_pb2.JobFilter(module="billing")))
    return [job.key for job in listed.jobs]


async def test_a_call_is_done_once_and_none_after_the_end(cluster: Cluster, clients: Clients) -> None:
    (process,) = await start(cluster, 1)
    client = await clients.of(process)
    async with FakeRunner(client.channel, beats=True, places=True) as runner:
        verb = await verb_on(client, runner)
        for _ in range(2):
            assert (await verb.ask(1, create=made())).key == KEY
        assert (await verb.ask(2, get=jobs_pb2.GetJobRequest(key=KEY))).job.schedule == "every 1h"
        other = made()
        other.spec.schedule = "every 2h"
        refused = (await verb.ask(3, create=other)).refusal
        assert (refused.reason, refused.again) == ("CONFLICT", False)
        assert (await verb.ask(3, pause=jobs_pb2.PauseJobRequest(key=KEY))).key == KEY, "what was refused is not kept"
        assert (await verb.ask(9)).refusal.reason == "INVALID"
        async with FakeRunner(client.channel, beats=True, places=True) as stranger:
            await stranger.introduce(hello("r-2"))
            strange = Verb(stranger, verb.run, 0)
            assert "has ended, or was taken for lost" in (await strange.ask(4, create=made("b"))).refusal.problem
        await verb.end()
        late = (await verb.ask(5, create=made("late"))).refusal
        assert (late.reason, late.again) == ("CONFLICT", False)
        assert (await verb.ask(1, create=made())).key == KEY, "what was done is known all the same"
    assert await keys(client) == ["billing.close_month", KEY]


async def test_a_flood_of_calls_is_bounded_and_the_controller_serves_on(cluster: Cluster, clients: Clients) -> None:
    (process,) = await start(cluster, 1)
    client = await clients.of(process)
    async with FakeRunner(client.channel, beats=True, places=True) as runner:
        verb = await verb_on(client, runner)
        for number in range(1, FLOOD + 1):
            await verb.say(number, get=jobs_pb2.GetJobRequest(key="billing.close_month"))
        assert len(await keys(client)) == 1, "others are answered meanwhile"
        answers: dict[int, wire.VerbAnswer] = {}
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            while len(answers) < FLOOD:
                answer = (await runner.hear_of("verb_answer")).verb_answer
                answers[answer.number] = answer
        busy = [each for each in answers.values() if each.refusal.reason == "BUSY"]
        assert busy, "so many at once no runner of ours sends"
        assert all(each.refusal.again for each in busy)
        assert len(busy) < FLOOD - 200


@pytest.mark.parametrize(
    ("create", "words"),
    [
        (made("x" * 500), "name"),
        (made(payload="1" * 200_000), "payload"),
    ],
)
async def test_what_is_beyond_its_caps_ends_the_stream(
    cluster: Cluster, clients: Clients, create: jobs_pb2.CreateJobRequest, words: str
) -> None:
    (process,) = await start(cluster, 1)
    client = await clients.of(process)
    async with FakeRunner(client.channel, beats=True, places=True) as runner:
        verb = await verb_on(client, runner)
        await verb.say(1, create=create)
        code, details = await runner.ended()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert words in details
    assert await keys(client) == ["billing.close_month"]
