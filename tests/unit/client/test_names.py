"""Whatever a signature of the clients mentions, and what that is made of, can be imported from cronring.client."""

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import cronring.client
from cronring.client import AsyncClient, Client
from cronring.client.consuming import Message
from cronring.client.sync_consuming import SyncMessage


def faces() -> Iterator[type[Any]]:
    """Both clients, and their groups of calls."""
    for client in (AsyncClient(["127.0.0.1:1"]), Client(["127.0.0.1:1"])):
        yield type(client)
        yield from (type(calls) for calls in vars(client).values() if type(calls).__name__.endswith("Calls"))


def signatures() -> Iterator[tuple[str, Any]]:
    for face in faces():
        for name, method in inspect.getmembers(face, inspect.isroutine):
            if not name.startswith("_") or (name == "__init__" and face in {AsyncClient, Client}):
                for hint in get_type_hints(getattr(method, "__func__", method)).values():
                    yield f"{face.__name__}.{name}", hint


def ours(hint: Any) -> Iterator[type[Any]]:
    """The classes of cronring that are in an annotation."""
    if isinstance(hint, type) and hint.__module__.startswith("cronring."):
        yield hint
    for part in get_args(hint):
        for each in part if isinstance(part, list) else [part]:
            yield from ours(each)


def mentioned() -> dict[type[Any], str]:
    """Each with where it is first mentioned."""
    found: dict[type[Any], str] = {Message: "Consumer", SyncMessage: "SyncConsumer"}  # what these give
    waiting = list(signatures())
    while waiting:
        where, hint = waiting.pop()
        for kind in ours(hint):
            if kind not in found:
                found[kind] = where
                if dataclasses.is_dataclass(kind):
                    waiting += [(kind.__name__, each) for each in get_type_hints(kind).values()]
    return found


def test_every_name_of_a_signature_can_be_imported() -> None:
    names = mentioned()
    assert len(names) > 80
    missing = sorted(
        f"{kind.__name__} of {kind.__module__}, in {where}"
        for kind, where in names.items()
        if kind.__name__ not in cronring.client.__all__ or getattr(cronring.client, kind.__name__) is not kind
    )
    assert not missing, "import, __all__ and _OF of cronring/client/__init__.py lack:\n" + "\n".join(missing)


def test_errors_and_specs_are_there_without_grpc() -> None:
    program = (
        "import sys\nfrom cronring.client import EtagMismatch, JobSpec, JsonText\nassert 'grpc' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
