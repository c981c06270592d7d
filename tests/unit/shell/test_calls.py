"""Who has a place among the calls in hand, who waits for one, and who is sent away: over real calls."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from cronring.client.failures import judged
from cronring.controller.api import calls as around
from cronring.controller.api.calls import CALLS_MAX, WAITING_BYTES, WAITING_MAX
from cronring.controller.api.door import Door
from cronring.controller.api.judging import Insecure
from cronring.protos.cronring.v1 import doctor_pb2, doctor_pb2_grpc, jobs_pb2, jobs_pb2_grpc
from cronring.protos.problems import Fate
from tests.support.callers import counting
from tests.support.waiting import wait_until

LONG_S = 60.0  # a deadline that no test here lives to see
BUSY = "come again"


class Gate(jobs_pb2_grpc.JobsServicer, doctor_pb2_grpc.DoctorServicer):
    """Calls stand in it until it is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun: list[str] = []
        self.inside = self.most = 0

    async def CreateJob(self, request: jobs_pb2.CreateJobRequest, _: Any) -> jobs_pb2.Job:  # noqa: N802
        self.begun.append(request.name)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return jobs_pb2.Job()

    async def DiagnoseController(self, *_: object) -> doctor_pb2.DiagnoseControllerResponse:  # noqa: N802
        return doctor_pb2.DiagnoseControllerResponse()


class Place:
    """A server whose calls pass the gate, and callers of it."""

    def __init__(self) -> None:
        self.gate = Gate()  # type: ignore[abstract]  # only what is called is there
        self.away_since_us: int | None = None
        self.calls = around.Calls(self, counting([]), lambda: self.away_since_us)
        self.channel: grpc.aio.Channel

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error

    async def ask(self, name: str, timeout_s: float | None = LONG_S, payload: str = "") -> grpc.aio.AioRpcError | None:
        """The error, if there is one."""
        request = jobs_pb2.CreateJobRequest(name=name)
        request.spec.payload = payload
        try:
            await jobs_pb2_grpc.JobsStub(self.channel).CreateJob(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            return error
        return None

    async def asked(self, first: int, count: int) -> list["asyncio.Task[grpc.aio.AioRpcError | None]"]:
        """So many that have arrived: in hand, or waiting."""
        here = len(self.gate.begun) + self.waiting
        tasks = [asyncio.create_task(self.ask(f"{number}")) for number in range(first, first + count)]
        await wait_until(lambda: len(self.gate.begun) + self.waiting == here + count, "not all of them arrived")
        return tasks

    @property
    def waiting(self) -> int:
        return self.calls._places.waiting


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    made = Place()
    server = grpc.aio.server()
    door: Any = Door(server, counting([]), made.calls, Insecure())
    jobs_pb2_grpc.add_JobsServicer_to_server(made.gate, door)
    doctor_pb2_grpc.add_DoctorServicer_to_server(made.gate, door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as made.channel:
        yield made
        made.gate.open.set()
    await server.stop(None)
    door.close()


def is_busy(error: grpc.aio.AioRpcError | None) -> bool:
    """And surely not done."""
    if error is None or error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return False
    return BUSY in (error.details() or "") and judged(error).fate is Fate.NOT_DONE


async def test_a_burst_waits_in_the_order_in_which_it_came(place: Place) -> None:
    """The seventeenth was sent away at once, and plain clients don't come again."""
    tasks = await place.asked(0, CALLS_MAX)
    for number in range(CALLS_MAX, CALLS_MAX + 30):
        tasks += await place.asked(number, 1)
    assert (len(place.gate.begun), place.waiting) == (CALLS_MAX, 30)
    place.gate.open.set()
    assert await asyncio.gather(*tasks) == [None] * len(tasks)
    assert place.gate.begun[CALLS_MAX:] == [f"{number}" for number in range(CALLS_MAX, CALLS_MAX + 30)]
    assert (place.gate.most, place.waiting) == (CALLS_MAX, 0)


async def test_the_queue_is_bounded(place: Place) -> None:
    tasks = await place.asked(0, CALLS_MAX + WAITING_MAX)
    assert is_busy(await place.ask("too many"))
    place.gate.open.set()
    assert Counter(await asyncio.gather(*tasks)) == {None: CALLS_MAX + WAITING_MAX}
    assert "too many" not in place.gate.begun


async def test_what_waits_is_bounded_in_bytes(place: Place) -> None:
    tasks = await place.asked(0, CALLS_MAX)
    payload, fit = "x" * 100_000, WAITING_BYTES // 100_000
    large = [asyncio.create_task(place.ask("large", payload=payload)) for _ in range(2 * fit)]
    await wait_until(lambda: place.waiting + sum(task.done() for task in large) == 2 * fit, "not all of them arrived")
    assert fit - 1 <= place.waiting <= fit
    place.gate.open.set()
    assert await asyncio.gather(*tasks) == [None] * CALLS_MAX
    refused = [error for error in await asyncio.gather(*large) if error is not None]
    assert len(refused) >= fit
    assert all(map(is_busy, refused))


@pytest.mark.parametrize("timeout_s", [1.0, None])
async def test_who_has_waited_for_long_was_never_begun(place: Place, timeout_s: float | None) -> None:
    """It is told while its caller still listens."""
    tasks = await place.asked(0, CALLS_MAX)
    assert is_busy(await place.ask("late", timeout_s))
    place.gate.open.set()
    await asyncio.gather(*tasks)
    assert "late" not in place.gate.begun


async def test_who_gives_up_leaves_its_place_to_the_next(place: Place) -> None:
    tasks = await place.asked(0, CALLS_MAX)
    [gone] = await place.asked(100, 1)
    tasks += await place.asked(200, 1)
    gone.cancel()
    await wait_until(lambda: place.waiting == 1, "it waits on")
    place.gate.open.set()
    assert set(await asyncio.gather(*tasks)) == {None}
    assert "100" not in place.gate.begun
    assert await asyncio.gather(*(place.ask("again") for _ in range(2 * CALLS_MAX))) == [None] * 2 * CALLS_MAX


async def test_without_postgresql_nobody_waits(place: Place) -> None:
    tasks = await place.asked(0, CALLS_MAX)
    place.away_since_us = 1
    error = await place.ask("x", None)
    assert error is not None
    assert "PostgreSQL can't be reached" in (error.details() or "")
    assert judged(error).fate is Fate.NOT_DONE
    place.gate.open.set()
    await asyncio.gather(*tasks)
    assert "x" not in place.gate.begun


async def test_the_doctor_always_passes(place: Place) -> None:
    tasks = await place.asked(0, CALLS_MAX + 1)
    doctor: Any = doctor_pb2_grpc.DoctorStub(place.channel)
    await doctor.DiagnoseController(doctor_pb2.DiagnoseControllerRequest(), timeout=LONG_S)
    assert (len(place.gate.begun), place.waiting) == (CALLS_MAX, 1)
    place.gate.open.set()
    await asyncio.gather(*tasks)
