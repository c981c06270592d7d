"""Which RPC each route is, as the .proto files say it: google.api.http, read from the descriptors."""

import functools
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from google.api import annotations_pb2
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from cronring.controller.api.policy import POLICY
from cronring.protos.cronring import v1

OURS: Final = "/cronring.v1."
_FIELD: Final = re.compile(r"\{(\w+)\}")
_MADE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "cronring.v1.CreateDeploymentResponse": lambda answer: answer.created,
    "cronring.v1.Job": lambda job: not (job.unchanged or job.updated),
    "cronring.v1.ManyJobsResponse": lambda answer: answer.changed > sum(each.updated for each in answer.results),
}
_VERBS: Final = ("get", "put", "post", "delete", "patch")


class UnroutedMethodError(Exception):
    """An annotation that can't be served, or none at all. Nothing is served before it is mended."""


class Binding(NamedTuple):
    """One route. `rpc`: as in the policy. `fields`: of the request, in the path. `has_body`: the rest is JSON there."""

    rpc: str
    verb: str
    path: str
    fields: tuple[str, ...]
    has_body: bool
    request: type[Message]
    answer: Descriptor
    streams: bool
    method: MethodDescriptor

    @property
    def most(self) -> int:
        """The bytes that its request may have as a message."""
        return POLICY[self.rpc].max_bytes

    @property
    def makes(self) -> bool:
        """It makes something that was not there, so success is 201; unless `has_made` says no."""
        return self.verb == "POST" and self.method.name.startswith(("Create", "Add", "Put"))

    @property
    def may_make_nothing(self) -> bool:
        """Success may also be that it was there before."""
        return self.makes and self.answer.full_name in _MADE

    def has_made(self, answer: Any) -> bool:
        """By its answer, which says so of what may have been there."""
        return self.makes and (not self.may_make_nothing or _MADE[self.answer.full_name](answer))

    @property
    def changes(self) -> bool:
        return self.verb != "GET"


def services() -> list[Any]:
    """The descriptors of all services that people call, by name."""
    for module in pkgutil.iter_modules(v1.__path__):
        if module.name.endswith("_pb2"):
            import_module(f"{v1.__name__}.{module.name}")
    names = sorted({path[1:].partition("/")[0] for path in POLICY if path.startswith(OURS)})
    return [descriptor_pool.Default().FindServiceByName(name) for name in names]


@functools.cache
def bindings() -> tuple[Binding, ...]:
    """Of all RPCs that people call. Raises UnroutedMethodError."""
    return tuple(each for service in services() for method in service.methods for each in bindings_of(method))


def bindings_of(method: MethodDescriptor) -> list[Binding]:
    """At least one. Raises UnroutedMethodError."""
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    found = [_binding(method, each) for each in (rule, *rule.additional_bindings)]
    if method.client_streaming:
        raise UnroutedMethodError(f"{method.full_name} takes a stream, and requests of HTTP are one message here")
    return found


def _binding(method: MethodDescriptor, rule: Any) -> Binding:
    verb = rule.WhichOneof("pattern")
    if verb not in _VERBS:
        raise UnroutedMethodError(f"{method.full_name} has no google.api.http with one of {', '.join(_VERBS)}")
    path: str = getattr(rule, verb)
    if rule.body not in {"", "*"} or (rule.body == "*") != (verb in {"post", "put", "patch"}):
        raise UnroutedMethodError(f'{method.full_name}: with {verb} its body can\'t be "{rule.body}"')
    fields = tuple(_FIELD.findall(path))
    for name in fields:
        field = method.input_type.fields_by_name.get(name)
        if field is None or field.is_repeated or field.message_type is not None:
            raise UnroutedMethodError(f"{method.full_name}: {name!r} of {path} is no plain field of its request")
    kind = message_factory.GetMessageClass(method.input_type)
    return Binding(
        f"/{method.containing_service.full_name}/{method.name}", verb.upper(), path, fields, rule.body == "*", kind,
        method.output_type, method.server_streaming, method,
    )  # fmt: skip


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def fields_of(descriptor: Descriptor, but: Sequence[str] = ()) -> Iterator[FieldDescriptor]:
    """In the order of the .proto, without those that are named."""
    return (field for field in descriptor.fields if field.name not in but)
