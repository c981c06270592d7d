"""Raw gRPC for attacks: every method that is served, bodies that grow when they are read, and what they cost."""

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

import grpc
import psutil
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tests.fuzz.servers import METHODS as FUZZED
from tests.support.cluster import Process

METHODS: Final[tuple[MethodDescriptor, ...]] = (
    *FUZZED,
    *(
        method
        for file in (health_pb2, reflection_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ),
)
# An answer that says what was wrong with the request: neither a fault of the controller's, nor silence.
CLEAN: Final = frozenset({
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNIMPLEMENTED,
})  # fmt: skip
CALL_S: Final = 20.0
_OPTIONS: Final = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def growing(descriptor: Any, size: int) -> bytes:
    """`size` bytes, each two of which become an object: of the first field that repeats, however deep, or of none."""
    way = _way_to_many(descriptor, 4)
    field = way[-1].number if way else 100
    body = _tag(field, 2) + b"\0"
    body *= size // len(body)
    for outer in reversed(way[:-1]):
        body = _tag(outer.number, 2) + _varint(len(body)) + body
    return body


def _way_to_many(descriptor: Any, depth: int) -> list[FieldDescriptor]:
    if depth == 0:
        return []
    nested = [field for field in descriptor.fields if field.message_type is not None]
    for field in nested:
        if field.is_repeated:
            return [field]
    for field in nested:
        if found := _way_to_many(field.message_type, depth - 1):
            return [field, *found]
    return []


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


class Caller:
    """One connection, of bytes."""

    def __init__(self, address: str, calls_s: float = CALL_S) -> None:
        self._calls_s = calls_s
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def ask(
        self, method: MethodDescriptor, body: bytes, compression: grpc.Compression = grpc.Compression.NoCompression
    ) -> tuple[grpc.StatusCode, str]:
        """The status, and its words; of a stream when it ends."""
        kind = ("stream" if method.client_streaming else "unary", "stream" if method.server_streaming else "unary")
        call: Any = getattr(self._channel, "_".join(kind))(path_of(method), None, None)
        request = iter([body]) if method.client_streaming else body
        try:
            answers = call(request, timeout=self._calls_s, compression=compression)
            for _ in answers if method.server_streaming else ():
                pass
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        return grpc.StatusCode.OK, ""


class Peak:
    """The most memory that a process has while this is open, beyond what it had: `grown`, in bytes."""

    def __init__(self, process: Process) -> None:
        self._process = psutil.Process(process.pid)
        self._before = self._highest = self._process.memory_info().rss
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self._highest - self._before

    def _watch(self) -> None:
        while not self._over.wait(0.002):
            with contextlib.suppress(psutil.NoSuchProcess):
                self._highest = max(self._highest, self._process.memory_info().rss)


@contextlib.contextmanager
def connected(process: Process, calls_s: float = CALL_S) -> Iterator[Caller]:
    caller = Caller(process.grpc, calls_s)
    try:
        yield caller
    finally:
        caller.close()
