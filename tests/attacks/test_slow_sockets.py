"""Connections that say little: they end, and nobody waits for them."""

import contextlib
import socket
import time
import urllib.request
from collections.abc import Iterator

from cronring.controller.api.connections import CONNECTIONS_MAX, REQUEST_S
from tests.support.cluster import Process

BUSY_S = 30.0  # that a busy machine may need in addition


@contextlib.contextmanager
def dripping(process: Process, count: int) -> Iterator[list[socket.socket]]:
    host, _, port = process.http.rpartition(":")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((host, int(port)), timeout=BUSY_S)) for _ in range(count)]


def is_open(connection: socket.socket) -> bool:
    """Also lets one more byte drip, and takes what was answered."""
    try:
        connection.send(b"a")
        connection.setblocking(False)
        return connection.recv(4_096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def drip_until_closed(process: Process, connections: list[socket.socket], beginning: bytes) -> None:
    """Somebody else is answered all the while."""
    ends = time.monotonic() + REQUEST_S + BUSY_S
    for connection in connections:
        connection.sendall(beginning)
    while any(list(map(is_open, connections))):
        assert time.monotonic() < ends, "they are still open"
        assert best_answer_s(process) < REQUEST_S / 5
        time.sleep(0.25)  # a drip


def best_answer_s(process: Process) -> float:
    """Of three: who waits for the slow ones does so each time."""
    best = float("inf")
    for _ in range(3):
        began = time.monotonic()
        with urllib.request.urlopen(f"http://{process.http}/healthz", timeout=BUSY_S) as answer:
            assert answer.status == 200
        best = min(best, time.monotonic() - began)
    return best


def test_dripping_connections_end(victim: Process) -> None:
    began = time.monotonic()
    with dripping(victim, 100) as connections:
        drip_until_closed(victim, connections, b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-")
    assert time.monotonic() - began > REQUEST_S / 2


def test_more_than_there_are_places_take_none_from_who_asks(victim: Process) -> None:
    with dripping(victim, CONNECTIONS_MAX + 50) as connections:
        assert best_answer_s(victim) < REQUEST_S / 5
        open_ones = sum(is_open(connection) for connection in connections)
        assert 0 < open_ones <= CONNECTIONS_MAX
        assert not is_open(connections[0])


def test_a_body_that_drips_is_not_waited_for(victim: Process) -> None:
    with dripping(victim, 20) as connections:
        drip_until_closed(victim, connections, b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
