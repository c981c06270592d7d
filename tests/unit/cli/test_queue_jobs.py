"""`cronring jobs create --queue`, and `client.schedule`: what is asked for, and what is refused in which words."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from cronring.cli.commands.job_writes import create_job
from cronring.cli.job_lines import JobLines, WrongLine
from cronring.client import AsyncClient, Invalid
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.cronring.v1.schema_pb2 import Policy
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

CREATE = ("jobs", "create", "--queue", "reports")


def test_a_queue_is_asked_for_in_place_of_a_verb(asked: Cronring, api: FakeApi) -> None:
    done = asked(*CREATE, "--workspace", "ws_3", "--every", "5m", "--payload", '{"a":1}', "--label", "team=x")
    assert done.exit_code == 0, done.stderr
    (request,) = api.requests
    assert (request.namespace, request.module, request.verb, request.name) == ("default", "", "", "")
    assert request.queue == jobs_pb2.QueueTarget(queue="reports", workspace="ws_3")
    assert request.spec == jobs_pb2.JobSpec(
        schedule="every 5m", payload='{"a":1}', labels={"team": "x"}, policy=Policy()
    )
    assert "ws_3:default is created" in done.stdout


def test_await_has_a_timeout_and_what_else_runs_have(asked: Cronring, api: FakeApi) -> None:
    done = asked(*CREATE, "--name", "n", "--cron", "0 6 * * *", "--await", "--timeout", "1h", "--overlap", "buffer_one")
    assert done.exit_code == 0, done.stderr
    (request,) = api.requests
    assert request.spec.policy == Policy(completes="consumed", overlap="buffer_one")
    assert request.spec.timeout_ms == 3_600_000


def test_another_namespace_stands_before_the_queue(asked: Cronring, api: FakeApi) -> None:
    assert asked("jobs", "create", "--queue", "team-a/reports", "--every", "5m").exit_code == 0
    (request,) = api.requests
    assert (request.namespace, request.queue.queue) == ("team-a", "reports")


def test_one_that_was_there_is_told_as_changed(asked: Cronring) -> None:
    done = asked(*CREATE, "--workspace", "known", "--every", "5m")
    assert "known:default is changed: it was there already" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jobs", "create", "--every", "5m"], "what does it run? Give VERB, like billing.close_month, or --queue NAME"),
        ([*CREATE, "billing.x", "--every", "5m"], "VERB and --queue exclude each other: a job has one target"),
        (["jobs", "create", "billing.x", "--workspace", "w", "--every", "5m"], "exclude each other"),
        (["jobs", "create", "billing.x", "--every", "5m"], "Missing option '--name'"),
        ([*CREATE], "when does it tick?"),
        ([*CREATE, "--every", "5m", "--timeout", "1m"], "--timeout: is how long its consumer may take"),
        ([*CREATE, "--every", "5m", "--overlap", "allow"], "leave it out, or write --completes consumed"),
        ([*CREATE, "--every", "5m", "--await", "--memory-limit", "1GiB"], "a message has none; leave it out"),
        ([*CREATE, "--every", "5m", "--on-disconnect", "finish"], "--on-disconnect: is about runners"),
        ([*CREATE, "--every", "5m", "--workspace", "a/b"], "--workspace: 'a/b' is no workspace"),
        (
            [*CREATE, "--every", "5m", "--label", "workspace=x"],
            "label workspace: is 'x', and the job's workspace is none",
        ),
        (["jobs", "create", "--queue", "a.b", "--every", "5m"], "--queue: 'a.b' is no queue"),
        (["jobs", "create", "--queue", "a" * 101, "--every", "5m"], "at most 100 are allowed"),
        (["jobs", "create", "billing.x", "--name", "n", "--every", "5m", "--await"], "of jobs whose target is a queue"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(asked: Cronring, arguments: list[str], words: str) -> None:
    done = asked(*arguments)
    assert done.exit_code != 0
    assert words in done.stderr


def test_lines_of_a_file_may_have_queues() -> None:
    lines = JobLines(create_job)
    made = lines.job(b'{"queue": "ns/reports", "workspace": "w", "every": "5m", "await": true, "payload": {"a": 1}}')
    assert (made.namespace, made.queue, made.workspace, made.module, made.name) == ("ns", "reports", "w", "", "")
    assert made.spec.policy == {"completes": "consumed"}
    assert json.loads(made.spec.payload) == {"a": 1}
    plain = lines.job(b'{"verb": "billing.x", "name": "n", "every": "5m"}')
    assert plain.spec.policy == {}
    with pytest.raises(WrongLine, match="a job has one target"):
        lines.job(b'{"queue": "reports", "verb": "billing.x", "every": "5m"}')


def test_a_service_makes_its_schedules_in_one_call(api: FakeApi) -> None:
    async def made() -> str:
        async with AsyncClient([api.address], insecure=True) as client:
            await client.schedule("reports", every="5m", payload={"kind": "daily"}, workspace="ws_3")
            at = datetime(2026, 11, 21, 8, 5, tzinfo=UTC)
            await client.schedule("reports", at=at, awaited=True, timeout_ms=60_000, name="once")
            with pytest.raises(Invalid, match="Give one of every="):
                await client.schedule("reports")
            with pytest.raises(Invalid, match="Give one of every="):
                await client.schedule("reports", "5m", cron="0 6 * * *")
            return (await client.schedule("reports", "5m", workspace="known")).key

    assert asyncio.run(made()).endswith("known:default")
    first, second, _ = api.requests
    assert (first.spec.schedule, json.loads(first.spec.payload)) == ("every 5m", {"kind": "daily"})
    assert (second.spec.schedule, second.name) == ("at 2026-11-21T08:05:00Z", "once")
    assert (second.spec.policy.completes, second.spec.timeout_ms) == ("consumed", 60_000)
