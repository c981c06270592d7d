"""The largest request of each method that its caps let in: none holds the loop that ticks wait for."""

import json
from typing import Any, Final

import grpc
import psutil
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor

from cronring.controller.api.policy import MODULE, POLICY
from cronring.protos.caps import CAPS, PATHS
from cronring.protos.cronring.v1 import deployments_pb2, jobs_pb2, schema_pb2
from tests.attacks.wire import METHODS, Caller, connected, path_of
from tests.support.cluster import Process

HELD_MAX_S: Final = 0.1  # CPU of all its threads, in steps of 10 ms: the loop's part is less
TRIES: Final = 3  # it has other things to do as well, once a second
SMALL: Final = [method for method in METHODS if POLICY[path_of(method)].max_bytes < MODULE]
# What costs those most who read it: repeated nesting, words nearly known, digits, marks of every grammar.
TEXTS: Final = ("a", "polici.retrie", "9", "*/1,", "[", "((((a+)+)+)+", "Mon-Fri 09:00-17:00 ", "1h", "\N{SNOWMAN}")


def full(descriptor: Any, text: str, budget: int, depth: int = 0) -> Any:
    """A message with every field at its cap, as far as `budget` bytes go."""
    message: Any = message_factory.GetMessageClass(descriptor)()
    growing = [field for field in descriptor.fields if field.type in _TEXT or field.message_type]
    for field in growing if depth < 5 else ():
        share = max(1, budget // (2 * len(growing)))
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = {_word(text, 60, number): _word(text, 200, number) for number in range(CAPS[field.name].items)}
            getattr(message, field.name).update(entries)
        elif field.message_type is not None and not field.is_repeated:
            getattr(message, field.name).CopyFrom(full(field.message_type, text, share, depth + 1))
        elif field.message_type is None:
            cap = CAPS[field.name]
            length = min(cap.length, share)
            if field.is_repeated:
                count = min(cap.items, share // min(length, 60) + 1)
                getattr(message, field.name).extend(_word(text, min(length, 60), number) for number in range(count))
            elif field.type == FieldDescriptor.TYPE_STRING:
                setattr(message, field.name, _word(text, length, 0))
    return message


_TEXT: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


def _word(text: str, length: int, number: int) -> str:
    return (f"{number or ''}" + text * length)[:length]


def cpu_s(process: Process) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def held_s(caller: Caller, victim: Process, method: MethodDescriptor, body: bytes) -> float:
    least = HELD_MAX_S * 100
    for _ in range(TRIES):
        before = cpu_s(victim)
        caller.ask(method, body)
        least = min(least, cpu_s(victim) - before)
        if least < HELD_MAX_S:
            break
    return least


@pytest.mark.parametrize("text", TEXTS)
def test_no_request_holds_the_loop(victim: Process, text: str) -> None:
    slow = {}
    with connected(victim, calls_s=2.0) as caller:
        for method in SMALL:
            body = full(method.input_type, text, POLICY[path_of(method)].max_bytes).SerializeToString()
            if (held := held_s(caller, victim, method, body)) >= HELD_MAX_S:
                slow[path_of(method)] = held
    assert not slow


def job(**spec: Any) -> jobs_pb2.CreateJobRequest:
    return jobs_pb2.CreateJobRequest(module="billing", verb="close", name="x", spec=jobs_pb2.JobSpec(**spec))


def test_no_job_that_could_be_made_holds_the_loop(victim: Process) -> None:
    """The same, behind all that looks at names first: of a verb that there is."""
    methods = {method.name: method for method in METHODS}
    fields = [schema_pb2.DataField(name=f"quantity_of_article_{number:03}", type="int") for number in range(500)]
    module = schema_pb2.Module(
        name="billing",
        verbs=[schema_pb2.Verb(name="close", request="Order", response="Unit")],
        types=[schema_pb2.DataType(name="Order", fields=fields)],
    )
    deploy = deployments_pb2.CreateDeploymentRequest(schema=module, digest="a" * 64)
    unknown = {f"quantity_of_artikel_{number:03}": 1 for number in range(2_000)}
    masked = job(schedule="manual")
    masked.explicit.paths.extend(f"policy.retrie{number}" for number in range(PATHS))
    worst = {
        "paths": masked,
        "payload": job(schedule="manual", payload=json.dumps(unknown)),
        "deep": job(schedule="manual", payload='{"a":' * 10_000 + "1" + "}" * 10_000),
        "numbers": job(schedule="manual", payload="9" * 60_000),
        "labels": job(schedule="manual", labels={f"{'a' * 60}{number}!": "b" * 400 for number in range(64)}),
        "pattern": job(schedule=",".join(f"{number}-59/1" for number in range(59)) * 5 + " * * * *"),
        "window": job(schedule="manual", policy=schema_pb2.Policy(window="Mon,Tue-Wed 09:00-17:00; " * 40)),
        "policies": job(schedule="manual", policy=schema_pb2.Policy(jitter="5m:3s," * 160, retry_on=["lostt"] * 50)),
    }
    with connected(victim, calls_s=5.0) as caller:
        assert caller.ask(methods["CreateDeployment"], deploy.SerializeToString()) == (grpc.StatusCode.OK, "")
        held = {
            name: held_s(caller, victim, methods["CreateJob"], request.SerializeToString())
            for name, request in worst.items()
        }
    assert max(held.values()) < HELD_MAX_S, held
