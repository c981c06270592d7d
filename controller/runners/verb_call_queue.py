"""Calls of verbs, as runners' streams bring them: answered a few at a time, and no faster than a rate."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from cronring.controller.core.rates import Buckets, Rate
from cronring.controller.runners.streams import RunnerStream
from cronring.protos.problems import Reason
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.duration import measured

# Each holds one of ten connections to PostgreSQL. The node's own statements need them, too.
AT_ONCE: Final = 4
OF_A_RUNNER: Final = 2
RATE: Final = Rate(50, 200)  # of a runner; calls above this rate wait
CALL_S: Final = 12.0  # a call that takes longer is undecided; its runner asks again
WAITING_MAX: Final = 256  # of a stream; a runner of ours asks for fewer at once
_BUCKETS_MAX: Final = 10_000
_NS: Final = 1_000_000_000


class Answering(Protocol):
    """cronring.controller.api.verb_calls.VerbCallsService."""

    async def answer(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer: ...


class _Asking:
    """One stream's calls under way."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[int, int], asyncio.Task[None]] = {}
        self.places = asyncio.Semaphore(OF_A_RUNNER)


class VerbCallQueue:
    """`now_ns`: a monotonic clock."""

    def __init__(self, answering: Answering, now_ns: Callable[[], int]) -> None:
        self._answering = answering
        self._now_ns = now_ns
        self._places = asyncio.Semaphore(AT_ONCE)
        self._buckets = Buckets(RATE, _BUCKETS_MAX)
        self._asking: dict[RunnerStream, _Asking] = {}

    def take(self, stream: RunnerStream, call: wire.VerbCall) -> None:
        """Answer it in the background, in the name of the caller whose stream is in hand.

        A call that is asked for again while it is under way gets one answer.
        """
        asking, key = self._asking.setdefault(stream, _Asking()), (call.execution_id, call.number)
        if key in asking.tasks:
            return
        if len(asking.tasks) >= WAITING_MAX:
            stream.answer(_not_now(call, Reason.BUSY, f"{WAITING_MAX} calls of this runner's verbs wait already"))
            return
        task = asking.tasks[key] = asyncio.get_running_loop().create_task(self._answer(stream, asking, call))
        task.add_done_callback(lambda _: asking.tasks.pop(key))

    async def _answer(self, stream: RunnerStream, asking: _Asking, call: wire.VerbCall) -> None:
        async with asking.places:
            while wait_ns := self._buckets.take(stream.runner_id, self._now_ns()):  # noqa: ASYNC110  # of time, nobody tells
                await asyncio.sleep(wait_ns / _NS)
            async with self._places:
                stream.answer(await self._in_time(stream.runner_id, call))

    async def _in_time(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer:
        try:
            async with asyncio.timeout(CALL_S):
                return await self._answering.answer(runner_id, call)
        except TimeoutError:
            return _not_now(call, Reason.TOO_SLOW, f"it was not decided within {measured(CALL_S * 1_000)}")

    def left(self, stream: RunnerStream) -> None:
        """The stream has ended. Its runner asks again for calls that are not answered, here or elsewhere."""
        if (asking := self._asking.pop(stream, None)) is not None:
            for task in asking.tasks.values():
                task.cancel()


def _not_now(call: wire.VerbCall, reason: Reason, problem: str) -> wire.VerbAnswer:
    refusal = wire.VerbRefusal(reason=reason, problem=problem, again=True)
    return wire.VerbAnswer(execution_id=call.execution_id, number=call.number, refusal=refusal)
