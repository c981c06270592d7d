"""What callers see of errors, over real calls."""

import asyncio
import threading
import typing
from collections.abc import AsyncIterator

import aiohttp
import grpc
import pytest
from aiohttp import web
from google.protobuf.any_pb2 import Any
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cronring.client.errors import Invalid
from cronring.client.failures import meaning
from cronring.controller.api import calls as around
from cronring.controller.api.door import Door
from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Insecure
from cronring.controller.api.login import Login
from cronring.controller.api.problems import InvalidRequest, SlowReaderError
from cronring.controller.api.rest.packing import answered
from cronring.controller.api.web_identity import WebDoor
from cronring.controller.errors import InvalidModule, NotFound, StoreError, StoreUnavailable
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from tests.support.callers import counting
from tests.support.waiting import TIMEOUT_S


class Failing(jobs_pb2_grpc.JobsServicer):
    """Fails every call with `error`, the stream after one message."""

    error: Exception = ValueError()

    async def ListJobs(self, *_: object) -> jobs_pb2.ListJobsResponse:  # noqa: N802 (grpc's name)
        raise self.error

    async def GetJob(self, *_: object) -> jobs_pb2.Job:  # noqa: N802 (grpc's name)
        raise self.error

    async def WatchJobs(self, *_: object) -> AsyncIterator[jobs_pb2.JobEvent]:  # noqa: N802 (grpc's name)
        yield jobs_pb2.JobEvent(kind=jobs_pb2.JobEvent.KIND_LISTED)
        raise self.error


class Calls:
    """A failing server, a stub of it, and what it logged and counted."""

    def __init__(self) -> None:
        self.failing = Failing()  # type: ignore[abstract]  # only what is called is there
        self.logged: list[BaseException] = []
        self.counted: list[str] = []
        self.away_since_us: int | None = None
        self.stub: jobs_pb2_grpc.JobsAsyncStub

    def exception(self, event: str, error: BaseException) -> None:
        assert event == "api_error"
        self.logged.append(error)

    async def fails(self, error: Exception) -> grpc.aio.AioRpcError:
        self.failing.error = error
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await self.stub.GetJob(jobs_pb2.GetJobRequest())
        return failed.value


@pytest.fixture
async def calls() -> AsyncIterator[Calls]:
    calls = Calls()
    server = grpc.aio.server()
    door: typing.Any = Door(
        server, counting([]), around.Calls(calls, counting(calls.counted), lambda: calls.away_since_us), Insecure()
    )
    jobs_pb2_grpc.add_JobsServicer_to_server(calls.failing, door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        calls.stub = jobs_pb2_grpc.JobsStub(channel)
        yield calls
    await server.stop(None)


def violations(error: grpc.aio.AioRpcError) -> list[tuple[str, str]]:
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it reads the same three methods
    assert status is not None
    found = []
    for detail in status.details:
        assert isinstance(detail, Any)
        bad = error_details_pb2.BadRequest()
        detail.Unpack(bad)
        found += [(each.field, each.description) for each in bad.field_violations]
    return found


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (NotFound("there is no job 'x'"), grpc.StatusCode.NOT_FOUND, "there is no job 'x'"),
        (StoreUnavailable("connection refused"), grpc.StatusCode.UNAVAILABLE, "PostgreSQL can't be reached"),
        (StoreError("value too long"), grpc.StatusCode.INTERNAL, "value too long"),
        (SlowReaderError("too slow"), grpc.StatusCode.RESOURCE_EXHAUSTED, "too slow"),
    ],
)
async def test_a_failure_has_its_code(calls: Calls, error: Exception, code: grpc.StatusCode, says: str) -> None:
    failed = await calls.fails(error)
    assert failed.code() is code
    assert says in (failed.details() or "")
    assert not calls.logged


async def test_what_nobody_foresaw_is_logged_and_told_without_its_details(calls: Calls) -> None:
    failed = await calls.fails(KeyError("secret"))
    assert failed.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (failed.details() or "")
    assert "KeyError" in (failed.details() or "")
    assert [type(error) for error in calls.logged] == [KeyError]


@pytest.mark.parametrize("kind", [InvalidRequest, InvalidModule])
async def test_every_problem_is_a_violation_with_its_field(
    calls: Calls, kind: type[InvalidRequest | InvalidModule]
) -> None:
    problems = [("schema.verbs[3].schedule", "step 0"), ("digest", "is empty")]
    failed = await calls.fails(kind(problems))
    assert failed.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert violations(failed) == problems
    assert "schema.verbs[3].schedule: step 0" in (failed.details() or "")
    assert calls.counted == ["request"]


async def test_thousands_of_problems_still_arrive(calls: Calls) -> None:
    problems = [(f"schema.verbs[{number}].schedule", "ä" * 5_000) for number in range(5_000)]
    failed = await calls.fails(InvalidModule(problems))
    assert failed.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert violations(failed)[0][0] == "schema.verbs[0].schedule"
    assert "of 5000 problems" in (failed.details() or "")
    meant = meaning(failed)
    assert isinstance(meant, Invalid)
    assert (meant.problems, len(meant.violations)) == (5_000, len(violations(failed)))


async def test_a_stream_fails_with_its_status_too(calls: Calls) -> None:
    calls.failing.error = StoreUnavailable("away")
    stream = calls.stub.WatchJobs(jobs_pb2.WatchJobsRequest())
    assert await stream.read() == jobs_pb2.JobEvent(kind=jobs_pb2.JobEvent.KIND_LISTED)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stream.read()
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_http_tells_alive_from_ready() -> None:
    reasons: list[str | None] = ["waiting for PostgreSQL"]
    server = HttpServer(lambda: reasons[-1], lambda: b"cronring_claims_total 1\n", counting([]), WebDoor(), Login())
    port = await server.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/healthz") as answer:
                assert answer.status == 200
            async with session.get("/readyz") as answer:
                assert answer.status == 503
                assert (await answer.json())["reason"] == "waiting for PostgreSQL"
            reasons.append(None)
            async with session.get("/readyz") as answer:
                assert answer.status == 200
            async with session.get("/metrics") as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert b"cronring_claims_total" in await answer.read()
            async with session.get("/nothing/there") as answer:
                assert (answer.status, answer.content_type) == (404, "application/problem+json")
                assert (await answer.json())["instance"] == "/nothing/there"
            async with session.post("/healthz") as answer:
                assert answer.status == 405
                assert answer.headers["Allow"] == "GET,HEAD"
    finally:
        await server.stop()


class Large:
    """A Routed, whose answer is packed beside the loop."""

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get("/large", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        return answered(b"x" * 100_000, request, status=200, kind="text/plain", headers={})


async def test_the_thread_of_large_answers_ends_with_the_server() -> None:
    server = HttpServer(lambda: None, lambda: b"", counting([]), WebDoor(), Large())
    port = await server.start("127.0.0.1", 0)
    before = set(threading.enumerate())
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session, session.get("/large") as answer:
        assert (await answer.read(), answer.headers["Content-Encoding"]) == (b"x" * 100_000, "gzip")
    (aside,) = set(threading.enumerate()) - before
    await server.stop()
    await asyncio.to_thread(aside.join, TIMEOUT_S)
    assert not aside.is_alive()


async def test_bytes_that_are_no_http_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Each wrote a traceback to the log."""
    refused: list[str] = []
    server = HttpServer(lambda: None, lambda: b"", counting(refused), WebDoor(), Login())
    port = await server.start("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET \x87\x07 NaN/1.1\r\n\r\n")
        async with asyncio.timeout(TIMEOUT_S):
            assert b"400" in await reader.readline()
        writer.close()
    finally:
        await server.stop()
    assert refused == ["http"]
    assert not caplog.records
