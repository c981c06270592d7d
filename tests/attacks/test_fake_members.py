"""A stranger that reaches a controller's port says that it is a controller. It gets no slot, and no tick is late."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.trust.channels import channel_to
from tests.support.cluster import Cluster

FAKES = ("intruder-1", "intruder-2", "intruder-3")


@pytest.fixture
def small(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as cluster:
        for _ in range(2):
            cluster.start_controller()
        yield cluster


def _packet() -> gossip_pb2.Packet:
    updates = [
        gossip_pb2.Update(member_id=name, address=f"127.0.0.1:{port}", status=gossip_pb2.STATUS_ALIVE, incarnation=1)
        for port, name in enumerate(FAKES, 1)
    ]
    return gossip_pb2.Packet(
        sender_id=FAKES[0], sender_address="127.0.0.1:1", sync=gossip_pb2.Sync(table=updates), updates=updates
    )


async def test_a_packet_makes_no_owner(small: Cluster) -> None:
    for controller in small.controllers:
        async with channel_to(controller.grpc, answer_bytes=4096, tls=None) as channel:
            for _ in range(3):  # through several renewals of the lease
                await gossip_pb2_grpc.GossipStub(channel).Deliver(_packet(), timeout=60)
                shares = json.dumps(await asyncio.to_thread(small.cli, "cluster", "ring"))
                assert not any(name in shares for name in FAKES), shares
    # They are known by gossip: that is what makes the test one.
    members = json.dumps(await asyncio.to_thread(small.cli, "cluster", "members"))
    assert any(name in members for name in FAKES)
