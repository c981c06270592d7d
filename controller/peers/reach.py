"""Whether other controllers answer a call from here: beliefs of gossip come by detours, this doesn't."""

import asyncio
from collections.abc import Iterable
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

REACH_TIMEOUT_S: Final = 1.0
_OPTIONS: Final = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))


async def unreachable(addresses: Iterable[str]) -> dict[str, str]:
    """Of these, those that do not answer within REACH_TIMEOUT_S, and why. Each over a connection of its own."""
    asked = list(dict.fromkeys(addresses))
    reasons = await asyncio.gather(*map(_why_not, asked))
    return {address: reason for address, reason in zip(asked, reasons, strict=True) if reason}


async def _why_not(address: str) -> str:
    """Empty: it answers, whatever it says of its health."""
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            await stub.Check(health_pb2.HealthCheckRequest(), timeout=REACH_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return f"no answer within {REACH_TIMEOUT_S:g} s"
            return (error.details() or error.code().name).rsplit("last error: ", 1)[-1]
    return ""
