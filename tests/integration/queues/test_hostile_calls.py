"""Whatever stands in a call about queues, what is wrong with it is said by field, and never by PostgreSQL."""

from collections.abc import Iterator
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cronring.protos.cronring.v1 import queues_pb2
from cronring.protos.cronring.v1.queues_pb2_grpc import QueuesStub
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S

METHODS: Final = queues_pb2.DESCRIPTOR.services_by_name["Queues"].methods
TEXTS: Final = (
    "", " ", "w é", "a b", ".a", "a.", "-", "a-", "@q", "a/b", "%", "\x00", "a\n", "é" * 50, "x" * 100, "x" * 101,
    "x" * 201, "x" * 401, "{", "nan", "NaN", "[1,]", "'", "1e999", '"\\ud800"', '"\\u0000"', "[" * 900 + "]" * 900,
    "[" * 20_000 + "]" * 20_000, '"' + "x" * 65_536 + '"', "9" * 5_000, "\U0010ffff", "\ufeff1",
)  # fmt: skip
TOO_MUCH: Final = 30_000  # characters: of most calls nobody reads as much
NUMBERS: Final = (-(2**63), -(2**31), -1, 0, 1, 1_001, 2**31 - 1, 2**63 - 1)
INSTANTS: Final = (
    (0, 0), (-(2**63), 0), (2**63 - 1, 0), (0, -1), (0, 2**31 - 1), (-62_135_596_800, 0),
    (253_402_300_799, 999_999_999), (-62_135_596_801, 0), (253_402_300_800, 0),
)  # fmt: skip
# With these a call is sound: what is wrong is the one field that is tried.
SOUND: Final[dict[str, Any]] = {
    "queue": "hostile", "consumer": "c1", "payload": "1", "lease": 1, "message_ids": [1], "max_deliveries": 5,
}  # fmt: skip
_IS_TEXT = FieldDescriptor.TYPE_STRING
_WIDTH: Final = {FieldDescriptor.TYPE_INT32: 32, FieldDescriptor.TYPE_INT64: 64}


def values_of(field: FieldDescriptor) -> Iterator[Any]:
    if field.type == _IS_TEXT:
        yield from TEXTS
    elif field.type in _WIDTH:
        found = [
            number for number in NUMBERS if -(2 ** (_WIDTH[field.type] - 1)) <= number < 2 ** (_WIDTH[field.type] - 1)
        ]
        yield from ([[], *([number] for number in found), [1] * 1_001] if field.is_repeated else found)
    elif field.message_type is not None:
        yield from (Timestamp(seconds=seconds, nanos=nanos) for seconds, nanos in INSTANTS)
    else:
        yield from (False, True)


@pytest.mark.parametrize("name", [method.name for method in METHODS])
async def test_nothing_that_is_sent_is_an_internal_error(cluster: Cluster, name: str) -> None:
    """Every value in every field, one at a time: by gRPC, which REST is a door to."""
    method = next(each for each in METHODS if each.name == name)
    sound = {field.name: SOUND[field.name] for field in method.input_type.fields if field.name in SOUND}
    kind, complaints = getattr(queues_pb2, method.input_type.name), []
    async with grpc.aio.insecure_channel(cluster.controllers[0].grpc) as channel:
        call = getattr(QueuesStub(channel), name)
        for field in method.input_type.fields:
            for value in values_of(field):
                try:
                    await call(kind(**{**sound, field.name: value}), timeout=TIMEOUT_S)
                except grpc.aio.AioRpcError as error:
                    too_much = len(repr(value)) > TOO_MUCH and error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                    other = field.name == "etag" and error.code() is grpc.StatusCode.ABORTED
                    if not (too_much or other or field.name in fields_in(error)):
                        complaints.append((field.name, repr(value)[:60], error.code().name, error.details()))
    assert complaints == []


def fields_in(error: grpc.aio.AioRpcError) -> list[str]:
    if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
        return []
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it reads the same three methods
    details = error_details_pb2.BadRequest()
    found = [each for each in status.details if each.Unpack(details)] if status else []
    return [each.field.partition("[")[0] for each in details.field_violations] if found else []
