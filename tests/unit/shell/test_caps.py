"""No message from outside is without bounds: of each method's bytes, and of each field that can grow."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, ServiceDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door, UnjudgedMethodError
from cronring.controller.api.judging import Insecure
from cronring.controller.api.policy import POLICY
from cronring.protos import caps
from cronring.protos.admission import MESSAGE_WEIGHT, TEXTS_MAX, RefusedMessage, admitted
from cronring.protos.cronring import v1 as api
from cronring.protos.cronring.v1 import deployments_pb2, jobs_pb2, jobs_pb2_grpc, notifications_pb2, schema_pb2
from cronring.protos.gossip import v1 as gossip
from cronring.protos.runner import v1 as runner
from cronring.protos.runner.v1 import runner_pb2
from tests.support.callers import counting


def services() -> Iterator[ServiceDescriptor]:
    for package in (api, gossip, runner):
        for module in pkgutil.iter_modules(package.__path__):
            if module.name.endswith("_pb2"):
                file: Any = importlib.import_module(f"{package.__name__}.{module.name}")
                yield from file.DESCRIPTOR.services_by_name.values()
    for other in (health_pb2, reflection_pb2):
        yield from other.DESCRIPTOR.services_by_name.values()


def read_from_outside() -> dict[str, Descriptor]:
    """Every message that somebody reads of somebody else's bytes, with all that is nested in it."""
    found: dict[str, Descriptor] = {}
    todo: list[Any] = []
    for service in services():
        for method in service.methods:
            todo += [method.input_type, method.output_type]
    while todo:
        descriptor = todo.pop()
        if descriptor.full_name not in found:
            found[descriptor.full_name] = descriptor
            todo += [field.message_type for field in descriptor.fields if field.message_type is not None]
    return found


def test_every_field_that_can_grow_has_a_cap() -> None:
    messages = read_from_outside()
    assert {"google.protobuf.FieldMask", "cronring.v1.JobSpec.LabelsEntry", "cronring.runner.v1.Runs"} <= set(messages)
    for descriptor in messages.values():
        caps.rules_of(descriptor)  # raises for a field without one


def test_a_cap_is_of_a_field_that_there_is() -> None:
    names = {field.name for descriptor in read_from_outside().values() for field in descriptor.fields}
    assert set(caps.CAPS) - names == set()


def test_every_method_has_a_bound_of_its_bytes_and_no_bound_is_left_over() -> None:
    served = {f"/{service.full_name}/{method.name}" for service in services() for method in service.methods}
    assert set(POLICY) == served


def test_a_method_without_a_bound_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {path: rule for path, rule in POLICY.items() if path != "/cronring.v1.Jobs/WatchJobs"}
    monkeypatch.setattr("cronring.controller.api.door.POLICY", known)

    class Nobody:
        def __getattr__(self, name: str) -> Any:
            assert not name.startswith("add_"), "nothing is added to the server"
            return print

    door: Any = Door(Nobody(), counting([]), Calls(Nobody(), counting([]), lambda: None), Insecure())
    servicer: Any = Nobody()
    with pytest.raises(UnjudgedMethodError, match=r"WatchJobs.*policy\.py"):
        jobs_pb2_grpc.add_JobsServicer_to_server(servicer, door)


@pytest.mark.parametrize(
    ("message", "path", "says"),
    [
        (jobs_pb2.CreateJobRequest(note="a" * 1_001), "note", "1001 characters; at most 1000"),
        (jobs_pb2.CreateJobRequest(explicit=FieldMask(paths=["a"] * 10_000)), "explicit.paths", "10000 entries"),
        (jobs_pb2.CreateJobRequest(explicit=FieldMask(paths=["a" * 401])), "explicit.paths", "401 characters"),
        (notifications_pb2.AddWebhookRequest(events=["late"] * 60_000), "events", "60000 entries; at most 16"),
        (jobs_pb2.ListJobsRequest(filter=jobs_pb2.JobFilter(labels={"a" * 401: "b"})), "filter.labels", "401"),
        (jobs_pb2.ListJobsRequest(filter=jobs_pb2.JobFilter(labels={"a": "b" * 401})), "filter.labels", "401"),
        (
            deployments_pb2.CreateDeploymentRequest(
                schema=schema_pb2.Module(verbs=[schema_pb2.Verb(), schema_pb2.Verb(schedule="*" * 4_001)])
            ),
            "schema.verbs[1].schedule",
            "4001 characters",
        ),
        (runner_pb2.RunnerMessage(beat=runner_pb2.Beat(out_of_reach=["x"] * 1_001)), "beat.out_of_reach", "1001"),
        (runner_pb2.RunnerMessage(output=runner_pb2.Output(data=b"x" * 300_000)), "output.data", "300000"),
        (
            runner_pb2.ControllerMessage(dispatch=runner_pb2.Dispatch(runs=runner_pb2.Runs(job=["a" * 401]))),
            "dispatch.runs.job",
            "401",
        ),
    ],
)  # fmt: skip
def test_what_is_over_its_cap_is_named(message: Any, path: str, says: str) -> None:
    with pytest.raises(RefusedMessage) as refused:
        admitted(type(message), message.SerializeToString())
    assert refused.value.violations[0][0] == path
    assert says in refused.value.violations[0][1]


def test_many_faults_are_told_in_part() -> None:
    verbs = [schema_pb2.Verb(name="a" * 401)] * 5_000
    message = deployments_pb2.CreateDeploymentRequest(schema=schema_pb2.Module(verbs=verbs))
    with pytest.raises(RefusedMessage) as refused:
        admitted(type(message), message.SerializeToString())
    assert len(refused.value.violations) == caps.FAULTS_SHOWN


VERB = b"\x22\x00"  # an empty one in a Module


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (VERB * 2 * (TEXTS_MAX // MESSAGE_WEIGHT), "entries of lists"),
        (b"\x23" + VERB * 200_000 + b"\x24", "groups"),
        (b"\x1a\x02hi" * 100_000 + b"\x22\xff\xff\xff\xff\x7f", "in the middle of a field"),
        (VERB * 10 + b"\xff" * 300_000, "in the middle of a number"),
        (b"\x28\x01" * 500_000, "fields"),
    ],
)
def test_a_large_message_is_counted_before_it_is_parsed(raw: bytes, says: str) -> None:
    module = b"\x0a" + _varint(len(raw)) + raw
    with pytest.raises(RefusedMessage, match=says) as refused:
        admitted(deployments_pb2.CreateDeploymentRequest, module)
    assert refused.value.too_large


def test_a_large_module_is_let_in() -> None:
    verbs = [
        schema_pb2.Verb(name=f"verb_{number}", doc="d" * 200, request="Unit", response="Unit", schedule="0 6 * * *")
        for number in range(10_000)
    ]
    message = deployments_pb2.CreateDeploymentRequest(schema=schema_pb2.Module(name="many", verbs=verbs))
    assert admitted(type(message), message.SerializeToString()) == message


def test_every_kind_of_field_is_known_to_grow_or_not() -> None:
    scalars = [field for field in schema_pb2.Verb.DESCRIPTOR.fields if not caps.can_grow(field)]
    assert {field.name for field in scalars} == {"is_async", "line", "timeout_ms", "request_optional"}
    assert all(field.type != FieldDescriptor.TYPE_STRING for field in scalars)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])
