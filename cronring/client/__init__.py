"""A typed client of cronring.v1: `async with Client(["127.0.0.1:7400"]) as client: await client.jobs.list()`.

Nothing of gRPC is imported before `Client` is asked for, so that catching this package's errors costs nothing.
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
    from cronring.client.client import Client

__all__ = [
    "Client",
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
    if name == "Client":
        from cronring.client.client import Client  # noqa: PLC0415 - late on purpose: gRPC takes 100 ms to import

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
