"""Modules and policies as protobuf messages: everything comes back, and the message has what the registry has."""

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given

from cronring.protos.cronring.v1 import jobs_pb2, schema_pb2
from cronring.protos.modules import module_message, module_of, policy_message, policy_of, raw_policy
from cronring.schema.module import Module
from cronring.schema.policy import FIELDS, Policy, read_policy
from tests.unit.schema.strategies import MODULES

KINDS = {
    "text": (FieldDescriptor.TYPE_STRING, False),
    "count": (FieldDescriptor.TYPE_INT32, False),
    "names": (FieldDescriptor.TYPE_STRING, True),
}


def test_the_message_has_one_field_for_each_of_the_registry() -> None:
    declared = [(field.name, (field.type, field.is_repeated)) for field in schema_pb2.Policy.DESCRIPTOR.fields]
    assert declared == [(field.name, KINDS[field.kind]) for field in FIELDS]
    assert jobs_pb2.Job.DESCRIPTOR.fields_by_name["policy"].message_type is schema_pb2.Policy.DESCRIPTOR


@given(MODULES)
def test_modules_come_back(module: Module) -> None:
    message = schema_pb2.Module.FromString(module_message(module).SerializeToString())
    assert module_of(message) == module


def test_policies_come_back_and_defaults_are_absent() -> None:
    policy = read_policy({"timezone": "Europe/Berlin", "retries": 3, "retry_on": ["A", "lost"], "jitter": 0.1})
    message = policy_message(policy)
    assert message is not None
    assert raw_policy(message) == policy.raw()
    assert policy_of(message) == policy
    none = policy_message(Policy(retries=0))
    assert none is not None
    assert policy_of(schema_pb2.Policy.FromString(none.SerializeToString())) == Policy(retries=0)
    assert policy_message(Policy()) is None
    assert policy_of(schema_pb2.Policy()) == Policy()


def test_what_nobody_sent_is_the_default() -> None:
    message = schema_pb2.Module(name="m", verbs=[schema_pb2.Verb(name="a")])
    assert module_of(message).verbs[0] == module_of(module_message(module_of(message))).verbs[0]
    assert (module_of(message).namespace, module_of(message).verbs[0].on_disconnect) == ("default", "stop")
