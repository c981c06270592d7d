import contextlib

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.swim.messages import Ack, Nack, Packet, Ping, PingRequest, Status, Sync, Update
from cronring.controller.peers.codec import MalformedPacketError, decode, encode
from cronring.protos.gossip.v1 import gossip_pb2 as wire

names = st.text(min_size=1, max_size=20).filter(str.isprintable)
addresses = st.builds("{}:{}".format, st.sampled_from(["10.0.0.1", "host-7.example", "[::1]"]), st.integers(1, 65_535))
sequences = st.integers(0, 2**64 - 1)
updates = st.builds(Update, names, addresses, st.sampled_from(Status), sequences, st.booleans(), names | st.just(""))
tables = st.lists(updates, max_size=4).map(tuple)
messages = st.one_of(
    st.builds(Ping, sequences, names),
    st.builds(Ack, sequences),
    st.builds(Nack, sequences),
    st.builds(PingRequest, sequences, names, addresses),
    st.builds(Sync, st.booleans(), tables),
)


@given(st.builds(Packet, names, addresses, tables, messages))
def test_a_packet_survives_the_wire(packet: Packet) -> None:
    assert decode(wire.Packet.FromString(encode(packet).SerializeToString())) == packet


UPDATE = wire.Update(member_id="a", address="a:1", status=wire.STATUS_ALIVE)


@pytest.mark.parametrize(
    ("packet", "says"),
    [
        (wire.Packet(), "sender_id"),
        (wire.Packet(sender_id="a", sender_address="a:1"), "message is missing"),
        (wire.Packet(sender_id="a", ack=wire.Ack()), "sender_address"),
        (wire.Packet(sender_id="a", sender_address="a:1", ack=wire.Ack(), updates=[wire.Update()]), "member_id"),
        (
            wire.Packet(
                sender_id="a", sender_address="a:1", ack=wire.Ack(), updates=[wire.Update(member_id="b", address="b:1")]
            ),
            "status 0",
        ),
        (wire.Packet(sender_id="a", sender_address="a:1", ping_request=wire.PingRequest(sequence=1)), "target_id"),
        (wire.Packet(sender_id="a\n", sender_address="a:1", ack=wire.Ack()), "printable"),
        (wire.Packet(sender_id="a" * 201, sender_address="a:1", ack=wire.Ack()), "200"),
        (wire.Packet(sender_id="a", sender_address="unix:/run/x", ack=wire.Ack()), "HOST:PORT"),
        (wire.Packet(sender_id="a", sender_address="a:65536", ack=wire.Ack()), "HOST:PORT"),
        (wire.Packet(sender_id="a", sender_address="a:1", ack=wire.Ack(), updates=[UPDATE] * 1_001), "updates"),
        (wire.Packet(sender_id="a", sender_address="a:1", sync=wire.Sync(table=[UPDATE] * 5_001)), "table"),
    ],
)
def test_what_no_controller_sends_is_refused(packet: wire.Packet, says: str) -> None:
    with pytest.raises(MalformedPacketError, match=says):
        decode(packet)


@given(st.binary(max_size=200))
def test_garbage_never_breaks_anything_else(data: bytes) -> None:
    try:
        packet = wire.Packet.FromString(data)
    except DecodeError:
        return  # gRPC's own business
    with contextlib.suppress(MalformedPacketError):
        decode(packet)
