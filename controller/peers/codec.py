"""Packets between the wire (protos/gossip/v1) and the core (controller/core/swim/messages.py)."""

from typing import Final, assert_never

from cronring.controller.core.swim.messages import Ack, Message, Nack, Packet, Ping, PingRequest, Status, Sync, Update
from cronring.protos.gossip.v1 import gossip_pb2 as wire
from cronring.schema.address import is_address

ID_LENGTH_MAX: Final = 200
UPDATES_MAX: Final = 1_000  # in one packet; ours carry 60 at most
TABLE_MAX: Final = 5_000


class MalformedPacketError(ValueError):
    """Not something that a controller of ours sends. The message names the field."""


def encode(packet: Packet) -> wire.Packet:
    encoded = wire.Packet(
        sender_id=packet.sender_id,
        sender_address=packet.sender_address,
        updates=[_encode_update(update) for update in packet.updates],
    )
    message = packet.message
    match message:
        case Ping():
            encoded.ping.CopyFrom(wire.Ping(sequence=message.sequence, target_id=message.target_id))
        case Ack():
            encoded.ack.CopyFrom(wire.Ack(sequence=message.sequence))
        case Nack():
            encoded.nack.CopyFrom(wire.Nack(sequence=message.sequence))
        case PingRequest():
            encoded.ping_request.CopyFrom(wire.PingRequest(**message._asdict()))
        case Sync():
            table = [_encode_update(update) for update in message.table]
            encoded.sync.CopyFrom(wire.Sync(request=message.request, table=table))
        case _:
            assert_never(message)
    return encoded


def decode(packet: wire.Packet) -> Packet:
    """Raises MalformedPacketError."""
    _check_id("sender_id", packet.sender_id)
    _check_address("sender_address", packet.sender_address)
    if len(packet.updates) > UPDATES_MAX or len(packet.sync.table) > TABLE_MAX:
        raise MalformedPacketError(f"more than {UPDATES_MAX} updates, or {TABLE_MAX} members in a table")
    updates = tuple(_decode_update(update) for update in packet.updates)
    return Packet(packet.sender_id, packet.sender_address, updates, _decode_message(packet))


def _decode_message(packet: wire.Packet) -> Message:
    match packet.WhichOneof("message"):
        case "ping":
            return Ping(packet.ping.sequence, packet.ping.target_id)
        case "ack":
            return Ack(packet.ack.sequence)
        case "nack":
            return Nack(packet.nack.sequence)
        case "ping_request":
            asked = packet.ping_request
            _check_id("ping_request.target_id", asked.target_id)
            _check_address("ping_request.target_address", asked.target_address)
            return PingRequest(asked.sequence, asked.target_id, asked.target_address)
        case "sync":
            return Sync(packet.sync.request, tuple(_decode_update(update) for update in packet.sync.table))
        case _:
            raise MalformedPacketError("message is missing, or of a kind this version doesn't know")


def _encode_update(update: Update) -> wire.Update:
    return wire.Update(
        member_id=update.member_id,
        address=update.address,
        status=wire.Status.ValueType(update.status),
        incarnation=update.incarnation,
        draining=update.draining,
        accuser_id=update.accuser_id,
    )


def _decode_update(update: wire.Update) -> Update:
    _check_id("update.member_id", update.member_id)
    _check_address("update.address", update.address)
    if update.accuser_id:
        _check_id("update.accuser_id", update.accuser_id)
    try:
        status = Status(update.status)
    except ValueError:
        raise MalformedPacketError(f"status {update.status} of {update.member_id!r} is unknown") from None
    return Update(update.member_id, update.address, status, update.incarnation, update.draining, update.accuser_id)


def _check_id(field: str, value: str) -> None:
    if not value or len(value) > ID_LENGTH_MAX or not value.isprintable():
        raise MalformedPacketError(f"{field} must have 1 to {ID_LENGTH_MAX} printable characters")


def _check_address(field: str, value: str) -> None:
    if not is_address(value):
        raise MalformedPacketError(f"{field} must be HOST:PORT, not {value[:100]!r}")
