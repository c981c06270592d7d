"""Runners that lie: raw gRPC to real controllers, one class for each lie. None of them is the product's own runner."""

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Final

import grpc

from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.executions import decode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.support.fake_runner import a_place_for_each
from tests.support.looking import look

CONNECT: Final = "/cronring.runner.v1.RunnerGateway/Connect"
BATCH: Final = 1_000
_OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", 64 << 20))
_STREAM_ERRORS: Final = (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError)
UNFINISHED: Final = """
SELECT e.id, e.job_id, (extract(epoch FROM e.claimed_at) * 1000000)::bigint AS claimed_at
FROM cron_executions e JOIN runners r ON r.id = e.runner_id
WHERE e.outcome IS NULL AND e.controller_id > '' AND r.hostname <> 'liar'
"""


def hello(runner_id: str, module: str = "", verbs: dict[str, str] | None = None) -> wire.Hello:
    """Of a runner that claims to host `module`: its verbs by name, each with its schedule."""
    said = wire.Hello(runner_id=runner_id, hostname="liar", pid=1, version="9")
    if module:
        described = schema_pb2.Module(name=module)
        for name, schedule in (verbs or {}).items():
            described.verbs.add(name=name, schedule=schedule, timeout_ms=2_000)
        said.modules.add(digest="1" * 64, schema=described)
    return said


class Stream:
    """One connection, of bytes: what is no message can be said as well."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        connect: Any = channel.stream_stream(CONNECT, None, None)  # its stubs know only the form with an iterator
        self.call: Any = connect()

    async def say(self, **message: Any) -> None:
        await self.call.write(wire.RunnerMessage(**message).SerializeToString())

    async def hear(self) -> wire.ControllerMessage | None:
        said = await self.call.read()
        return wire.ControllerMessage.FromString(said) if isinstance(said, bytes) else None


class Liar:
    """`cut_off`: the reasons that it was given, and how often. It comes again until its time is over."""

    what: ClassVar[str]  # how the metric calls it; empty: it isn't counted
    reasons: ClassVar[tuple[str, ...]]  # parts of the words with which it is cut off, whichever bound it meets first
    pause_s: ClassVar[float] = 2.0  # before it comes again: a log has but five lines of one kind in ten seconds
    module: ClassVar[str] = ""
    verbs: ClassVar[dict[str, str]] = {}

    def __init__(self, address: str, database_url: str) -> None:
        self.address = address
        self.database_url = database_url
        self.cut_off: Counter[str] = Counter()
        self.said = 0

    async def live(self, until: float) -> None:
        """`until`: of time.monotonic()."""
        for number in itertools.count():
            if time.monotonic() >= until:
                return
            async with grpc.aio.insecure_channel(self.address, options=_OPTIONS) as channel:
                stream = Stream(channel)
                with contextlib.suppress(*_STREAM_ERRORS, TimeoutError):
                    async with asyncio.timeout(max(0.1, until - time.monotonic())):
                        await stream.say(hello=hello(f"{type(self).__name__}-{number}", self.module, self.verbs))
                        await stream.hear()
                        await self.lie(stream)
                await self._ended(stream)
            await asyncio.sleep(self.pause_s)

    async def lie(self, stream: Stream) -> None:
        """Until it is cut off."""
        raise NotImplementedError

    async def _ended(self, stream: Stream) -> None:
        if stream.call.done() and await stream.call.code() is not grpc.StatusCode.CANCELLED:  # which is its own
            self.cut_off[f"{(await stream.call.code()).name}: {await stream.call.details()}"] += 1
        stream.call.cancel()

    async def report(self, stream: Stream, reports: list[wire.Report]) -> None:
        self.said += len(reports)
        await stream.say(reports=wire.Reports(reports=reports))


class EndsTwice(Liar):
    """It runs what it is given, says that it completed, and then again and again that it failed."""

    what, reasons = "report_decided", ("had ended before", "without an acknowledgement", "no beat")
    module, verbs = "liars", {"bait": "* * * * * *"}

    async def lie(self, stream: Stream) -> None:
        beating = asyncio.create_task(_beat(stream))
        try:
            while (message := await stream.hear()) is not None:
                if message.demands.demands:
                    await stream.say(grants=a_place_for_each(message.demands.demands))
                for run in decode_runs(message.dispatch.runs):
                    first = _report(run.execution_id, run.job_id, run.claimed_at_us, wire.OUTCOME_COMPLETED)
                    await self.report(stream, [first])
                    again = _report(run.execution_id, run.job_id, run.claimed_at_us, wire.OUTCOME_FAILED)
                    for _ in range(25):
                        await self.report(stream, [again] * BATCH)
                        await asyncio.sleep(0.01)
        finally:
            beating.cancel()


class EndsOthers(Liar):
    """It knows every execution that honest runners have, with its claim, and says that they failed."""

    what, reasons = "report_foreign", ("not its own",)

    async def lie(self, stream: Stream) -> None:
        connection = await look(self.database_url)
        try:
            while True:
                rows = await connection.fetch(UNFINISHED)
                reports = [_report(row["id"], row["job_id"], row["claimed_at"], wire.OUTCOME_FAILED) for row in rows]
                # And of those that come next, before anybody has them.
                latest = max((row["id"] for row in rows), default=0)
                reports += (
                    [_report(latest + ahead, 1, 1, wire.OUTCOME_FAILED) for ahead in range(1, 20)] if rows else []
                )
                if reports:
                    await self.report(stream, reports * 10)
                await stream.say(beat=wire.Beat(sequence=1))
                await asyncio.sleep(0.1)
        finally:
            await connection.close()


class EndsWhatNeverWas(Liar):
    what, reasons = "report_decided", ("never were", "without an acknowledgement")

    async def lie(self, stream: Stream) -> None:
        for start in itertools.count(1 << 50, BATCH):
            await self.report(stream, [_report(start + n, 1, 1, wire.OUTCOME_COMPLETED) for n in range(BATCH)])
            await asyncio.sleep(0.01)


class FloodsBeats(Liar):
    what, reasons = "beat_flood", ("beats faster",)

    async def lie(self, stream: Stream) -> None:
        for sequence in itertools.count():
            self.said += 1
            await stream.say(beat=wire.Beat(sequence=sequence, renew=True, running=2**32 - 1))


class FloodsTexts(Liar):
    """As much text as a message holds, of what never was."""

    what, reasons = "report_decided", ()

    async def lie(self, stream: Stream) -> None:
        text = "x" * 65_536
        for start in itertools.count(1 << 51, 50):
            reports = [_report(start + n, 1, 1, wire.OUTCOME_FAILED) for n in range(50)]
            for each in reports:
                each.output = text
            await self.report(stream, reports)
            await asyncio.sleep(0.2)


class FloodsOutput(Liar):
    what, reasons = "output_unasked", ("nobody asked for",)

    async def lie(self, stream: Stream) -> None:
        for number in itertools.count():
            self.said += 1
            output = wire.Output(follow_id=number, data=b"x" * 1_000, state=wire.Output.STATE_RUNNING)
            await stream.say(output=output)


class SaysGarbage(Liar):
    """Messages of no kind, wrong ones, and bytes that are no message."""

    what, reasons = "runner_message", ("INVALID_ARGUMENT",)
    _turns = 0

    async def lie(self, stream: Stream) -> None:
        self._turns += 1
        self.said += 1
        match self._turns % 4:
            case 0:
                await stream.call.write(b"\xff\xff\xff")
            case 1:
                await stream.call.write(b"")
            case 2:
                await stream.say(hello=hello("again"))
            case _:
                await self.report(stream, [_report(1, 1, 1, wire.OUTCOME_UNSPECIFIED)])
        while await stream.hear() is not None:
            pass


ALL: Final = (FloodsBeats, EndsTwice, EndsWhatNeverWas, SaysGarbage, EndsOthers, FloodsOutput, FloodsTexts)


class NeverReads:
    """It claims to host a module, gives signs of life, is given runs, and reads nothing of its stream."""

    def __init__(self, address: str, module: str, verbs: dict[str, str]) -> None:
        self.address = address
        self.hello = hello("never-reads", module, verbs)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        async with grpc.aio.insecure_channel(self.address, options=_OPTIONS) as channel:
            stream = Stream(channel)
            await stream.say(hello=self.hello)
            beating = asyncio.create_task(_beat(stream))
            try:
                yield
            finally:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
                stream.call.cancel()


async def reconnect(address: str, count: int, at_once: int) -> Counter[str]:
    """So many runners come, introduce themselves, are welcomed or not, and go: each with an id of its own."""
    came: Counter[str] = Counter()
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
            for number in numbers:
                stream = Stream(channel)
                try:
                    async with asyncio.timeout(20):
                        await stream.say(hello=hello(f"passing-{time.time_ns()}-{number}"))
                        welcomed = await stream.hear() is not None
                except (*_STREAM_ERRORS, TimeoutError):
                    welcomed = False
                came["welcomed" if welcomed else "refused"] += 1
                stream.call.cancel()

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return came


def _report(execution_id: int, job_id: int, claimed_at_us: int, outcome: wire.Outcome.ValueType) -> wire.Report:
    return wire.Report(
        execution_id=execution_id, job_id=job_id, claimed_at_us=claimed_at_us, outcome=outcome,
        started_at_us=claimed_at_us, ended_at_us=claimed_at_us, error_message="a lie",
    )  # fmt: skip


async def _beat(stream: Stream) -> None:
    with contextlib.suppress(*_STREAM_ERRORS):
        for sequence in itertools.count(1):
            await stream.say(beat=wire.Beat(sequence=sequence, renew=True))
            await asyncio.sleep(0.5)
