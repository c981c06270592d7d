"""Takes packets from peers. The reply only says that a packet was queued; answers are packets of their own."""

from collections.abc import Callable
from typing import Final

import grpc

from cronring.controller.core.node.events import PacketReceived
from cronring.controller.peers.codec import MalformedPacketError, decode
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import caller
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.schema.identity import Kind
from cronring.schema.spiffe import parse_uri

_DELIVERED: Final = gossip_pb2.Delivered()


class GossipService(gossip_pb2_grpc.GossipServicer):
    """`put` takes the events; `refused` counts what is not a packet."""

    def __init__(self, put: Callable[[PacketReceived], None], refused: OnRefusal) -> None:
        self._put = put
        self._refused = refused

    async def Deliver(
        self,
        request: gossip_pb2.Packet,
        context: "grpc.aio.ServicerContext[gossip_pb2.Packet, gossip_pb2.Delivered]",
    ) -> gossip_pb2.Delivered:
        """INVALID_ARGUMENT for what no controller of ours sends, PERMISSION_DENIED for a sender by another's name."""
        try:
            packet = decode(request)
        except MalformedPacketError as error:
            self._refused("packet")
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        who = caller()
        if who.kind is Kind.CONTROLLER and not parse_uri(who.name).fits(packet.sender_id):
            why = f"{who.name} is not the certificate of {packet.sender_id!r}"
            self._refused("forbidden", why=why)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
        self._put(PacketReceived(packet))
        return _DELIVERED
