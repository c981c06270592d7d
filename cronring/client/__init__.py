"""A typed client of cronring.v1: `async with AsyncClient(["127.0.0.1:7400"]) as client: await client.jobs.list()`.

Nothing of gRPC is imported before `AsyncClient` is asked for, so that catching this package's errors costs nothing.
"""

from typing import TYPE_CHECKING

from cronring.client.errors import (
    ClientError,
    Conflict,
    DatabaseAway,
    Invalid,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    Refused,
    Unauthenticated,
    Unavailable,
    Unreachable,
)

if TYPE_CHECKING:
    from cronring.client.client import AsyncClient

__all__ = [
    "AsyncClient",
    "ClientError",
    "Conflict",
    "DatabaseAway",
    "Invalid",
    "NotFound",
    "OutcomeUnknown",
    "PermissionDenied",
    "Refused",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
]


def __getattr__(name: str) -> object:
    if name == "AsyncClient":
        from cronring.client.client import AsyncClient  # noqa: PLC0415 - late on purpose: gRPC takes 100 ms to import

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
