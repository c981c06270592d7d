"""Typed clients of cronring.v1, with and without `await`: docs/clients.md.

    async with AsyncClient.from_env() as client: await client.jobs.list()
    with Client.from_env() as client: client.jobs.list()

Nothing of gRPC is imported before a client is asked for, so that catching this package's errors costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

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
from cronring.client.model import Execution, Job, JobEvent, JobEventKind, JobSpec

if TYPE_CHECKING:
    from cronring.client.client import AsyncClient
    from cronring.client.events import Event, EventKind
    from cronring.client.forks import ForkedError
    from cronring.client.sync_client import Client

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflict",
    "DatabaseAway",
    "Event",
    "EventKind",
    "Execution",
    "ForkedError",
    "Invalid",
    "Job",
    "JobEvent",
    "JobEventKind",
    "JobSpec",
    "NotFound",
    "OutcomeUnknown",
    "PermissionDenied",
    "Refused",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
]

# gRPC takes 100 ms to import.
_LATE: Final = {
    "AsyncClient": "client",
    "Client": "sync_client",
    "Event": "events",
    "EventKind": "events",
    "ForkedError": "forks",
}


def __getattr__(name: str) -> object:
    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
