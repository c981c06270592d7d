"""Takes packets from peers. The reply only says that a packet was queued; answers are packets of their own."""

from collections.abc import Callable
from typing import Final

import grpc

from cronring.controller.core.node.events import PacketReceived
from cronring.controller.peers.codec import MalformedPacketError, decode
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc

_DELIVERED: Final = gossip_pb2.Delivered()


class GossipService(gossip_pb2_grpc.GossipServicer):
    """`put` takes the events; `refused` counts what is not a packet."""

    def __init__(self, put: Callable[[PacketReceived], None], refused: Callable[[str], None]) -> None:
        self._put = put
        self._refused = refused

    async def Deliver(
        self,
        request: gossip_pb2.Packet,
        context: "grpc.aio.ServicerContext[gossip_pb2.Packet, gossip_pb2.Delivered]",
    ) -> gossip_pb2.Delivered:
        """INVALID_ARGUMENT for what no controller of ours sends."""
        try:
            packet = decode(request)
        except MalformedPacketError as error:
            self._refused("packet")
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        self._put(PacketReceived(packet))
        return _DELIVERED
