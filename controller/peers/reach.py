"""Whether other controllers answer a call from here: beliefs of gossip come by detours, this doesn't."""

import asyncio
from collections.abc import Iterable
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cronring.protos.reach import Port, probe
from cronring.schema.address import is_address
from cronring.trust.channels import Tls, channel_to

REACH_TIMEOUT_S: Final = 1.0
_ANSWER_BYTES: Final = 4096
NO_ANSWER: Final = "no answer"
# Classes of failure, and no words of others: who asks may have named these addresses, by gossip, to learn about them.
_CLASSES: Final = {Port.REFUSED: "nothing listens there", Port.OPEN: "what listens there is no controller"}
_OF_ITS_OWN: Final = ("grpc.use_local_subchannel_pool", 1)


async def unreachable(addresses: Iterable[str], tls: Tls | None) -> dict[str, str]:
    """Of these, those that do not answer within REACH_TIMEOUT_S, and why. Each over a connection of its own."""
    asked = list(dict.fromkeys(addresses))
    reasons = await asyncio.gather(*(_why_not(address, tls) for address in asked))
    return {address: reason for address, reason in zip(asked, reasons, strict=True) if reason}


async def _why_not(address: str, tls: Tls | None) -> str:
    """Empty: it answers, whatever it says of its health."""
    if not is_address(address):
        return "its address is no HOST:PORT"
    async with channel_to(address, _OF_ITS_OWN, answer_bytes=_ANSWER_BYTES, tls=tls) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            await stub.Check(health_pb2.HealthCheckRequest(), timeout=REACH_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            timed_out = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            port = Port.SILENT if timed_out else (await probe(address)).port
            return _CLASSES.get(port, NO_ANSWER)
    return ""
