"""How many calls of verbs a controller has in hand, of whom, and what becomes of those of a stream that has ended."""

import asyncio

import pytest

from cronring.controller.runners import verb_call_queue
from cronring.controller.runners.streams import RunnerStream
from cronring.controller.runners.verb_call_queue import AT_ONCE, OF_A_RUNNER, RATE, WAITING_MAX, VerbCallQueue
from cronring.protos.runner.v1 import runner_pb2 as wire

TIMEOUT_S = 30.0


class Service:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.at_work: list[tuple[str, int]] = []
        self.begun = asyncio.Condition()
        self.go = asyncio.Event()
        self.cancelled = 0

    async def answer(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer:
        self.at_work.append((runner_id, call.number))
        async with self.begun:
            self.begun.notify_all()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return wire.VerbAnswer(execution_id=call.execution_id, number=call.number, key="m.v:x")

    async def has_begun(self, calls: int) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.begun:
            await self.begun.wait_for(lambda: len(self.at_work) >= calls)


class House:
    def __init__(self) -> None:
        self.now_ns = 0
        self.service = Service()
        self.desk = VerbCallQueue(self.service, lambda: self.now_ns)

    def stream(self, runner_id: str) -> RunnerStream:
        return RunnerStream(runner_id, lambda: 0)

    def ask(self, stream: RunnerStream, *numbers: int) -> None:
        for number in numbers:
            self.desk.take(stream, wire.VerbCall(execution_id=7, number=number))


async def heard(stream: RunnerStream, answers: int) -> list[wire.VerbAnswer]:
    """The next answers that go out."""
    told: list[wire.VerbAnswer] = []
    enough = asyncio.Event()

    async def write(message: wire.ControllerMessage) -> None:
        told.append(message.verb_answer)
        if len(told) >= answers:
            enough.set()

    writing = asyncio.create_task(stream.write_all(write))
    async with asyncio.timeout(TIMEOUT_S):
        await enough.wait()
    stream.stop_writing()
    await writing
    return told


async def test_a_few_are_done_at_once_and_one_runner_leaves_room_for_others() -> None:
    house = House()
    first, second, third = (house.stream(name) for name in ("r1", "r2", "r3"))
    for stream in (first, second, third):
        house.ask(stream, 1, 2, 3, 4)
    await house.service.has_begun(AT_ONCE)
    await asyncio.sleep(0)
    assert sorted(house.service.at_work) == [("r1", 1), ("r1", 2), ("r2", 1), ("r2", 2)]
    assert AT_ONCE == 2 * OF_A_RUNNER
    house.service.go.set()
    for stream in (first, second, third):
        assert sorted(answer.number for answer in await heard(stream, 4)) == [1, 2, 3, 4]


async def test_beyond_its_bound_a_stream_is_told_to_come_again() -> None:
    house, stream = House(), House().stream("r1")
    house.ask(stream, *range(1, WAITING_MAX + 2))
    (refused,) = await heard(stream, 1)
    assert (refused.number, refused.refusal.reason, refused.refusal.again) == (WAITING_MAX + 1, "BUSY", True)
    house.desk.left(stream)


async def test_a_call_that_is_asked_for_again_while_it_is_under_way_has_one_answer() -> None:
    house, stream = House(), House().stream("r1")
    house.ask(stream, 1, 1, 2, 1)
    await house.service.has_begun(2)
    house.service.go.set()
    assert sorted(answer.number for answer in await heard(stream, 2)) == [1, 2]
    assert [number for _, number in house.service.at_work] == [1, 2]
    house.ask(stream, 1)
    await house.service.has_begun(3)


async def test_what_is_faster_than_the_rate_waits() -> None:
    house, stream = House(), House().stream("r1")
    house.service.go.set()
    house.ask(stream, *range(1, WAITING_MAX + 1))
    await house.service.has_begun(RATE.burst)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(house.service.at_work) == RATE.burst, "the clock stands still, and so no more are let through"
    house.now_ns += 2_000_000_000
    await house.service.has_begun(WAITING_MAX)


async def test_what_is_not_decided_in_time_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb_call_queue, "CALL_S", 0.01)
    house, stream = House(), House().stream("r1")
    house.ask(stream, 1)
    (late,) = await heard(stream, 1)
    assert (late.refusal.reason, late.refusal.again) == ("TOO_SLOW", True)
    assert house.service.cancelled == 1


async def test_calls_of_a_stream_that_has_ended_are_given_up() -> None:
    house, stream = House(), House().stream("r1")
    house.ask(stream, 1, 2, 3)
    await house.service.has_begun(2)
    house.desk.left(stream)
    house.desk.left(stream)
    other = house.stream("r1")
    house.ask(other, 4)
    await house.service.has_begun(3)
    assert house.service.cancelled == 2
    assert house.service.at_work[2] == ("r1", 4), "what waited was never begun"
    house.service.go.set()
    assert [answer.number for answer in await heard(other, 1)] == [4]
