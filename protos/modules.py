"""The one place where modules and policies meet their protobuf messages, in both directions.

Messages of a Policy have one field for each of schema.policy.FIELDS, with its name. So what is new there only has to be
added to schema.proto (a test says so).
"""

from collections.abc import Iterable
from typing import Any

from cronring.protos.cronring.v1 import schema_pb2
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy_model import FIELDS, Policy, RawValue


def policy_message(policy: Policy) -> schema_pb2.Policy | None:
    """None, so that the field is absent, when all is default."""
    raw: dict[str, Any] = dict(policy.raw())
    return schema_pb2.Policy(**raw) if raw else None


def raw_policy(message: schema_pb2.Policy) -> dict[str, RawValue]:
    """What the message sets, as cronring.schema.policy.read_policy takes it."""
    given = {field.name: value for field, value in message.ListFields()}  # which are few, of many
    names = [field for field in FIELDS if field.name in given] if given else []
    return {field.name: list(given[field.name]) if field.kind == "names" else given[field.name] for field in names}


def policy_of(message: schema_pb2.Policy) -> Policy:
    """As it stands, whatever validate() will say of it."""
    values: dict[str, Any] = {}
    for name, value in raw_policy(message).items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return Policy(**values)


def module_message(module: Module) -> schema_pb2.Module:
    return schema_pb2.Module(
        namespace=module.namespace,
        name=module.name,
        doc=module.doc,
        verbs=[_verb_message(verb) for verb in module.verbs],
        types=types_messages(module.types),
    )


def module_of(message: schema_pb2.Module) -> Module:
    """As it stands, whatever validate() will say of it. Empty means the default where the proto says so."""
    return Module(
        name=message.name,
        verbs=tuple(_verb_of(verb) for verb in message.verbs),
        namespace=message.namespace or DEFAULT_NAMESPACE,
        doc=message.doc,
        types=tuple(_type_of(data) for data in message.types),
    )


def types_messages(types: Iterable[DataType]) -> list[schema_pb2.DataType]:
    return [_type_message(data) for data in types]


def _verb_message(verb: Verb) -> schema_pb2.Verb:
    return schema_pb2.Verb(
        name=verb.name,
        doc=verb.doc,
        request=verb.request,
        response=verb.response,
        is_async=verb.is_async,
        line=verb.line,
        schedule=verb.schedule,
        timeout_ms=verb.timeout_ms,
        on_disconnect=verb.on_disconnect,
        policy=policy_message(verb.policy),
        anchor=verb.anchor,
        payload=verb.payload,
        request_optional=verb.request_optional,
    )


def _verb_of(message: schema_pb2.Verb) -> Verb:
    return Verb(
        name=message.name,
        request=message.request or "Unit",
        response=message.response or "Unit",
        schedule=message.schedule,
        timeout_ms=message.timeout_ms if message.HasField("timeout_ms") else None,
        on_disconnect=message.on_disconnect or "stop",
        is_async=message.is_async,
        doc=message.doc,
        line=message.line,
        policy=policy_of(message.policy) if message.HasField("policy") else Policy(),
        anchor=message.anchor,
        payload=message.payload,
        request_optional=message.request_optional,
    )


def _type_message(data: DataType) -> schema_pb2.DataType:
    fields = [
        schema_pb2.DataField(name=field.name, type=field.type, optional=field.optional, default_json=field.default)
        for field in data.fields
    ]
    return schema_pb2.DataType(name=data.name, doc=data.doc, fields=fields)


def _type_of(message: schema_pb2.DataType) -> DataType:
    fields = tuple(DataField(field.name, field.type, field.optional, field.default_json) for field in message.fields)
    return DataType(message.name, fields, message.doc)
