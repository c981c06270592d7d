"""What a newer cronring describes is refused in words, and nothing of it is kept under its digest."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cronring.controller.api.job_specs import Defaults, new_job
from cronring.controller.api.lookup import find_module
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import Conflict, InvalidModule
from cronring.controller.ports.store import Deployed, SentModule
from cronring.controller.services.deploying import Deployer
from cronring.protos.cronring.v1 import jobs_pb2, schema_pb2
from cronring.protos.unknown import SHOWN, unknown_fields
from cronring.schema.module import Module, Verb

FIELD_1023 = b"\xf8\x3f\x01"  # a number, as a newer release might write one
WORDS = "is described by a newer cronring (field 1023 of Module): upgrade the controllers first"


def module(verbs: int = 1) -> schema_pb2.Module:
    described = schema_pb2.Module(name="billing")
    for number in range(verbs):
        verb = described.verbs.add(name=f"v{number}", request="Unit", response="Unit", schedule="0 6 * * *")
        verb.policy.retries = 3
    return described


PLACES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda described: described, "schema.name"),
    (lambda described: described.verbs[1], "schema.verbs[1]"),
    (lambda described: described.verbs[1].policy, "schema.verbs[1].policy"),
    (lambda described: described.types.add(name="Order"), "schema.types[0]"),
    (lambda described: described.types.add(name="Order").fields.add(name="a"), "schema.types[0].fields[0]"),
]


class Store:
    """Keeps what it is given, by its digest, as PostgreSQL does."""

    def __init__(self) -> None:
        self.kept: dict[str, Module] = {}

    async def register_deployment(self, sent: SentModule, digest: str, *_: object) -> Deployed:
        created = digest not in self.kept
        if created:
            self.kept[digest] = await sent.judge()
        return Deployed(f"billing@{digest[:12]}", created, True, (), (), (), [])


def deployer(store: Any) -> Deployer:
    return Deployer(store, ClusterSettings(), lambda _: None, lambda _: None)


@pytest.mark.parametrize(("place", "path"), PLACES)
async def test_a_module_of_a_newer_release_is_refused(place: Callable[[Any], Any], path: str) -> None:
    described = module(2)
    place(described).MergeFromString(FIELD_1023)
    with pytest.raises(InvalidModule) as caught:
        await deployer(None).deploy(described, "a" * 64, by="me")
    assert caught.value.problems == [(path, WORDS)]


async def test_its_digest_is_not_known_by_what_is_left_of_it() -> None:
    store, newer = Store(), module()
    newer.verbs[0].policy.MergeFromString(FIELD_1023)
    with pytest.raises(InvalidModule, match="upgrade the controllers first"):
        await deployer(store).register(newer, "a" * 64, "a runner")
    assert store.kept == {}
    # A controller that has been upgraded reads what the older one didn't.
    assert (await deployer(store).register(module(), "a" * 64, "a runner")).created


async def test_of_a_large_module_the_first_few_are_named() -> None:
    described = module(100)
    for verb in described.verbs:
        verb.MergeFromString(FIELD_1023)
    with pytest.raises(InvalidModule) as caught:
        await deployer(None).deploy(described, "a" * 64, by="me")
    assert [path for path, _ in caught.value.problems] == [f"schema.verbs[{number}]" for number in range(SHOWN)]


async def test_what_is_known_is_not_new() -> None:
    assert unknown_fields(module(3)) == []
    labelled = jobs_pb2.JobSpec(schedule="0 6 * * *", labels={"team": "a"}, payload="{}")
    assert unknown_fields(labelled) == []
    labelled.MergeFromString(FIELD_1023)
    assert [path for path, _ in unknown_fields(labelled)] == [""]


async def test_a_job_that_a_newer_client_asks_for_is_refused() -> None:
    request = jobs_pb2.CreateJobRequest(name="eu", spec=jobs_pb2.JobSpec(schedule="0 6 * * *"))
    request.spec.policy.MergeFromString(FIELD_1023)
    with pytest.raises(InvalidRequest) as caught:
        new_job(request, Module("m", (Verb("v"),)), Verb("v"), Defaults(1_000, ""))
    assert caught.value.violations == [("spec.policy", WORDS.replace("Module", "JobSpec"))]


async def test_a_stored_version_of_a_newer_release_is_told_as_one() -> None:
    stored = 'module billing {\n  verb v(Unit) Unit\n    +cron "0 6 * * *"\n    +blackout "Dec 24"\n}\n'

    async def list_deployments(*_: object) -> list[Any]:
        return [SimpleNamespace(schema_text=stored)]

    reads: Any = SimpleNamespace(list_deployments=list_deployments)
    with pytest.raises(Conflict, match=r"deployed by a newer release \(.*blackout.*deploy the module by this one"):
        await find_module(reads, "default", "billing")
