"""A scripted runner: it says and hears one message at a time, so that a test decides what happens when."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable
from types import TracebackType

import grpc

from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc

HEAR_TIMEOUT_S = 60.0  # a Hello of 5,000 verbs took more than 10 on a busy machine


def hello(runner_id: str = "r-1", digest: str = "a" * 64, schedule: str = "* * * * *") -> wire.Hello:
    """Of a runner that hosts `billing.close_month`."""
    module = schema_pb2.Module(name="billing", verbs=[schema_pb2.Verb(name="close_month", schedule=schedule)])
    hosted = wire.HostedModule(digest=digest, schema=module)
    return wire.Hello(runner_id=runner_id, hostname="host", pid=7, version="0.1", modules=[hosted])


def a_place_for_each(demands: Iterable[wire.LaneDemand]) -> wire.Grants:
    """Of a runner that takes whatever comes."""
    return wire.Grants(
        grants=[
            wire.Grant(deployment=demand.deployment, lane=demand.lane, epoch=1, granted=demand.seen + demand.wanted)
            for demand in demands
        ]
    )


class FakeRunner:
    """One stream to one controller, over `channel`. With `beats`, it gives a sign of life each half second.

    With `places`, it takes whatever comes.
    """

    def __init__(self, channel: grpc.aio.Channel, *, beats: bool = False, places: bool = False) -> None:
        self.stream: grpc.aio.StreamStreamCall[wire.RunnerMessage, wire.ControllerMessage] = (
            runner_pb2_grpc.RunnerGatewayStub(channel).Connect()  # type: ignore[call-arg]  # its stubs' fault
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: asyncio.Queue[wire.ControllerMessage | None] = asyncio.Queue()
        self._beats = beats
        self._places = places
        self._writing = asyncio.Lock()

    async def __aenter__(self) -> "FakeRunner":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self.stream.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def listen(self) -> None:
        """From now on everything is read, as cancelling a single read would cancel the whole stream."""
        self._tasks.append(asyncio.create_task(self._read()))

    async def introduce(self, message: wire.Hello) -> wire.Welcome:
        """Listen, say Hello, and be welcomed."""
        self.listen()
        await self.say(hello=message)
        welcome = (await self.hear_of("welcome")).welcome
        if self._beats:
            self._tasks.append(asyncio.create_task(self._beat()))
        return welcome

    async def say(self, **message: object) -> None:
        """`say(beat=...)`: a message with that field of the oneof."""
        async with self._writing:  # gRPC takes one write at a time
            await self.stream.write(wire.RunnerMessage(**message))  # type: ignore[arg-type]  # checked by protobuf

    async def hear(self) -> wire.ControllerMessage:
        """The next message. Raises AssertionError when the controller ended the stream."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            message = await self._heard.get()
        assert message is not None, "the stream ended"
        return message

    async def hear_of(self, kind: str) -> wire.ControllerMessage:
        """The next message of a kind; others are passed over."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            while (message := await self.hear()).WhichOneof("message") != kind:
                pass
        return message

    async def ended(self) -> tuple[grpc.StatusCode, str]:
        """How the controller ended the stream."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            return await self.stream.code(), await self.stream.details()

    async def _read(self) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):  # ended() tells
            while isinstance(message := await self.stream.read(), wire.ControllerMessage):
                if self._places and message.HasField("demands"):
                    await self.say(grants=a_place_for_each(message.demands.demands))
                self._heard.put_nowait(message)
        self._heard.put_nowait(None)

    async def _beat(self) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the stream ended
            for sequence in itertools.count(1_000):
                await self.say(beat=wire.Beat(sequence=sequence, renew=True))
                await asyncio.sleep(0.5)
