"""Several controllers behind one face: a call goes to the one that answered last, on to the next when it is gone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

import grpc
from grpc.aio import AioRpcError, Channel, insecure_channel

from cronring.client.errors import ClientError, OutcomeUnknown, Unreachable
from cronring.client.failures import is_connection_failure, meaning, reason, was_never_sent

Response = TypeVar("Response")

_OPTIONS: Final = (
    # A controller that was restarted is found again within a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Controllers are inside; a proxy for the outside only loses them.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
)


class Failover:
    """Channels to every address; `unary` and `stream` fail over, with calls that are safe to repeat.

    `once` is for calls that are not: it goes on to the next only where the call was never sent.
    """

    def __init__(self, addresses: Sequence[str], timeout_s: float) -> None:
        if not addresses:
            raise ValueError("a client needs the address of at least one controller")
        self._addresses = list(dict.fromkeys(addresses))
        self._timeout_s = timeout_s
        self._channels: dict[str, Channel] = {}
        self._current = 0

    @property
    def current_address(self) -> str:
        return self._addresses[self._current]

    @property
    def timeout_s(self) -> float:
        return self._timeout_s

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close(None)
        self._channels.clear()

    def _channel(self, address: str) -> Channel:
        if address not in self._channels:
            self._channels[address] = insecure_channel(address, options=_OPTIONS)
        return self._channels[address]

    def _round(self) -> list[str]:
        """Every address once, the one that answered last first."""
        return self._addresses[self._current :] + self._addresses[: self._current]

    async def unary(self, call: Callable[[Channel], Awaitable[Response]]) -> Response:
        """The first answer. Raises Unreachable when none of the controllers answers, or what the answer means."""
        tried: list[tuple[str, str]] = []
        refusal: AioRpcError | None = None
        for address in self._round():
            try:
                answer = await call(self._channel(address))
            except AioRpcError as error:
                if is_connection_failure(error):
                    tried.append((address, reason(error, self._timeout_s)))
                elif error.code() is grpc.StatusCode.UNAVAILABLE:
                    refusal = error  # this one's PostgreSQL is away; another's may not be
                else:
                    raise meaning(error) from error
            else:
                self._current = self._addresses.index(address)
                return answer
        if refusal is not None:
            raise meaning(refusal) from refusal
        raise Unreachable(tried)

    async def each(
        self, addresses: Sequence[str], call: Callable[[Channel], Awaitable[Response]]
    ) -> list[tuple[str, Response | ClientError]]:
        """What every one of these addresses answers, all asked at once. Unreachable for those where nobody does."""

        async def one(address: str) -> tuple[str, Response | ClientError]:
            try:
                return address, await call(self._channel(address))
            except AioRpcError as error:
                if is_connection_failure(error):
                    return address, Unreachable([(address, reason(error, self._timeout_s))])
                return address, meaning(error)

        return list(await asyncio.gather(*map(one, addresses)))

    async def once(self, call: Callable[[Channel], Awaitable[Response]], look: str) -> Response:
        """As `unary`, for what must not be done twice.

        Raises OutcomeUnknown where it may have been done; `look` says where that can be seen.
        """
        tried: list[tuple[str, str]] = []
        for address in self._round():
            try:
                answer = await call(self._channel(address))
            except AioRpcError as error:
                if was_never_sent(error):
                    tried.append((address, reason(error, self._timeout_s)))
                elif is_connection_failure(error) or error.code() is grpc.StatusCode.UNAVAILABLE:
                    why = reason(error, self._timeout_s)
                    raise OutcomeUnknown(f"{address} may have done it, or not ({why}); see {look}") from error
                else:
                    raise meaning(error) from error
            else:
                self._current = self._addresses.index(address)
                return answer
        raise Unreachable(tried)

    async def finite(self, call: Callable[[Channel], AsyncIterable[Response]]) -> AsyncGenerator[Response | None, None]:
        """Messages of a stream that comes to an end; None marks that another controller begins it anew.

        Raises Unreachable when none of the controllers answers, or what the answer means.
        """
        tried: list[tuple[str, str]] = []
        for address in self._round():
            try:
                async for message in call(self._channel(address)):
                    yield message
            except AioRpcError as error:
                if not is_connection_failure(error):
                    raise meaning(error) from error
                tried.append((address, reason(error, self._timeout_s)))
                yield None
            else:
                self._current = self._addresses.index(address)
                return
        raise Unreachable(tried)

    async def stream(self, call: Callable[[Channel], AsyncIterable[Response]]) -> AsyncIterator[Response | None]:
        """Messages from one controller after the other; None marks a change to another, which begins anew.

        Raises Unreachable (or Unavailable) when a whole round of them gave nothing.
        """
        tried: list[tuple[str, str]] = []
        refusal: AioRpcError | None = None
        while len(tried) < len(self._addresses):
            address = self._round()[0]
            try:
                async for message in call(self._channel(address)):
                    tried, refusal = [], None
                    yield message
                why = "it ended the stream"
            except AioRpcError as error:
                if not is_connection_failure(error):
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise meaning(error) from error
                    refusal = error
                why = reason(error, self._timeout_s)
            tried.append((address, why))
            self._current = (self._addresses.index(address) + 1) % len(self._addresses)
            yield None
        if refusal is not None:
            raise meaning(refusal) from refusal
        raise Unreachable(tried)
