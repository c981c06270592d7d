"""Targets: a real controller process on a real PostgreSQL, asked over sockets: every RPC, runners' streams, HTTP.

Nothing may be an unforeseen error (INTERNAL, UNKNOWN; a traceback in its log), and it goes on. The process is the
test's own (`Served.use`), or one that is started for the run.
"""

import atexit
import contextlib
import socket
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import psutil
from google.protobuf import message as protobuf
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from cronring.controller.api.rest.bindings import services
from cronring.protos.gossip.v1 import gossip_pb2
from cronring.protos.runner.v1 import runner_pb2
from tests.fuzz.bounds import Misbehaved
from tests.support.cluster import Cluster, Process
from tests.support.databases import running_server

SEPARATOR: Final = b"\xff\x00\xff"
_UNFORESEEN: Final = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS})
_CALL_S: Final = 5.0
_STREAM_S: Final = 0.15
_MESSAGES_MAX: Final = 20
_RSS_MAX: Final = 700 << 20
_BROKEN: Final = ("Traceback", "api_error", "controller_failed")

METHODS: Final[tuple[MethodDescriptor, ...]] = tuple(
    method for service in (*services(), *gossip_pb2.DESCRIPTOR.services_by_name.values()) for method in service.methods
)


class Served:
    """One controller, and the connections to it. `use` names it; without, one is started at the first question."""

    current: "Served | None" = None

    def __init__(self, process: Process) -> None:
        self.process = process
        self.channel = grpc.insecure_channel(process.grpc)
        self._log_read = len(process.log.read_text(errors="replace"))

    @classmethod
    @contextlib.contextmanager
    def use(cls, process: Process) -> Iterator["Served"]:
        served = cls.current = cls(process)
        try:
            yield served
        finally:
            cls.current = None
            served.channel.close()

    @classmethod
    def get(cls) -> "Served":
        if cls.current is None:
            stack = contextlib.ExitStack()
            atexit.register(stack.close)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(running_server("postgres18"))
            cluster = stack.enter_context(Cluster(server.url(server.create_database()), folder))
            cls.current = cls(cluster.start_controller())
        return cls.current

    def check(self) -> None:
        """It lives, answers, has not grown, and has met nothing that nobody foresaw."""
        if not self.process.alive():
            raise Misbehaved(f"the controller died: {self.process.tail()}")
        with urllib.request.urlopen(f"http://{self.process.http}/healthz", timeout=60) as answer:
            if answer.status != 200:
                raise Misbehaved(f"/healthz says {answer.status}")
        rss = psutil.Process(self.process.pid).memory_info().rss
        if rss > _RSS_MAX:
            raise Misbehaved(f"the controller holds {rss >> 20} MiB")
        log = self.process.log.read_text(errors="replace")
        new, self._log_read = log[self._log_read :], len(log)
        lines = [line for line in new.splitlines() if any(word in line for word in _BROKEN)]
        if lines and "deserializing" not in new:
            raise Misbehaved(f"in the controller's log: {lines[:3]}\n{new[-3_000:]}")


def request_class(method: MethodDescriptor) -> type[protobuf.Message]:
    return message_factory.GetMessageClass(method.input_type)


def grpc_request(data: bytes) -> None:
    """The first byte picks the method, the rest is its request."""
    if not data:
        return
    method = METHODS[data[0] % len(METHODS)]
    request = data[1:]
    with contextlib.suppress(protobuf.DecodeError):
        request_class(method).FromString(request)
        ask(method, request)


def ask(method: MethodDescriptor, request: bytes) -> grpc.StatusCode:
    """Call it. Raises Misbehaved for an error that nobody foresaw, or that says nothing."""
    served = Served.get()
    path = f"/{method.containing_service.full_name}/{method.name}"
    try:
        if method.server_streaming:
            call: Any = served.channel.unary_stream(path, None, None)(request, timeout=_STREAM_S)
            for _ in zip(range(3), call, strict=False):
                pass
            call.cancel()
        else:
            served.channel.unary_unary(path, None, None)(request, timeout=_CALL_S)
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        late = code is grpc.StatusCode.DEADLINE_EXCEEDED and not method.server_streaming
        if code in _UNFORESEEN or late or not details:
            raise Misbehaved(f"{path}: {code} {details!r} for {request!r}\n{served.process.tail(40)}") from error
        return code
    return grpc.StatusCode.OK


def runner_stream(data: bytes) -> None:
    """A stream's messages in any order; an odd first byte says Hello as it ought to be."""
    served = Served.get()
    messages = []
    for part in data[1:].split(SEPARATOR)[:_MESSAGES_MAX]:
        with contextlib.suppress(protobuf.DecodeError):
            runner_pb2.RunnerMessage.FromString(part)
            messages.append(part)
    if data[:1] and data[0] % 2:
        messages.insert(0, runner_pb2.RunnerMessage(hello=runner_pb2.Hello(runner_id="fuzz")).SerializeToString())
    call: Any = served.channel.stream_stream("/cronring.runner.v1.RunnerGateway/Connect", None, None)(
        iter(messages), timeout=_CALL_S
    )
    try:
        for _ in zip(range(50), call, strict=False):
            pass
        call.cancel()
    except grpc.RpcError:
        if call.code() in _UNFORESEEN or (call.code() is not grpc.StatusCode.CANCELLED and not call.details()):
            raise Misbehaved(f"{call.code()} {call.details()!r}\n{served.process.tail(40)}") from None


def http_bytes(data: bytes) -> None:
    """Anything on the HTTP port: refused with a status, or the connection is closed."""
    _port(Served.get().process.http, data, b"HTTP/")


def grpc_bytes(data: bytes) -> None:
    """Anything on the gRPC port, after HTTP/2's preface if the first byte is odd."""
    preface = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" if data[:1] and data[0] % 2 else b""
    )
    _port(Served.get().process.grpc, preface + data[1:], b"")


def _port(address: str, data: bytes, begins: bytes) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_CALL_S) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while len(answer) < 1 << 20 and (part := connection.recv(1 << 16)):
                answer += part
    if begins and answer:
        if not answer.startswith(begins):
            raise Misbehaved(f"{answer[:80]!r} for {data[:200]!r}")
        status = int(answer.split(b" ", 2)[1])
        if status >= 500 and status != 503:
            raise Misbehaved(f"HTTP {status} for {data[:200]!r}")
