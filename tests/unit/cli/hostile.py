"""A server that answers every method there is, by its descriptor, with hostile text in every string."""

import asyncio
import contextlib
import importlib
import json
import pkgutil
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import grpc
from google.protobuf import any_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

import cronring.protos.cronring.v1 as package
from tests.support.threaded import in_thread

MARK: Final = "StrangersWord"
# A colour that nothing of ours has, a window's title (OSC), a device string (DCS), 8-bit CSI, cursor, DEL, NUL. Then
# text turned round, isolates, nothing of any width, separators of lines. Then rich's markup, lines that look like ours,
# wide characters.
HOSTILE: Final = (
    f"{MARK}\x1b[38;5;201mx\x1b]0;title\x07\x1bP1$r\x1b\\\x9b31m\x1b[2J\x1b[1A\x1b[8m\x7f\x00\b\x85\x90"
    "\u202egnp\u202c\u2066i\u2069\u200b\u200d\u2060\ufeff\xad\u2028\u2029\U000e0041"
    "[red]markup[/red][/]\nFORGED line\r\nFORGED too\rFORGED again\v\f\t漢字e\u0301 :smile: end"
)
FORGED: Final = "FORGED"
DEPTH_MAX: Final = 4
NUMBER: Final = 7
# Strings that have a form, or lead somewhere: what the command line asks for next must be answered.
HONEST: Final = {
    "next_page_token": "",
    "details": json.dumps({HOSTILE: HOSTILE}),
    "metrics_json": json.dumps({HOSTILE: HOSTILE}),
    "timezone": "Europe/Berlin",
    "next_tick_local": "2026-11-21T09:05:00+01:00",
}


def services() -> list[ServiceDescriptor]:
    modules = [importlib.import_module(f"{package.__name__}.{each.name}")
               for each in pkgutil.iter_modules(package.__path__) if each.name.endswith("_pb2")]  # fmt: skip
    return [service for module in modules for service in module.DESCRIPTOR.services_by_name.values()]


def filled(descriptor: Descriptor, text: str, depth: int = 0, choice: int = 0) -> Any:
    """Everything in it is set, lists have two members; of a oneof, the field number `choice`."""
    message = GetMessageClass(descriptor)()
    unwanted = {
        field.name
        for oneof in descriptor.oneofs
        for number, field in enumerate(oneof.fields)
        if number != choice % len(oneof.fields)
    }
    for field in descriptor.fields:
        if field.name not in unwanted:
            _fill(message, field, text, depth)
        if field.enum_type is not None and not field.is_repeated:  # none of them is that of nothing
            kinds = field.enum_type.values
            setattr(message, field.name, kinds[1 + choice % (len(kinds) - 1)].number)
    return message


def _fill(message: Message, field: FieldDescriptor, text: str, depth: int) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _fill_map(getattr(message, field.name), field.message_type, text, depth)
    elif field.message_type is not None:
        if depth < DEPTH_MAX and field.is_repeated:
            getattr(message, field.name).extend(filled(field.message_type, text, depth + 1) for _ in range(2))
        elif depth < DEPTH_MAX:
            getattr(message, field.name).CopyFrom(_message(field.message_type, text, depth))
    elif field.is_repeated:
        getattr(message, field.name).extend([_scalar(field, text)] * 2)
    else:
        setattr(message, field.name, _scalar(field, text))


def _fill_map(values: Any, entry: Descriptor, text: str, depth: int) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    if value.message_type is not None:
        values[_scalar(key, text)].CopyFrom(filled(value.message_type, text, depth + 1))
    else:
        values[_scalar(key, text)] = _scalar(value, text)


def _message(descriptor: Descriptor, text: str, depth: int) -> Any:
    if descriptor.full_name == "google.protobuf.Timestamp":
        return GetMessageClass(descriptor)(seconds=1_795_248_000)
    return filled(descriptor, text, depth + 1)


def _scalar(field: FieldDescriptor, text: str) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            honest = HONEST.get(field.name, text)
            return honest.encode() if field.type == FieldDescriptor.TYPE_BYTES else honest
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
        case FieldDescriptor.CPPTYPE_ENUM:
            return 1
        case _:
            return NUMBER


class HostileServer(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # the stubs have some, gRPC has none
    """`text` is in every string; `failing`: a status that every call ends with, told in the same words."""

    def __init__(self) -> None:
        self.text = HOSTILE
        self.failing: grpc.StatusCode | None = None
        self.honest_addresses = False
        self.overrides: dict[str, dict[str, Any]] = {}
        self.address = ""
        self.asked: set[str] = set()
        self._methods: dict[str, MethodDescriptor] = {
            f"/{service.full_name}/{method.name}": method for service in services() for method in service.methods
        }

    def service(self, handler_call_details: Any) -> Any:
        method = self._methods[handler_call_details.method]
        request = GetMessageClass(method.input_type).FromString
        answer = GetMessageClass(method.output_type).SerializeToString

        async def one(_: Any, context: Any) -> Any:
            self.asked.add(method.name)
            await self._fail(context)
            return self._answer(method, 0)

        async def several(_: Any, context: Any) -> AsyncIterator[Any]:
            self.asked.add(method.name)
            await self._fail(context)
            for choice in range(5):
                yield self._answer(method, choice)
            if method.name.startswith("Watch"):
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, self.text)

        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(several, request, answer)
        return grpc.unary_unary_rpc_method_handler(one, request, answer)

    def _answer(self, method: MethodDescriptor, choice: int) -> Any:
        answer = filled(method.output_type, self.text, choice=choice)
        for name, value in self.overrides.get(method.name, {}).items():
            setattr(answer, name, value)
        if self.honest_addresses:
            for member in [*getattr(answer, "members", ())]:
                if hasattr(member, "grpc_address"):
                    member.grpc_address = member.http_address = self.address
        return answer

    async def _fail(self, context: Any) -> None:
        if self.failing is None:
            return
        bad = error_details_pb2.BadRequest()
        for field in ("spec.schedule", self.text):
            bad.field_violations.add(field=field, description=self.text)
        info = error_details_pb2.ErrorInfo(reason=self.text, domain=self.text, metadata={"state": self.text})
        details = [any_pb2.Any(), any_pb2.Any()]
        details[0].Pack(bad)
        details[1].Pack(info)
        failure = status_pb2.Status(code=self.failing.value[0], message=self.text, details=details)
        await context.abort_with_status(rpc_status.to_status(failure))


@contextlib.contextmanager
def serving_hostile() -> Iterator[HostileServer]:
    """On a free port of loopback, in a thread of its own."""
    hostile = HostileServer()

    async def serve(started: threading.Event, stop: asyncio.Event) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((hostile,))
        hostile.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(grace=None)

    with in_thread(serve):
        yield hostile
