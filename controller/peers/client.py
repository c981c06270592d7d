"""Sends packets to peers: fire and forget, one channel for each address, closed when it is not used any more."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc

from cronring.controller.core.node.effects import SendPacket
from cronring.controller.peers.codec import encode
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.protos.reach import refuses
from cronring.trust.channels import Tls, channel_to

if TYPE_CHECKING:
    from cronring.protos.gossip.v1.gossip_pb2_grpc import GossipAsyncStub  # exists for type checkers only

# Packets are answered when they are there, half a round trip later: peers 500 ms apart still hear each other.
DELIVERY_TIMEOUT_S: Final = 2.5
IN_FLIGHT_MAX: Final = 32  # for each peer; what comes on top is lost, as on a full network
LINKS_MAX: Final = 512  # beyond, the one that was used least recently is closed: packets may name any address
IDLE_S: Final = 60.0
# When deliveries have timed out for this long, the connection may be one that a partition left half dead: TCP alone
# might need minutes to notice that the network is back.
STALE_S: Final = 3.0
_ANSWER_BYTES: Final = 4096  # it says nothing
_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    # docs/decisions/0042: also the time that an attempt may take
    ("grpc.min_reconnect_backoff_ms", 2_500),  # what an attempt may take: one and a half round trips, a lost packet
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(slots=True)
class _Link:
    """A channel to one address."""

    channel: grpc.aio.Channel
    stub: "GossipAsyncStub"
    used_at: float
    tls: Tls | None
    in_flight: int = 0
    timing_out_since: float | None = None


class PeerClient:
    """`refused(address)` is told when nobody listens at an address: sooner than any timeout would say so.

    `tls()`: what channels are opened with now; another one after certificates have been replaced.
    """

    def __init__(self, refused: Callable[[str], None], tls: Callable[[], Tls | None]) -> None:
        self._refused = refused
        self._tls = tls
        self._links: dict[str, _Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def channels(self) -> int:
        return len(self._links)

    def send(self, effect: SendPacket) -> None:
        link = self._link(effect.address)
        link.used_at = _now()
        if link.in_flight >= IN_FLIGHT_MAX:
            return
        link.in_flight += 1
        task = asyncio.get_running_loop().create_task(self._deliver(effect.address, link, encode(effect.packet)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def sweep(self) -> None:
        """Close channels that nobody used for IDLE_S, for ever."""
        while True:
            await asyncio.sleep(IDLE_S / 4)
            for address, link in list(self._links.items()):
                if _now() - link.used_at > IDLE_S:
                    self._drop(address, link)

    async def flush(self, timeout_s: float) -> None:
        """Wait until what was sent is delivered, or given up."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=timeout_s)

    async def close(self) -> None:
        for address, link in list(self._links.items()):
            self._drop(address, link)
        tasks = [*self._tasks, *self._closing]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _link(self, address: str) -> _Link:
        tls, link = self._tls(), self._links.get(address)
        # A channel shows for ever what it was opened with.
        if link is not None and link.tls is not tls:
            self._drop(address, link, DELIVERY_TIMEOUT_S)
            link = None
        if link is None:
            if len(self._links) >= LINKS_MAX:
                oldest = next(iter(self._links))
                self._drop(oldest, self._links[oldest])
            channel = channel_to(address, *_OPTIONS, answer_bytes=_ANSWER_BYTES, tls=tls)
            link = _Link(channel, gossip_pb2_grpc.GossipStub(channel), _now(), tls)
        self._links.pop(address, None)
        self._links[address] = link  # in the order of use
        return link

    def _drop(self, address: str, link: _Link, grace_s: float | None = None) -> None:
        """What is under way there has `grace_s` to get through."""
        if self._links.get(address) is not link:
            return
        del self._links[address]
        task = asyncio.get_running_loop().create_task(link.channel.close(grace_s))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _deliver(self, address: str, link: _Link, packet: gossip_pb2.Packet) -> None:
        try:
            await link.stub.Deliver(packet, timeout=DELIVERY_TIMEOUT_S)
            link.timing_out_since = None
        except grpc.aio.AioRpcError as error:
            await self._failed(address, link, error)
        finally:
            link.in_flight -= 1

    async def _failed(self, address: str, link: _Link, error: grpc.aio.AioRpcError) -> None:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            link.timing_out_since = None  # gRPC knows that the connection is gone, and makes a new one
            if await refuses(address):
                self._refused(address)
        elif error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            if link.timing_out_since is None:
                link.timing_out_since = _now()
            elif _now() - link.timing_out_since > STALE_S:
                self._drop(address, link)


def _now() -> float:
    return asyncio.get_running_loop().time()
