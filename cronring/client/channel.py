"""Several controllers behind one face: a call goes to the one that answered last, on to the next when it is gone."""

import asyncio
import contextlib
import copy
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, Self, TypeVar, cast

from grpc import ChannelConnectivity
from grpc.aio import AioRpcError, Channel

from cronring.client.answers import BoundedChannel, Unreadable
from cronring.client.changes import Change, Keyless, Stopped
from cronring.client.errors import ClientError, Invalid, OutcomeUnknown, Unavailable, Unreachable
from cronring.client.failures import UNSENT, Failed, Kind, judged, meaning
from cronring.client.forks import CHANNELS
from cronring.client.patience import Patience, unheard
from cronring.protos.admission import ANSWER_BYTES_MAX
from cronring.protos.idempotency import KEY_HEADER, is_key
from cronring.protos.problems import Fate
from cronring.protos.reach import Port, probe
from cronring.schema.address import is_address
from cronring.schema.duration import measured
from cronring.trust.channels import Tls, channel_to
from cronring.trust.handshakes import why_no_tls

Response = TypeVar("Response")

KEY_BYTES: Final = 18
AT_ONCE_MAX: Final = 32  # calls of one client: more would wait on their way, while their time runs
_OPTIONS: Final = (
    # A controller that was restarted is found again within a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class _Preferred:
    """Which address is asked first: an index. All that share channels share it, and learn from each other."""

    at = 0


class Failover:
    """Channels to every address; calls go to the one that answered last, and on to the next where that can't hurt.

    `unary`, `finite` and `stream` are for what only reads. `change` is for what changes something, once.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        timeout_s: float,
        tls: Tls | None,
        token: str = "",
        waiting: Callable[[str], None] = unheard,
    ) -> None:
        if not addresses:
            raise ValueError("a client needs the address of at least one controller")
        self._addresses = list(dict.fromkeys(addresses))
        self._timeout_s = timeout_s
        self._tls = tls
        self._metadata = _credentials(token)
        self._waiting = waiting
        self._channels: dict[str, BoundedChannel] = {}
        self._preferred = _Preferred()
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._key = ""

    def with_key(self, key: str) -> Self:
        """The same, over the same channels; changes have this idempotency key. Raises Invalid for what is none."""
        other = copy.copy(self)
        other._key = checked(key)  # noqa: SLF001 - of the same class
        return other

    def takes_no_key(self, call: str, instead: str) -> None:
        """Raises Invalid where there is one."""
        if self._key:
            raise keyless(call, instead)

    @property
    def current_address(self) -> str:
        return self._addresses[self._preferred.at]

    @property
    def timeout_s(self) -> float:
        return self._timeout_s

    async def close(self) -> None:
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            await channel.close()
        CHANNELS.closed(len(channels))

    def _channel(self, address: str, key: str = "") -> Channel:
        if not is_address(address):
            raise ClientError(f"{address[:100]!r} is no HOST:PORT, so nothing is asked there")
        if address not in self._channels:
            CHANNELS.opened()
            channel = channel_to(address, *_OPTIONS, answer_bytes=ANSWER_BYTES_MAX, tls=self._tls)
            self._channels[address] = BoundedChannel(channel, address, self._metadata)
        known = self._channels[address]
        bounded: Any = known.keyed(key) if key else known  # its stubs know it as a Channel
        return cast("Channel", bounded)

    def _round(self) -> list[str]:
        """Every address once, the one that answered last first."""
        return self._addresses[self._preferred.at :] + self._addresses[: self._preferred.at]

    async def unary(self, call: Callable[[Channel], Awaitable[Response]]) -> Response:
        """The first answer. Raises Unreachable when none of the controllers answers, or what the answer means."""
        return await self._asked(call)

    async def change(
        self,
        call: Callable[[Channel], Awaitable[Response]],
        look: str,
        *,
        repeatable: bool = False,
        secret: bool = False,
    ) -> Response:
        """The first answer. Raises OutcomeUnknown where it may have been done; `look` says where that can be seen.

        It has a key, by which it is done once, whoever is asked again. `repeatable`: it needs none, as done twice it
        comes to the same. `secret`: it can have none, as its answer is kept nowhere; it is never sent again. A key of
        the caller's own goes with it in any case: whether it counts, controllers say.
        """
        own = "" if repeatable or secret else secrets.token_urlsafe(KEY_BYTES)
        change = Change(self._key or own, repeatable=repeatable and not self._key, needs_key=bool(self._key))
        try:
            return await self._asked(call, change)
        except Keyless:
            return await self.change(call, look, secret=True)
        except Unreadable as error:
            raise OutcomeUnknown(str(error), look) from error
        except (ClientError, Stopped) as error:
            if change.maybe is None:
                raise
            raise await self._unknown(*change.maybe, look) from error

    async def _asked(self, call: Callable[[Channel], Awaitable[Response]], change: Change | None = None) -> Response:
        """Raises Unreachable, or what the answer means; Stopped, Keyless."""
        patience = Patience(self._waiting)
        while True:
            tried: list[tuple[str, Failed]] = []
            for address in self._round():
                answer = await self._tried(address, call, change)
                if not isinstance(answer, Failed):
                    self._preferred.at = self._addresses.index(address)
                    return answer
                tried.append((address, answer))
                if change is not None:
                    change.failed(address, answer)
                if answer.kind is Kind.REFUSED and answer.error is not None:
                    raise meaning(answer.error) from answer.error
            if not await patience.again(tried, lost=change is not None and change.is_asked_again):
                raise await self._none_of(tried)

    async def _tried(
        self, address: str, call: Callable[[Channel], Awaitable[Response]], change: Change | None
    ) -> Response | Failed:
        async with self._places:
            if change is not None and not await self._connected(address):
                return UNSENT
            try:
                return await call(self._channel(address, change.key if change is not None else ""))
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
                answer = await self._tried(address, call, None)
            except ClientError as error:
                return address, error
            if not isinstance(answer, Failed):
                return address, answer
            if answer.kind is Kind.REFUSED and answer.error is not None:
                return address, meaning(answer.error)
            return address, await self._none_of([(address, answer)])

        return list(await asyncio.gather(*map(one, addresses)))

    async def finite(
        self, call: Callable[[Channel], AsyncIterable[Response]], look: str = "", *, keyed: bool = False
    ) -> AsyncGenerator[Response | None, None]:
        """Messages of a stream that comes to an end; None marks that another controller begins it anew.

        With a `look` it changes what must not be changed twice: it is begun anew only where it was never sent, else
        OutcomeUnknown is raised. `keyed`: a key of the caller's own goes with it. Raises Unreachable when none of the
        controllers answers, or what the answer means.
        """
        patience = Patience(self._waiting)
        while True:
            tried: list[tuple[str, Failed]] = []
            for address in self._round():
                if look and not await self._connected(address):
                    tried.append((address, UNSENT))
                    continue
                try:
                    async for message in call(self._channel(address, self._key if keyed else "")):
                        yield message
                except AioRpcError as error:
                    failed = await self._begun_anew(address, error, look)
                    tried.append((address, failed))
                    if failed.kind is Kind.LOST:
                        yield None
                else:
                    self._preferred.at = self._addresses.index(address)
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
        patience = Patience(self._waiting)
        while len(tried) < len(self._addresses) or await patience.again(tried):
            if len(tried) == len(self._addresses):
                tried = []
            address = self._round()[0]
            failed = Failed(Kind.LOST, Fate.NOT_DONE)  # it ended the stream
            try:
                async for message in call(self._channel(address)):
                    tried, patience = [], Patience(self._waiting)
                    yield message
            except AioRpcError as error:
                failed = judged(error)
                if failed.kind is Kind.REFUSED:
                    raise meaning(error) from error
            tried.append((address, failed))
            self._preferred.at = (self._addresses.index(address) + 1) % len(self._addresses)
            yield None
        raise await self._none_of(tried)


def keyless(call: str, instead: str) -> Invalid:
    """What it means that somebody gives it a key."""
    return Invalid(f"{call} takes no {KEY_HEADER}: it makes many changes; {instead}")


def checked(key: str) -> str:
    """Raises Invalid for what is no idempotency key."""
    if not is_key(key):
        why = "must have 1 to 255 visible characters of ASCII"
        raise Invalid(f"{key[:100]!r} is no {KEY_HEADER}", [(KEY_HEADER, why)])
    return key


def _credentials(token: str) -> tuple[tuple[str, str], ...]:
    """What calls carry. Raises ValueError for what no header can have; no token is in its words."""
    if not all("!" <= letter <= "~" for letter in token):
        raise ValueError("the token has spaces, line breaks or letters in it that no token has")
    return (("authorization", f"Bearer {token}"),) if token else ()
