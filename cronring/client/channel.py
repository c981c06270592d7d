"""Several controllers behind one face: a call goes to the one that answered last, on to the next when it is gone."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar, cast

from grpc import ChannelConnectivity
from grpc.aio import AioRpcError, Channel

from cronring.client.answers import BoundedChannel, Unreadable
from cronring.client.errors import ClientError, OutcomeUnknown, Unavailable, Unreachable
from cronring.client.failures import UNSENT, Failed, Kind, judged, meaning
from cronring.protos.admission import ANSWER_BYTES_MAX
from cronring.protos.problems import Fate
from cronring.protos.reach import Port, probe
from cronring.schema.address import is_address
from cronring.schema.duration import measured
from cronring.trust.channels import Tls, channel_to
from cronring.trust.handshakes import why_no_tls

Response = TypeVar("Response")

BUSY_MAX_S: Final = 60.0  # controllers that send this caller away for now are asked again for as long
BUSY_PAUSE_MAX_S: Final = 2.0
BUSY_TOLD_S: Final = 2.0  # after which somebody who waits is told why
AT_ONCE_MAX: Final = 32  # calls of one client: more would wait on their way, while their time runs
_OPTIONS: Final = (
    # A controller that was restarted is found again within a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class Failover:
    """Channels to every address; calls go to the one that answered last, and on to the next where that can't hurt.

    `unary`, `finite` and `stream` are for what only reads. `change` is for what changes something: it says so where
    that may have been done, and is sent again only if it is `repeatable`, or was surely not done.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        timeout_s: float,
        tls: Tls | None,
        token: str = "",
        waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not addresses:
            raise ValueError("a client needs the address of at least one controller")
        self._addresses = list(dict.fromkeys(addresses))
        self._timeout_s = timeout_s
        self._tls = tls
        self._metadata = _credentials(token)
        self._waiting = waiting
        self._channels: dict[str, BoundedChannel] = {}
        self._current = 0
        self._places = asyncio.Semaphore(AT_ONCE_MAX)

    @property
    def current_address(self) -> str:
        return self._addresses[self._current]

    @property
    def timeout_s(self) -> float:
        return self._timeout_s

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    def _channel(self, address: str) -> Channel:
        if not is_address(address):
            raise ClientError(f"{address[:100]!r} is no HOST:PORT, so nothing is asked there")
        if address not in self._channels:
            channel = channel_to(address, *_OPTIONS, answer_bytes=ANSWER_BYTES_MAX, tls=self._tls)
            self._channels[address] = BoundedChannel(channel, address, self._metadata)
        bounded: Any = self._channels[address]  # its stubs know it as a Channel
        return cast("Channel", bounded)

    def _round(self) -> list[str]:
        """Every address once, the one that answered last first."""
        return self._addresses[self._current :] + self._addresses[: self._current]

    async def unary(self, call: Callable[[Channel], Awaitable[Response]]) -> Response:
        """The first answer. Raises Unreachable when none of the controllers answers, or what the answer means."""
        return await self._asked(call, lambda _: True)

    async def change(
        self, call: Callable[[Channel], Awaitable[Response]], look: str, *, repeatable: bool = False
    ) -> Response:
        """The first answer. Raises OutcomeUnknown where it may have been done; `look` says where that can be seen.

        `repeatable`: done twice it comes to the same, so what may have been done is asked of the next controller, too.
        """
        maybe: list[tuple[str, Failed]] = []

        def goes_on(address: str, failed: Failed) -> bool:
            if failed.fate is not Fate.NOT_DONE:
                maybe.append((address, failed))
            return repeatable or not maybe

        try:
            return await self._asked(call, lambda tried: goes_on(*tried), changing=True)
        except Unreadable as error:
            raise OutcomeUnknown(str(error), look) from error
        except (ClientError, _Stopped) as error:  # a refusal, too, may come of what was done before
            if not maybe:
                raise
            raise await self._unknown(*maybe[0], look) from error

    async def _asked(
        self,
        call: Callable[[Channel], Awaitable[Response]],
        goes_on: Callable[[tuple[str, Failed]], bool],
        *,
        changing: bool = False,
    ) -> Response:
        patience = _Patience(self._waiting)
        while True:
            tried: list[tuple[str, Failed]] = []
            for address in self._round():
                answer = await self._tried(address, call, changing=changing)
                if not isinstance(answer, Failed):
                    self._current = self._addresses.index(address)
                    return answer
                tried.append((address, answer))
                if not goes_on(tried[-1]):
                    raise _Stopped
                if answer.kind is Kind.REFUSED and answer.error is not None:
                    raise meaning(answer.error) from answer.error
            if not await patience.again(tried):
                raise await self._none_of(tried)

    async def _tried(
        self, address: str, call: Callable[[Channel], Awaitable[Response]], *, changing: bool
    ) -> Response | Failed:
        async with self._places:
            if changing and not await self._connected(address):
                return UNSENT
            try:
                return await call(self._channel(address))
            except AioRpcError as error:
                return judged(error)

    async def _connected(self, address: str) -> bool:
        """Whether there is a connection, after one try to make it: without one nothing can have been sent."""
        channel = self._channel(address)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout_s):
                while (state := channel.get_state(try_to_connect=True)) is not ChannelConnectivity.READY:
                    if state in {ChannelConnectivity.TRANSIENT_FAILURE, ChannelConnectivity.SHUTDOWN}:
                        return False
                    await channel.wait_for_state_change(state)
                return True
        return False

    async def _none_of(self, tried: Sequence[tuple[str, Failed]]) -> ClientError:
        """What it means that none of them did it: what a controller said, if one did."""
        for kind in (Kind.AWAY, Kind.BUSY):
            for _, failed in tried:
                if failed.kind is kind and failed.error is not None:
                    return meaning(failed.error) if kind is Kind.AWAY else Unavailable(failed.words)
        return Unreachable([(address, await self._why(address, failed)) for address, failed in tried])

    async def _why(self, address: str, failed: Failed) -> str:
        """For people: the operating system knows better than gRPC's words why there is no connection."""
        if failed.has_timed_out:
            return f"no answer within {measured(self._timeout_s * 1_000)}"
        found = await probe(address)
        if found.port is Port.OPEN and (trouble := await why_no_tls(address, self._tls)):
            return trouble
        broke = found.port is Port.OPEN and failed.kind is Kind.LOST
        return f"the connection broke ({failed.words})" if broke else found.words

    async def _unknown(self, address: str, failed: Failed, look: str) -> OutcomeUnknown:
        why = failed.words if failed.kind is not Kind.LOST else await self._why(address, failed)
        return OutcomeUnknown(f"{address}: {why}", look, done=failed.fate is Fate.DONE)

    async def each(
        self, addresses: Sequence[str], call: Callable[[Channel], Awaitable[Response]]
    ) -> list[tuple[str, Response | ClientError]]:
        """What every one of these addresses answers, all asked at once. Unreachable for those where nobody does."""

        async def one(address: str) -> tuple[str, Response | ClientError]:
            try:
                answer = await self._tried(address, call, changing=False)
            except ClientError as error:
                return address, error
            if not isinstance(answer, Failed):
                return address, answer
            if answer.kind is Kind.REFUSED and answer.error is not None:
                return address, meaning(answer.error)
            return address, await self._none_of([(address, answer)])

        return list(await asyncio.gather(*map(one, addresses)))

    async def finite(
        self, call: Callable[[Channel], AsyncIterable[Response]], look: str = ""
    ) -> AsyncGenerator[Response | None, None]:
        """Messages of a stream that comes to an end; None marks that another controller begins it anew.

        With a `look` it changes what must not be changed twice: it is begun anew only where it was never sent, else
        OutcomeUnknown is raised. Raises Unreachable when none of the controllers answers, or what the answer means.
        """
        patience = _Patience(self._waiting)
        while True:
            tried: list[tuple[str, Failed]] = []
            for address in self._round():
                if look and not await self._connected(address):
                    tried.append((address, UNSENT))
                    continue
                try:
                    async for message in call(self._channel(address)):
                        yield message
                except AioRpcError as error:
                    failed = await self._begun_anew(address, error, look)
                    tried.append((address, failed))
                    if failed.kind is Kind.LOST:
                        yield None
                else:
                    self._current = self._addresses.index(address)
                    return
            if not await patience.again(tried):
                raise await self._none_of(tried)

    async def _begun_anew(self, address: str, error: AioRpcError, look: str) -> Failed:
        """Why another controller may begin the stream. Raises OutcomeUnknown, or what the answer means, if none may."""
        failed = judged(error)
        if look and failed.fate is not Fate.NOT_DONE:
            raise await self._unknown(address, failed, look) from error
        if failed.kind not in {Kind.LOST, Kind.BUSY}:
            raise meaning(error) from error
        return failed

    async def stream(self, call: Callable[[Channel], AsyncIterable[Response]]) -> AsyncIterator[Response | None]:
        """Messages from one controller after the other; None marks a change to another, which begins anew.

        Raises Unreachable (or Unavailable) when a whole round of them gave nothing.
        """
        tried: list[tuple[str, Failed]] = []
        patience = _Patience(self._waiting)
        while len(tried) < len(self._addresses) or await patience.again(tried):
            if len(tried) == len(self._addresses):
                tried = []
            address = self._round()[0]
            failed = Failed(Kind.LOST, Fate.NOT_DONE)  # it ended the stream
            try:
                async for message in call(self._channel(address)):
                    tried, patience = [], _Patience(self._waiting)
                    yield message
            except AioRpcError as error:
                failed = judged(error)
                if failed.kind is Kind.REFUSED:
                    raise meaning(error) from error
            tried.append((address, failed))
            self._current = (self._addresses.index(address) + 1) % len(self._addresses)
            yield None
        raise await self._none_of(tried)


class _Patience:
    """Whoever was sent away for now comes again, for BUSY_MAX_S; `told` hears why, if that takes a while."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told: Callable[[str], None] | None = told
        self._pause_s = self._waited_s = 0.0

    async def again(self, tried: Sequence[tuple[str, Failed]]) -> bool:
        """After a pause, if one of those who were tried asks for it; False: there is no sense in it, or no time."""
        busy = [failed for _, failed in tried if failed.kind is Kind.BUSY]
        if not busy or self._waited_s >= BUSY_MAX_S:
            return False
        if self._told is not None and self._waited_s >= BUSY_TOLD_S:
            self._told(busy[0].words)
            self._told = None
        self._pause_s = min(max(2 * self._pause_s, *(failed.retry_s for failed in busy)), BUSY_PAUSE_MAX_S)
        pause_s = self._pause_s * _spread()
        self._waited_s += pause_s
        await asyncio.sleep(pause_s)
        return True


def _credentials(token: str) -> tuple[tuple[str, str], ...]:
    """What calls carry. Raises ValueError for what no header can have; no token is in its words."""
    if not all("!" <= letter <= "~" for letter in token):
        raise ValueError("the token has spaces, line breaks or letters in it that no token has")
    return (("authorization", f"Bearer {token}"),) if token else ()


def _spread() -> float:
    """Those who were sent away at once don't come back at once."""
    return 0.5 + random.random()  # noqa: S311 - nobody's secret # nosec B311


class _Stopped(Exception):
    """It may have been done, and must not be done again."""
