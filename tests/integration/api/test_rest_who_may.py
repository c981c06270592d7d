"""gRPC's own table of who may do what, asked by HTTP: both wires let the same callers in, and refuse the same."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from grpc import StatusCode

from cronring.controller.api.rest.bindings import OURS, Binding, bindings
from tests.integration.api.conftest import CALLERS as ROLES
from tests.integration.api.conftest import Scene
from tests.integration.api.test_who_may import at_the_door, parsed
from tests.integration.api.who_may_table import CALLERS, CODES, Row, table
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import Rested, rested

__all__ = ["parsed"]  # the fixture
STATUSES: Final = {
    StatusCode.OK: (200, 201, 204),
    StatusCode.UNAUTHENTICATED: (401,),
    StatusCode.PERMISSION_DENIED: (403,),
    StatusCode.NOT_FOUND: (404,),
    StatusCode.INVALID_ARGUMENT: (400,),
    StatusCode.FAILED_PRECONDITION: (409,),
    StatusCode.UNAVAILABLE: (503,),
}


def values_of(request: Message) -> dict[str, Any]:
    """As JSON's values, without what is empty; a mask as its paths are."""
    values: dict[str, Any] = MessageToDict(request, preserving_proto_field_name=True)
    masks = {field.name: value for field, value in request.ListFields() if isinstance(value, FieldMask)}
    return values | {name: ",".join(mask.paths) for name, mask in masks.items()}


def flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            for each in value if isinstance(value, list) else [value]:
                yield prefix + name, str(each).lower() if isinstance(each, bool) else str(each)


class Asking:
    """`wrong`: what was answered otherwise than it should be."""

    def __init__(self, rest: Rested, parsed: list[type[Any]]) -> None:
        self.wrong: list[tuple[Any, ...]] = []
        self._rest = rest
        self._parsed = parsed

    async def ask(self, caller: str, row: Row, letter: str, binding: Binding) -> None:
        values, path = values_of(row.request), binding.path
        for name in binding.fields:
            path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
        expected = STATUSES[CODES.get(letter, row.then)]
        headers = {} if caller == "stranger" else {"Authorization": f"Bearer test-{caller}"}
        body = {"json": values} if binding.has_body else {"params": list(flat(values))}
        self._parsed.clear()
        async with self._rest.session.request(binding.verb, path, headers=headers, **body) as answer:
            if answer.status not in expected:
                self.wrong.append((row.method, caller, answer.status, expected))
        if self._parsed and at_the_door(caller, letter):
            self.wrong.append((row.method, caller, "was parsed"))


def binding_of(row: Row, found: Sequence[Binding]) -> Binding | None:
    """By whose path the request can be named; None: it lacks what a path needs."""
    of_rpc = [each for each in found if each.rpc == f"/{row.method}"]
    values = values_of(row.request)
    return next((each for each in reversed(of_rpc) if all(values.get(name) for name in each.fields)), None)


async def test_http_lets_in_whom_grpc_lets_in(scene: Scene, parsed: list[type[Any]]) -> None:
    found, rows = bindings(), [row for row in table(scene) if f"/{row.method}".startswith(OURS)]
    assert {f"/{row.method}" for row in rows} == {each.rpc for each in found}, "each route has a row"
    chosen = [(row, binding_of(row, found)) for row in rows]
    assert {f"/{row.method}" for row, binding in chosen if binding is None} == set()
    async with rested(scene.database, judge_of(NamedCallers(**ROLES))) as rest:
        asking = Asking(rest, parsed)
        # As by gRPC: those who are refused come first, as others change what is there.
        for refused in (True, False):
            for row, binding in chosen:
                for caller, letter in zip(CALLERS, row.who, strict=True):
                    if (letter != ".") == refused and binding is not None:
                        await asking.ask(caller, row, letter, binding)
    assert asking.wrong == []
