"""Both faces have every RPC that people call, with the same parameters; and the generated one is fresh."""

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, get_type_hints

from google.protobuf import descriptor_pool

import cronring.client
from cronring.client import AsyncClient, Client
from cronring.client.generate import OUT, generate
from cronring.controller.api.policy import POLICY, Audience

FOLDER: Final = Path(cronring.client.__file__).parent
OURS: Final = "/cronring.v1."
METHODS: Final = (
    "schedule", "consume", "with_key", "events", "poll_events", "watch_jobs", "from_env", "close", "__init__",
)  # fmt: skip


def groups(client: object) -> dict[str, Any]:
    return {name: calls for name, calls in vars(client).items() if type(calls).__name__.endswith("Calls")}


def methods(calls: object) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(type(calls), callable) if not name.startswith("_")}


def pairs() -> Iterator[tuple[str, Any, Any]]:
    of_async = groups(AsyncClient(["127.0.0.1:1"]))
    of_sync = groups(Client(["127.0.0.1:1"]))
    assert set(of_async) - {"_events"} == set(of_sync)
    for group, calls in of_sync.items():
        here, there = methods(calls), methods(of_async[group])
        assert here.keys() == there.keys(), group
        yield from ((f"{group}.{name}", there[name], here[name]) for name in here)


def parameters(method: Any) -> list[tuple[str, str, Any, str]]:
    return [
        (name, str(each.kind), each.default, str(each.annotation))
        for name, each in inspect.signature(method).parameters.items()
        if name != "self"
    ]


def test_every_rpc_has_its_method() -> None:
    sources = "".join(path.read_text() for path in FOLDER.glob("*.py"))
    asked = set(re.findall(r"(\w+)Stub\(channel\)\.(\w+)\(", sources))
    by_group = {
        (path.stem, name) for path in FOLDER.glob("*.py") for name in re.findall(r"\bstub\.(\w+)\(", path.read_text())
    }
    asked |= {("".join(map(str.capitalize, stem.split("_"))), name) for stem, name in by_group}
    wanted = {
        tuple(rpc.removeprefix(OURS).split("/"))
        for rpc, access in POLICY.items()
        if rpc.startswith(OURS) and access.audience is Audience.PEOPLE
    }
    assert wanted
    assert not wanted - asked, "these have no method in cronring.client"


def test_both_faces_are_the_same() -> None:
    compared = 0
    for name, there, here in pairs():
        assert parameters(there) == parameters(here), name
        assert here.__doc__ == there.__doc__, name
        assert not inspect.iscoroutinefunction(here), name
        compared += 1
    assert compared > 60
    for name in METHODS:
        assert parameters(getattr(AsyncClient, name)) == parameters(getattr(Client, name)), name


def test_both_have_all_that_the_other_has() -> None:
    names = [{name for name in dir(face) if not name.startswith("_")} for face in (AsyncClient, Client)]
    assert names[0] == names[1]


def test_every_request_with_an_etag_is_given_one() -> None:
    """Whoever may say what they have seen by REST, may so here."""
    known = {
        rpc.removeprefix(OURS).replace("/", ".")
        for rpc, access in POLICY.items()
        if rpc.startswith(OURS) and access.audience is Audience.PEOPLE and "etag" in request_of(rpc).fields_by_name
    }
    calls = {
        f"{group}.{name}"
        for group, each in groups(AsyncClient(["127.0.0.1:1"])).items()
        for name, method in methods(each).items()
        if "etag" in inspect.signature(method).parameters
    }
    assert {*known} == {
        "Defaults.UpdateDefaults", "Deployments.ActivateDeployment", "Deployments.KillDeployment", "Jobs.DeleteJob",
        "Jobs.UpdateJob", "Limits.RemoveLimit", "Limits.SetLimit", "Notifications.RemoveWebhook",
        "Notifications.SetWebhookEnabled", "Queues.SetQueue", "Sets.ApplySet", "Templates.DeleteTemplate",
        "Templates.SetTemplate",
    }  # fmt: skip
    assert calls == {
        "defaults.update", "deployments.activate", "deployments.kill", "jobs.delete", "jobs.update", "limits.remove",
        "limits.set", "notifications.remove", "notifications.set_enabled", "queues.set", "templates.delete",
        "templates.set",
    }, "and sets.apply, by HowToApply"  # fmt: skip


def request_of(rpc: str) -> Any:
    """What a method takes, as protobuf describes it."""
    service, method = rpc.removeprefix("/").split("/")
    return descriptor_pool.Default().FindServiceByName(service).methods_by_name[method].input_type


def test_streams_are_iterators_in_both() -> None:
    for there, here in ((AsyncClient.events, Client.events), (AsyncClient.watch_jobs, Client.watch_jobs)):
        told, heard = get_type_hints(there)["return"], get_type_hints(here)["return"]
        assert (told.__origin__, heard.__origin__) == (AsyncIterator, Iterator)
        assert told.__args__ == heard.__args__


def test_the_sync_face_is_fresh() -> None:
    here = {path.name: path.read_text() for path in OUT.glob("*.py")}
    assert here == generate(), "run `make protos`"


def test_every_public_name_is_there() -> None:
    assert all(getattr(cronring.client, name) is not None for name in cronring.client.__all__)
    assert (Path(cronring.__path__[0]) / "py.typed").exists()
