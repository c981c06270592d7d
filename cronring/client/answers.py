"""Answers within bounds: whoever is at an address may send anything, and the caller's memory is not theirs."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from grpc import ChannelConnectivity
from grpc.aio import Channel

from cronring.client.errors import ClientError
from cronring.protos.admission import RefusedMessage, admitted
from cronring.protos.idempotency import KEY_HEADER


class Unreadable(ClientError):
    """What came is no answer of a controller's."""


class BoundedChannel:
    """A channel as stubs use it, for the calls that there are: one request, and one answer or a stream of them.

    `metadata` goes with each of them: who asks.
    """

    def __init__(self, channel: Channel, address: str, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        self._channel = channel
        self._address = address
        self._metadata = metadata

    def keyed(self, key: str) -> "BoundedChannel":
        """The same, for one change with this idempotency key."""
        return BoundedChannel(self._channel, self._address, (*self._metadata, (KEY_HEADER.lower(), key)))

    def unary_unary(
        self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any
    ) -> Callable[..., Any]:
        call: Any = self._channel.unary_unary(path, request_serializer, None)

        async def answer(request: Any, **options: Any) -> Any:
            return self._read(response_deserializer, await call(request, metadata=self._metadata, **options))

        return answer

    def unary_stream(
        self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any
    ) -> Callable[..., Any]:
        call: Any = self._channel.unary_stream(path, request_serializer, None)

        async def answers(request: Any, **options: Any) -> AsyncIterator[Any]:
            stream = call(request, metadata=self._metadata, **options)
            try:
                async for raw in stream:
                    yield self._read(response_deserializer, raw)
            finally:
                stream.cancel()

        return answers

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        return self._channel.get_state(try_to_connect=try_to_connect)

    async def wait_for_state_change(self, last: ChannelConnectivity) -> None:
        await self._channel.wait_for_state_change(last)

    async def close(self) -> None:
        await self._channel.close(None)

    def _read(self, deserializer: Any, raw: bytes) -> Any:
        """Raises Unreadable."""
        try:
            return admitted(deserializer.__self__, raw)
        except RefusedMessage as error:
            raise Unreadable(f"{self._address} sent what is no answer of a controller's: {error}") from None
