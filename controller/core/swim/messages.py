"""What SWIM says, neutral of the wire (protos/gossip/v1/gossip.proto has the same shapes)."""

from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """What is believed of a member. Values are those of the wire."""

    ALIVE = 1
    SUSPECT = 2
    DEAD = 3
    LEFT = 4


class Update(NamedTuple):
    """One rumour: what somebody believes of one member."""

    member_id: str
    address: str
    status: Status
    incarnation: int
    draining: bool
    accuser_id: str = ""  # of SUSPECT and DEAD: who says so from its own probe (Lifeguard counts independent accusers)


class Ping(NamedTuple):
    sequence: int
    target_id: str


class Ack(NamedTuple):
    sequence: int


class Nack(NamedTuple):
    """Lifeguard: the helper lives, but had no answer from the target in time."""

    sequence: int


class PingRequest(NamedTuple):
    sequence: int
    target_id: str
    target_address: str


class Sync(NamedTuple):
    """The sender's whole table. A request is answered with the receiver's own."""

    request: bool
    table: tuple[Update, ...]


Message = Ping | Ack | Nack | PingRequest | Sync


class Packet(NamedTuple):
    """One way, one message, with rumours on its back."""

    sender_id: str
    sender_address: str
    updates: tuple[Update, ...]
    message: Message


class SendPacket(NamedTuple):
    """Fire and forget."""

    address: str
    packet: Packet
