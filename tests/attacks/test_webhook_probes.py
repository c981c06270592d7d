"""Who may add a webhook learns nothing of hosts and ports that only controllers reach, but whether HTTP is answered."""

import asyncio
import contextlib
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.webhooks import NO_ANSWER, TIMED_OUT, UNTRUSTED, HttpPosting
from cronring.protos.cronring.v1 import notifications_pb2 as pb2
from cronring.protos.cronring.v1 import notifications_pb2_grpc
from tests.support.cluster import Process, free_port

SECRET: Final = b"OpenSSH_9.7 root:hunter2"


class Ends:
    """Listens, and says `first` to whoever connects, whatever that says; then it hangs up, or resets."""

    def __init__(self, first: bytes, *, reset: bool = False, stay: bool = False) -> None:
        self._first, self._reset, self._stay = first, reset, stay

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
            writer.write(self._first)
            await writer.drain()
            if self._stay:
                await reader.read()
        if self._reset:
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.close()


SERVICES: Final[dict[str, Callable[[], Ends]]] = {
    "a banner": lambda: Ends(SECRET + b"\r\n"),
    "silence, then an end": lambda: Ends(b""),
    "a reset": lambda: Ends(b"", reset=True),
    "half a head": lambda: Ends(b"HTTP/1.1 200 " + SECRET),
    "a status that is none": lambda: Ends(b"HTTP/1.1 " + SECRET + b"\r\n\r\n"),
    "a header that is none": lambda: Ends(b"HTTP/1.1 200 OK\r\n" + SECRET + b"\r\n\r\n"),
}


@contextlib.asynccontextmanager
async def listening(service: Ends, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(service, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_ports_are_told_alike(victim: Process) -> None:
    """By the test of a webhook; closed ones, and open ones that speak anything but HTTP."""
    told: dict[str, tuple[int, str]] = {}
    async with contextlib.AsyncExitStack() as stack:
        closed = free_port()
        ports = {"nobody": closed}
        for name, made in SERVICES.items():
            ports[name] = await stack.enter_async_context(listening(made()))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(victim.grpc))
        webhooks: Any = notifications_pb2_grpc.NotificationsStub(channel)
        for scheme in ("http", "https"):
            for name, port in ports.items():
                url = f"{scheme}://127.0.0.1:{port}/"
                await webhooks.AddWebhook(pb2.AddWebhookRequest(name=f"{scheme}{port}", url=url))
                found = await webhooks.TestWebhook(pb2.TestWebhookRequest(name=f"{scheme}{port}"))
                told[f"{scheme} at {name}"] = found.status, found.error
    assert set(told.values()) == {(0, NO_ANSWER)}, told
    log = victim.log.read_text()
    assert f"127.0.0.1:{closed}" in log, "who runs the controller is told"
    assert SECRET.decode() not in log


async def test_who_is_slow_and_who_is_not_trusted_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cronring.controller.runtime.webhooks.TIMEOUT_S", 1.0)
    log = Log(SystemClock(), Metrics())
    posting = HttpPosting(log)
    try:
        async with listening(Ends(b"HTTP/1.1 200 " + SECRET, stay=True)) as port:
            slow = await posting.post(f"http://127.0.0.1:{port}/", b"{}", {})
        async with listening(Ends(b""), certificate(tmp_path)) as port:
            untrusted = await posting.post(f"https://127.0.0.1:{port}/", b"{}", {})
        async with listening(Ends(b"HTTP/1.1 503 " + SECRET + b"\r\n\r\n")) as port:
            failing = await posting.post(f"http://127.0.0.1:{port}/", b"{}", {})
    finally:
        await posting.close()
    assert slow.answer[:2] == (None, TIMED_OUT)
    assert untrusted.answer[:2] == (None, UNTRUSTED)
    assert failing.answer[:2] == (503, "HTTP 503")


def test_no_class_says_more_than_it_is() -> None:
    assert not re.search(r"\d{3}|errno|refused|reset", " ".join([NO_ANSWER, TIMED_OUT, UNTRUSTED]), re.IGNORECASE)


def certificate(folder: Path) -> ssl.SSLContext:
    """Signed by itself."""
    key, made = folder / "key.pem", folder / "made.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-days", "2", "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context
