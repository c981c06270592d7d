"""The hosts that trials of networks run on: what is cut is cut, what is slow is slow, and nothing stays behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support import switch
from tests.support.hosts import Hosts, Weather, why_not
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
PORT = 9000
ECHO = f"""
import socket
server = socket.create_server(("", {PORT}))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(65536):
        connection.sendall(data)
"""
ABANDONED = """
import os, sys
from tests.support.hosts import Hosts
Hosts(["a"]).__enter__()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Hosts a and b; b echoes."""
    with Hosts(["a", "b"], seed=7) as both:
        echo = subprocess.Popen([*both.enter("b"), sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
        assert echo.stdout is not None
        assert echo.stdout.readline() == b"listening\n"
        yield both
        echo.kill()
        echo.communicate()


def connect(hosts: Hosts) -> socket.socket:
    connection = hosts.connect("a", hosts.address("b"), PORT, timeout_s=TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def round_trip_s(connection: socket.socket) -> float:
    began = time.monotonic()
    connection.sendall(b"x")
    assert connection.recv(1) == b"x"
    return time.monotonic() - began


def test_what_is_cut_is_silent_and_goes_on_when_it_is_healed(hosts: Hosts) -> None:
    with connect(hosts) as connection:
        round_trip_s(connection)
        hosts.cut("a", "b")
        connection.settimeout(0.5)
        connection.sendall(b"x")
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert hosts.frames("a", "b").dropped > 0
        hosts.heal()
        connection.settimeout(TIMEOUT_S)
        assert connection.recv(1) == b"x"


def test_one_way_only(hosts: Hosts) -> None:
    with connect(hosts) as connection:
        hosts.cut("b", "a", one_way=True)
        before = hosts.frames("a", "b")
        connection.sendall(b"x")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        after = hosts.frames("a", "b")
        assert after.passed > before.passed
        assert after.dropped == before.dropped
        assert hosts.frames("b", "a").dropped > 0


def test_what_is_slow_takes_its_time_each_way(hosts: Hosts) -> None:
    with connect(hosts) as connection:
        hosts.worsen("a", "b", Weather(delay_ms=100))
        assert round_trip_s(connection) >= 0.2
        hosts.heal()
        assert min(round_trip_s(connection) for _ in range(20)) < 0.2


def test_a_share_of_frames_is_lost(hosts: Hosts) -> None:
    hosts.worsen("a", "b", Weather(loss=0.3), one_way=True)
    with connect(hosts) as connection:
        connection.settimeout(60)
        before = hosts.frames("a", "b")
        for _ in range(60):
            round_trip_s(connection)
    after = hosts.frames("a", "b")
    passed, dropped = after.passed - before.passed, after.dropped - before.dropped
    assert 0.1 < dropped / (passed + dropped) < 0.5  # four standard deviations


def test_a_host_without_a_link_knows_it(hosts: Hosts) -> None:
    hosts.link_down("a")
    with pytest.raises(OSError, match="unreachable"):
        hosts.connect("a", hosts.address("b"), PORT)
    hosts.link_up("a")
    with connect(hosts) as connection:
        round_trip_s(connection)


def test_hosts_of_a_test_that_was_killed_are_removed_by_the_next() -> None:
    killed = subprocess.Popen(
        [sys.executable, "-c", ABANDONED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    pid = int(killed.stdout.readline())
    left = f"cronring-{pid}-1-a"
    assert (switch.NAMESPACES / left).exists()
    os.kill(pid, signal.SIGKILL)
    killed.communicate()
    with Hosts(["b"]):
        assert not (switch.NAMESPACES / left).exists()


def test_nothing_stays_behind() -> None:
    with Hosts(["a"]) as hosts:
        namespace = hosts.namespace("a")
        sleeper = subprocess.Popen([*hosts.enter("a"), "sleep", "60"])
        deadline = time.monotonic() + TIMEOUT_S
        while str(sleeper.pid) not in _inside(namespace):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert sleeper.wait(timeout=TIMEOUT_S) == -signal.SIGKILL
    assert not (switch.NAMESPACES / namespace).exists()
    with contextlib.suppress(FileNotFoundError):
        assert namespace not in os.listdir(switch.NAMESPACES)


def _inside(namespace: str) -> list[str]:
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    return done.stdout.split()
