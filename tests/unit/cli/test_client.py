"""The client over real gRPC: values, errors, paging, fail-over."""

import asyncio
from datetime import UTC, datetime

import grpc
import pytest

from cronring.client import AsyncClient, DatabaseAway, Invalid, NotFound, Refused, Unreachable, convert
from cronring.client.jobs import _Merge
from cronring.client.model import JobEvent, JobEventKind
from cronring.controller.errors import StoreUnavailable
from cronring.schema.module import Module, Verb
from tests.unit.cli.fake_api import FakeApi, execution, job, serving
from tests.unit.cli.fake_times import EPOCH

NOBODY = "127.0.0.1:1"


async def test_values(api: FakeApi) -> None:
    async with AsyncClient([api.address]) as client:
        first, second = await client.jobs.list()
        assert (first.key, first.status, first.running_execution_id) == ("billing.close_month", "running", 3)
        assert second.next_execution == datetime(2026, 11, 21, 8, 5, tzinfo=UTC)
        assert second.last_started_at == EPOCH.replace(microsecond=3000)
        assert (await client.executions.get(3)).output == "hello\n"
        assert (await client.cluster.owners("billing.refresh")).backup is None
        audit = await client.ledger.audit(since=EPOCH, until=EPOCH)
        assert (audit.ticks, audit.skipped, audit.unaccounted, audit.clean) == (87, {"overlap": 6}, 0, True)
        assert api.requests[-1].until == api.requests[-1].since


async def test_what_never_happened_is_none(api: FakeApi) -> None:
    api.jobs = [job("new", last_outcome="", last_started_at=None, last_ended_at=None, next_execution=None)]
    api.executions = [execution(1, started_at=None, ended_at=None, outcome="")]
    async with AsyncClient([api.address]) as client:
        (fresh,) = await client.jobs.list()
        (waiting,) = await client.executions.list()
    assert (fresh.last_outcome, fresh.last_started_at, fresh.last_lateness_ms) == (None, None, None)
    assert (waiting.outcome, waiting.started_at, waiting.lateness_ms) == (None, None, None)


@pytest.mark.parametrize(("limit", "expected"), [(None, 5), (3, 3), (1, 1), (99, 5)])
async def test_pages_are_followed(api: FakeApi, limit: int | None, expected: int) -> None:
    api.page_limit = 2
    async with AsyncClient([api.address]) as client:
        rows = await client.executions.list(limit=limit)
    assert [row.id for row in rows] == [5, 4, 3, 2, 1][:expected]


async def test_the_next_controller_answers_and_is_remembered(api: FakeApi) -> None:
    async with AsyncClient([NOBODY, api.address]) as client:
        assert len(await client.jobs.list()) == 2
        assert client.current_address == api.address


async def test_what_a_keyed_call_learns_is_known_to_all(api: FakeApi) -> None:
    async with AsyncClient([NOBODY, api.address]) as client:
        await client.with_key("k1").jobs.trigger("billing.refresh")
        assert client.current_address == api.address
        assert client.with_key("k2").current_address == api.address


async def test_calls_at_once_all_fail_over(api: FakeApi) -> None:
    async with AsyncClient([NOBODY, api.address, "127.0.0.1:2"]) as client:
        answers = await asyncio.gather(*(client.cluster.get() for _ in range(10)))
    assert len(answers) == 10


async def test_a_controller_that_hangs_is_left() -> None:
    release = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()  # accepts, and never says a word: a stopped process
        writer.close()

    listener = await asyncio.start_server(hang, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    with serving(FakeApi()) as api:
        async with AsyncClient([f"{host}:{port}", api.address], timeout_s=2) as client:
            assert len(await client.jobs.list()) == 2
    release.set()
    listener.close()


async def test_unreachable_names_all_addresses_and_the_remedy() -> None:
    async with AsyncClient([NOBODY, "127.0.0.1:2"]) as client:
        with pytest.raises(Unreachable) as caught:
            await client.jobs.list()
    text = str(caught.value)
    assert all(word in text for word in (NOBODY, "127.0.0.1:2", "--controllers", "CRONRING_CONTROLLERS", "refused"))


async def test_a_database_that_is_away_is_no_lost_controller(api: FakeApi) -> None:
    api.refusal = StoreUnavailable("connection refused")
    async with AsyncClient([NOBODY, api.address]) as client:
        with pytest.raises(DatabaseAway, match="PostgreSQL is away"):
            await client.jobs.list()


async def test_another_controllers_database_may_be_there(api: FakeApi) -> None:
    api.refusal = StoreUnavailable("connection refused")
    with serving(FakeApi()) as healthy:
        async with AsyncClient([api.address, healthy.address]) as client:
            assert len(await client.jobs.list()) == 2


async def test_answers_that_are_no(api: FakeApi) -> None:
    async with AsyncClient([api.address]) as client:
        with pytest.raises(NotFound, match=r"there is no job billing\.x"):
            await client.jobs.get("billing.x")
        with pytest.raises(Invalid) as caught:
            await client.deployments.create(Module("refused", (Verb("x", schedule="0 0 30 2 *"),)), "00")
        assert caught.value.violations == (("schema.verbs[0].schedule", "it can never fire"),)
        assert "it can never fire" in str(caught.value)
        api.failure = grpc.StatusCode.OUT_OF_RANGE, "no"
        with pytest.raises(Refused, match="OUT_OF_RANGE: no"):
            await client.jobs.list()


async def test_watch_goes_on_with_the_next_controller(api: FakeApi) -> None:
    api.watch_ends = True  # this controller stops right after its first listing
    with serving(FakeApi()) as other:
        other.jobs = [job("close_month", status="scheduled"), job("brand_new")]
        async with AsyncClient([api.address, other.address]) as client:
            told = []
            async for event in client.jobs.watch():
                told.append((event.kind.value, event.job.verb if event.job else ""))
                if len(told) == 6:
                    break
    assert told == [
        ("present", "close_month"),
        ("present", "refresh"),
        ("listed", ""),
        ("changed", "close_month"),  # the second controller says it no longer runs
        ("changed", "brand_new"),
        ("removed", "refresh"),
    ]


async def test_watch_ends_when_nobody_is_left() -> None:
    async with AsyncClient([NOBODY, "127.0.0.1:2"]) as client:
        with pytest.raises(Unreachable):
            await anext(client.jobs.watch())


def test_merge_tells_a_removal_once() -> None:
    merge = _Merge()
    one = convert.job(job("refresh"))
    assert merge.apply(JobEvent(JobEventKind.PRESENT, one)) == [JobEvent(JobEventKind.PRESENT, one)]
    assert merge.apply(JobEvent(JobEventKind.LISTED, None)) == [JobEvent(JobEventKind.LISTED, None)]
    removed = JobEvent(JobEventKind.REMOVED, one)
    assert merge.apply(removed) == [removed]
    assert merge.apply(removed) == []
    merge.move()
    assert merge.apply(JobEvent(JobEventKind.LISTED, None)) == []


def test_a_client_needs_an_address() -> None:
    with pytest.raises(ValueError, match="at least one controller"):
        AsyncClient([])
