"""Cancelling, retrying, following and watching executions, from the command line."""

import json
from collections.abc import AsyncIterator

import pytest

from cronring.client import AsyncClient
from cronring.client.errors import Refused
from cronring.client.model import ExecutionEventKind
from cronring.protos.cronring.v1 import executions_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, execution

RUNNING = {"outcome": "", "ended_at": None}


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[AsyncClient]:
    async with AsyncClient([api.address], timeout_s=60) as client:
        yield client


def event(kind: str, execution_id: int = 0, token: str = "") -> executions_pb2.ExecutionEvent:
    found = execution(execution_id) if execution_id else None
    number = executions_pb2.ExecutionEvent.Kind.Value(f"KIND_{kind}")
    return executions_pb2.ExecutionEvent(kind=number, execution=found, resume_token=token)


def test_cancel_says_who_and_why_and_where_to_see_its_end(asked: Cronring, api: FakeApi) -> None:
    api.executions.insert(0, execution(6, **RUNNING))
    done = asked("executions", "cancel", "6", "--note", "wrong month", "--as", "ann")
    assert done.exit_code == 0, done.stderr
    assert "it has been asked to stop" in done.stdout
    assert "cronring logs -f 6" in done.stdout
    request = api.requests[0]
    assert (request.id, request.note, request.requested_by) == (6, "wrong month", "ann")


def test_cancel_of_what_has_ended_is_an_error_that_says_how(asked: Cronring) -> None:
    done = asked("executions", "cancel", "5")
    assert done.exit_code == 1
    assert "it had completed 200ms before" in done.stderr


def test_cancel_waits_for_the_end_and_tells_what_comes_next(asked: Cronring, api: FakeApi) -> None:
    api.executions.insert(0, execution(6, outcome="cancelled"))
    done = asked("executions", "cancel", "6", "--wait")
    assert done.exit_code == 0
    assert "its next tick is 2026-11-21 08:05:00Z" in done.stderr


def test_retry_tells_what_waits(asked: Cronring, api: FakeApi) -> None:
    api.executions.insert(0, execution(6, outcome="failed"))
    done = asked("executions", "retry", "6", "--as", "ann")
    assert done.exit_code == 0, done.stderr
    assert "billing.refresh tries its tick 2026-11-21 08:00:06Z again (attempt 1)" in done.stdout
    assert (api.requests[0].id, api.requests[0].requested_by) == (6, "ann")


@pytest.mark.parametrize("command", [("logs",), ("executions", "logs")])
def test_logs_of_an_execution_and_of_a_job(asked: Cronring, api: FakeApi, command: tuple[str, ...]) -> None:
    api.printed = "grün\n".encode()
    done = asked(*command, "5")
    assert (done.exit_code, done.stdout) == (0, "grün\n"), done.stderr
    assert "execution 5 of billing.refresh: completed" in done.stderr
    assert asked(*command, "billing.refresh").stdout == "grün\n"
    assert [request.once for request in api.requests if hasattr(request, "once")] == [True, True]


def test_logs_go_on_where_they_were_when_the_stream_breaks(asked: Cronring, api: FakeApi) -> None:
    api.printed, api.breaks = "first, then the rest: äöü\n".encode(), 2
    done = asked("logs", "-f", "5", "--controllers", f"{api.address},{api.address.replace('127.0.0.1', 'localhost')}")
    assert done.stdout == "first, then the rest: äöü\n"


def test_logs_say_what_is_lost(asked: Cronring, api: FakeApi) -> None:
    api.printed, api.cut = b"0123456789end\n", 10
    assert asked("logs", "5").stdout == "[… 10 bytes of output cut …]\nend\n"


def test_logs_of_a_job_that_has_not_run(asked: Cronring, api: FakeApi) -> None:
    api.executions.clear()
    assert "has not run yet" in asked("logs", "billing.refresh").stderr


async def test_a_watch_that_was_dropped_goes_on_and_tells_nothing_twice(client: AsyncClient, api: FakeApi) -> None:
    api.sessions = [
        [event("WATCHING", token="a"), event("STARTED", 1), event("ENDED", 1, token="b"), event("STARTED", 2)],
        [event("WATCHING", token="b"), event("STARTED", 2), event("ENDED", 2), event("STARTED", 3, token="c")],
        [event("WATCHING", token="c"), event("ENDED", 3)],
    ]
    told: list[tuple[ExecutionEventKind, int]] = []

    async def watch() -> None:
        async for each in client.executions.watch("billing.refresh", "failed"):
            told.append((each.kind, each.execution.id))  # noqa: PERF401  it ends with an exception

    with pytest.raises(Refused, match="no more events"):
        await watch()
    started, ended = ExecutionEventKind.STARTED, ExecutionEventKind.ENDED
    assert told == [(started, 1), (ended, 1), (started, 2), (ended, 2), (started, 3), (ended, 3)]
    assert [(each.job, each.outcome, each.resume_token) for each in api.requests] == [
        ("billing.refresh", "failed", ""), ("billing.refresh", "failed", "b"), ("billing.refresh", "failed", "c"),
    ]  # fmt: skip


def test_one_is_shown_with_a_link_to_its_trace(asked: Cronring) -> None:
    trace = f"https://traces.example/trace/{5:032x}"
    assert trace in asked("executions", "get", "5").stdout
    found = json.loads(asked("executions", "get", "5", "-o", "json").stdout)
    assert (found["trace_id"], found["trace_url"]) == (f"{5:032x}", trace)


def test_watch_prints_a_line_for_each(asked: Cronring, api: FakeApi) -> None:
    api.sessions = [[event("STARTED", 1), event("ENDED", 2)]]
    done = asked("executions", "watch", "-o", "json")
    assert done.exit_code == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["kind"], line["execution"]["id"]) for line in lines] == [("started", 1), ("ended", 2)]
    assert "output" not in lines[0]["execution"]


def test_watch_of_a_job_that_is_not_there_says_so_instead_of_waiting_for_ever(asked: Cronring, api: FakeApi) -> None:
    api.sessions = [[event("STARTED", 1)]]
    done = asked("executions", "watch", "--job", "billing.refesh")
    assert done.exit_code == 1
    assert "Did you mean 'billing.refresh'?" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["executions", "get", str(2**63)],
        ["executions", "cancel", str(2**63)],
        ["executions", "retry", str(2**63)],
        ["logs", str(2**63)],
        ["jobs", "activations", "billing.refresh", "--cancel", str(2**63)],
        ["webhook", "redeliver", "pager", str(2**63)],
        ["deploy", "billing.py", "--min-replicas", str(2**31)],
        ["limits", "set", "billing", "--max-concurrent", str(2**31)],
        ["jobs", "create", "billing.refresh", "--name", "x", "--manual", "--history-runs", str(2**31)],
    ],
)
def test_numbers_that_the_api_has_no_room_for_are_wrong_usage(asked: Cronring, arguments: list[str]) -> None:
    done = asked(*arguments)
    assert done.exit_code == 2
    assert "is not in the range" in done.stderr
