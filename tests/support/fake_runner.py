"""A scripted runner: it says and hears one message at a time, so that a test decides what happens when."""

import asyncio
from types import TracebackType

import grpc

from protos.cronring.v1 import schema_pb2
from protos.runner.v1 import runner_pb2 as wire
from protos.runner.v1 import runner_pb2_grpc

HEAR_TIMEOUT_S = 10.0


def hello(runner_id: str = "r-1", digest: str = "a" * 64, schedule: str = "* * * * *") -> wire.Hello:
    """Of a runner that hosts `billing.close_month`."""
    module = schema_pb2.Module(name="billing", verbs=[schema_pb2.Verb(name="close_month", schedule=schedule)])
    hosted = wire.HostedModule(digest=digest, schema=module)
    return wire.Hello(runner_id=runner_id, hostname="host", pid=7, version="0.1", modules=[hosted])


class FakeRunner:
    """One stream to one controller, over `channel`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.stream: grpc.aio.StreamStreamCall[wire.RunnerMessage, wire.ControllerMessage] = (
            runner_pb2_grpc.RunnerGatewayStub(channel).Connect()  # type: ignore[call-arg]  # its stubs' fault
        )

    async def __aenter__(self) -> "FakeRunner":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.cancel()

    async def say(self, **message: object) -> None:
        """`say(beat=...)`: a message with that field of the oneof."""
        await self.stream.write(wire.RunnerMessage(**message))  # type: ignore[arg-type]  # checked by protobuf

    async def hear(self) -> wire.ControllerMessage:
        """The next message. Raises AssertionError when the controller ended the stream."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            message = await self.stream.read()
        assert isinstance(message, wire.ControllerMessage), "the stream ended"
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
