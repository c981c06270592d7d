"""A policy's faults are the same whichever way they come in, and all of them are told at once, each in its place."""

from typing import Any, cast

import pytest

from cronring.controller.api.job_specs import Defaults, new_job
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import InvalidModule
from cronring.controller.services.deploying import Deployer
from cronring.protos.cronring.v1 import jobs_pb2, schema_pb2
from cronring.protos.modules import policy_message
from cronring.schema.declaration import read_declaration
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from cronring.schema.text import SchemaError, parse_module

# What is written, and the fields that are wrong in it, with the character where that begins (None: it has none).
CASES: dict[str, tuple[dict[str, Any], dict[str, int | None]]] = {
    "several": (
        {"timezone": "Europe/Belrin", "window": "Mon-Fri 08:00-25:00", "retries": 101, "overlap": "forbid"},
        {"timezone": 1, "window": 15, "retries": None, "overlap": 1},
    ),
    "with a contradiction": ({"jitter": "10x", "max_concurrent": 3}, {"jitter": 3, "max_concurrent": None}),
    "contradictions": (
        {"overlap": "buffer_all", "on_missed": "run_last", "max_concurrent": 3},
        {"on_missed": None, "max_concurrent": None},
    ),
    # Not "counts only with overlap=allow": it may be what was meant.
    "none that another made": ({"overlap": "alow", "max_concurrent": 3}, {"overlap": 1}),
}
SCHEDULE = "0 9 * * *"


def by_annotation(raw: dict[str, Any]) -> dict[str, str]:
    verb = {"name": "v", "line": 3, "params": [], "cron": SCHEDULE, "policy": raw}
    found = read_declaration({"version": 1, "module": "m", "file": "m.py", "verbs": [verb]})
    assert isinstance(found, list)
    assert all(problem.line == 3 for problem in found)
    return {problem.message.partition("=")[0].partition(":")[0]: problem.message for problem in found}


def by_text(raw: dict[str, Any]) -> dict[str, str]:
    written = [f'+{name} "{value}"' if isinstance(value, str) else f"+{name} {value}" for name, value in raw.items()]
    text = "\n".join(["module m {", "verb v(Unit) Unit", f'+cron "{SCHEDULE}"', *written, "}"])
    with pytest.raises(SchemaError) as caught:
        parse_module(text)
    found = {}
    for error in caught.value.every:
        line = text.splitlines()[error.line - 1]
        name, value = line.partition(" ")[::2]
        character = error.column - len(name) - 1 - value.startswith('"')
        found[name.removeprefix("+")] = f"{error.message} (character {character})"
    return found


async def by_deployment(raw: dict[str, Any]) -> dict[str, str]:
    message = schema_pb2.Module(name="m", verbs=[schema_pb2.Verb(name="v", schedule=SCHEDULE)])
    message.verbs[0].policy.CopyFrom(schema_pb2.Policy(**raw))
    with pytest.raises(InvalidModule) as caught:
        await Deployer(cast("Any", None), ClusterSettings(), lambda _: None, lambda _: None).deploy(
            message, "a" * 64, by="me"
        )
    return {path.removeprefix("schema.verbs[0].policy."): message for path, message in caught.value.problems}


async def by_job(raw: dict[str, Any]) -> dict[str, str]:
    spec = jobs_pb2.JobSpec(schedule=SCHEDULE, policy=schema_pb2.Policy(**raw))
    module = Module("m", (Verb("v"),))
    with pytest.raises(InvalidRequest) as caught:
        new_job(jobs_pb2.CreateJobRequest(name="a", spec=spec), module, module.verbs[0], Defaults(1_000, ""))
    return {path.removeprefix("spec.policy."): message for path, message in caught.value.violations}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", [by_annotation, by_text, by_deployment, by_job])
async def test_every_wrong_policy_is_told_at_once(case: str, way: Any):
    raw, wrong = CASES[case]
    found = way(raw)
    found = found if isinstance(found, dict) else await found
    assert sorted(found) == sorted(wrong)
    for field, character in wrong.items():
        if character is not None:
            assert f"character {character}" in found[field], found[field]


def test_a_text_tells_the_faults_of_all_its_verbs_up_to_where_it_can_not_be_read():
    text = 'module m {\nverb a(Unit) Unit +cron "x" +retries 101\nverb b(Unit) Unit +every "0s"\nvreb\n}'
    with pytest.raises(SchemaError) as caught:
        parse_module(text)
    assert [(each.line, each.column) for each in caught.value.every] == [(2, 26), (2, 38), (3, 27), (4, 1)]


class Store:
    """Keeps what it is told to deploy."""

    deployed: Module

    async def create_deployment(self, module: Module, *_: object, **__: object) -> Any:
        self.deployed = module
        return type("Deployed", (), {"created": False})


async def test_a_deployment_takes_every_spelling_that_a_job_takes():
    written = Policy(
        timezone="Europe/Berlin", start_at="2026-03-01T08:00", end_at="2026-04-01", jitter="30000ms", overlap="skip"
    )
    canonical = Policy(
        timezone="Europe/Berlin", start_at="2026-03-01T07:00:00Z", end_at="2026-04-01T21:59:59Z", jitter="30s"
    )
    message = schema_pb2.Module(
        name="m",
        verbs=[
            schema_pb2.Verb(name="a", schedule="0 9  * * *", policy=policy_message(written)),
            schema_pb2.Verb(name="b", schedule="every 90m", anchor="2026-03-01T08:00", policy=policy_message(written)),
        ],
    )
    store = Store()
    deployer = Deployer(cast("Any", store), ClusterSettings(), lambda _: None, lambda _: None)
    await deployer.deploy(message, "a" * 64, by="me")
    a, b = store.deployed.verbs
    assert (a.schedule, a.policy) == (SCHEDULE, canonical)
    assert (b.schedule, b.anchor, b.policy) == ("every 1h30m", "2026-03-01T07:00:00Z", canonical)
    spec = jobs_pb2.JobSpec(schedule="0 9  * * *", policy=policy_message(written))
    module = Module("m", (Verb("v"),))
    job = new_job(jobs_pb2.CreateJobRequest(name="a", spec=spec), module, module.verbs[0], Defaults(1_000, ""))
    assert (job.spec.schedule, job.spec.policy) == (SCHEDULE, canonical.text)
