"""Targets: what strangers show of who they are, and the door that judges them before their bytes are parsed."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NoReturn
from unittest import mock

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from cronring.controller.api import door as doors
from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.policy import POLICY, Audience, Reach
from cronring.protos.runner.v1 import runner_pb2
from cronring.schema.identity import Permission, Role, RoleGrant
from cronring.schema.tokens import SecretKind, is_of_kind, make_secret_text, secret_fault, secret_hash
from tests.attacks.wire import METHODS as SERVED
from tests.attacks.wire import path_of
from tests.fuzz.bounds import Misbehaved, as_text
from tests.support.callers import NamedCallers, counting, judge_of

Code = grpc.StatusCode
METHODS: Final[tuple[MethodDescriptor, ...]] = (
    *SERVED,
    *(method for service in runner_pb2.DESCRIPTOR.services_by_name.values() for method in service.methods),
)
assert {path_of(method) for method in METHODS} == set(POLICY), "each method is tried"
# Drawn: no input finds out what would let it in.
_ROOT, _VIEWER = secrets.token_hex(16), secrets.token_hex(16)
_ROLES: Final = {_ROOT: (RoleGrant(Role.ADMIN),), _VIEWER: (RoleGrant(Role.VIEWER, "billing"),)}
_REFUSED: Final = frozenset({Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED})
_MESSAGE_MAX: Final = 600


class _AbortedCall(Exception):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code


class _Context:
    """Of a call with this metadata, over a connection without a certificate."""

    def __init__(self, metadata: tuple[tuple[str, str | bytes], ...], raw: bytes) -> None:
        self._metadata = metadata
        self._raw = raw

    async def read(self) -> bytes:
        """The one message of a call that has one."""
        return self._raw

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._metadata

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"transport_security_type": [b"ssl"]}

    def peer(self) -> str:
        return "ipv4:127.0.0.1:9"

    def time_remaining(self) -> float | None:
        return None

    async def write(self, _: object) -> None:
        """Nothing is answered."""

    async def abort(self, code: grpc.StatusCode, details: str = "", _: object = ()) -> NoReturn:
        raise _AbortedCall(code, details)


class _Captured:
    """In place of a server. `entries`: what gRPC would call, by path."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, _: object) -> None:
        """The same, without names."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        self.entries |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    def exception(self, event: str, error: BaseException) -> None:
        raise Misbehaved(f"{event}: {error!r}") from error


async def _answer(request: Any, _: Any) -> None:
    if hasattr(request, "__aiter__"):
        async for _message in request:
            pass


async def _answers(request: Any, context: Any) -> AsyncIterator[None]:
    await _answer(request, context)
    if context is None:  # never: it makes this a generator, which answers nothing
        yield


def _kind(method: MethodDescriptor) -> str:
    return f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"


def _handler(method: MethodDescriptor) -> Any:
    make = getattr(grpc, f"{_kind(method)}_rpc_method_handler")
    request = message_factory.GetMessageClass(method.input_type)
    return make(_answers if method.server_streaming else _answer, request_deserializer=request.FromString)


def _entries() -> dict[str, Any]:
    """The real door of all methods; behind it nothing is done."""
    server = _Captured()
    door = Door(
        server, counting([]), Calls(server, counting([]), lambda: None), judge_of(NamedCallers(**_ROLES))
    )  # fmt: skip
    for method in METHODS:
        door.add_registered_method_handlers(method.containing_service.full_name, {method.name: _handler(method)})
    return server.entries


_ENTRIES: Final = _entries()


async def _said(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


async def _call(method: MethodDescriptor, raw: bytes, context: _Context) -> grpc.StatusCode:
    handler = _ENTRIES[path_of(method)]
    try:
        await getattr(handler, f"stream_{_kind(method).partition('_')[2]}")(_said(raw), context)
    except _AbortedCall as aborted:
        return aborted.code
    return Code.OK


def _metadata(who: int, shown: bytes) -> tuple[tuple[str, str | bytes], ...]:
    """Nobody's; what somebody made up, as gRPC reads it; a viewer's; an admin's."""
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        text = shown.decode("latin-1")
    of_each: tuple[tuple[tuple[str, str | bytes], ...], ...] = (
        (), (("authorization", text),), (("authorization", f"Bearer test-{_VIEWER}"),),
        (("authorization", f"Bearer test-{_ROOT}"),),
    )  # fmt: skip
    return of_each[who]


def _expected(method: MethodDescriptor, who: int) -> grpc.StatusCode:
    """What the door says of who calls, before it looks at what they send."""
    access = POLICY[path_of(method)]
    if access.audience in {Audience.ANYONE, Audience.ENROLLING}:
        return Code.OK
    if access.audience not in {Audience.PEOPLE, Audience.METADATA} or who < 2:
        return Code.UNAUTHENTICATED
    viewed = access.permission in {None, Permission.VIEW} and access.scope is Reach.NAMESPACE
    return Code.OK if who == 3 or viewed else Code.PERMISSION_DENIED


def door(data: bytes) -> None:
    """The first byte picks the method, the second one who calls; then what is shown, a line's end, and the request."""
    if len(data) < 2:
        return
    method, who = METHODS[data[0] % len(METHODS)], data[1] % 4
    shown, _, raw = data[2:].partition(b"\n")
    parsed: list[bytes] = []
    admitted: Any = vars(doors)["admitted"]

    def spied(kind: Any, message: bytes) -> Any:
        parsed.append(message)
        return admitted(kind, message)

    with mock.patch.object(doors, "admitted", spied):
        code = asyncio.run(_call(method, raw, _Context(_metadata(who, shown), raw)))
    expected = _expected(method, who)
    if expected is not Code.OK:
        if code is not expected or parsed:
            raise Misbehaved(f"{path_of(method)} for caller {who}: {code}, {len(parsed)} messages were parsed")
    elif code is not Code.OK and code not in _REFUSED:
        raise Misbehaved(f"{path_of(method)} for caller {who}: {code}")


def join_token(data: bytes) -> None:
    """What is one is 32 bytes, and is made of them again; what isn't is told in words that don't repeat it."""
    text = as_text(data)
    fault = secret_fault(SecretKind.JOIN, text)
    if fault and (not fault.isprintable() or len(fault) > _MESSAGE_MAX or (len(text) > 12 and text in fault)):
        raise Misbehaved(f"a refusal that can't be shown: {fault[:100]!r}")
    if not fault and len(secret_hash(SecretKind.JOIN, text)) != 32:
        raise Misbehaved(f"{text!r} is a token of no hash")
    if len(data) == 32:
        made = make_secret_text(SecretKind.JOIN, data)
        if secret_fault(SecretKind.JOIN, made) or is_of_kind(SecretKind.TOKEN, made):
            raise Misbehaved(f"{made!r} was made, and is none")
