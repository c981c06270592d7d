"""A process on an operator's host, which asks controllers what they believe: python -m tests.support.asker

Each line of stdin names the addresses to ask; each answer is a line of JSON on stdout, a list in that order: null where
there was no answer. `members` is null where the controller can't ask PostgreSQL. It ends with stdin.
"""

import asyncio
import json
import os
import sys
from typing import Any

import grpc

from cronring.protos.cronring.v1 import cluster_pb2, cluster_pb2_grpc
from cronring.trust.channels import channel_to
from cronring.trust.dialing import client_tls

TIMEOUT_S = 1.0
OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
)


TLS = client_tls(())
WHO = (("authorization", f"Bearer {os.environ['CRONRING_TOKEN']}"),)


async def ask(address: str) -> Any:
    """On a connection of its own, so that what a fault has left of the last one tells nothing."""
    async with channel_to(address, *OPTIONS, answer_bytes=1 << 24, tls=TLS) as channel:
        stub = cluster_pb2_grpc.ClusterStub(channel)
        try:
            ring, view = await asyncio.gather(
                stub.GetRing(cluster_pb2.GetRingRequest(), timeout=TIMEOUT_S, metadata=WHO), members(stub)
            )
        except grpc.aio.AioRpcError:
            return None
        return {"ring_digest": ring.digest, "ring_members": list(ring.members)} | view


async def members(stub: Any) -> dict[str, Any]:
    try:
        view = await stub.GetCluster(cluster_pb2.GetClusterRequest(), timeout=TIMEOUT_S, metadata=WHO)
    except grpc.aio.AioRpcError:
        return {"controller_id": "", "members": None}
    return {"controller_id": view.answered_by, "members": {member.id: member.status for member in view.members}}


async def main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        answers = await asyncio.gather(*(ask(address) for address in line.split()))
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
