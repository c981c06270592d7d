"""A switch between network namespaces: a process of its own that passes Ethernet frames, loses or delays them as told.

python switch.py SEED NAMESPACE ...     (the stdlib is all it needs; as root)

It makes an interface eth0 in each namespace (a tap, open as long as this process lives). Host `i`, counted from 0 in
the order of the arguments, has the hardware address 02:00:00:00:00:ii, by which frames find their way: nobody asks by
ARP. Orders come as lines of JSON on stdin, and each is answered by a line on stdout when it is in force:

    {"ways": [[0, 1], [1, 0]], "loss": 0.3, "delay_ms": 500, "jitter_ms": 0}   -> {}
    {"count": true}                          -> {"passed": [[...], ...], "dropped": [[...], ...]}, by [from][to]

`loss` is the share of frames that are dropped, 1 for all. `delay_ms` delays the others, by up to `jitter_ms` more. The
switch ends when stdin does, so whoever started it need not live to say so.
"""

import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
NAMESPACES = Path("/run/netns")
PREFIX = b"\x02\x00\x00\x00\x00"  # of hardware addresses; the host's number follows
FRAME_BYTES = 65_536
BURST = 64  # frames taken from one host before the others get their turn
LIBC = ctypes.CDLL(None, use_errno=True)


def enter_namespace(path: Path) -> None:
    """The calling thread's network is that one from now on. Raises OSError."""
    with path.open("rb") as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))


def open_tap(namespace: str) -> int:
    """The other end of a new eth0 there. Raises OSError."""
    enter_namespace(NAMESPACES / namespace)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | IFF_NO_PI))
    return tap


@dataclass
class Way:
    """From one host to another."""

    loss: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    passed: int = 0
    dropped: int = 0


@dataclass
class Switch:
    """Frames from everybody to everybody. `taps` by the host's number."""

    taps: list[int]
    chance: random.Random
    ways: list[list[Way]] = field(init=False)
    late: list[tuple[float, int, int, int, bytes]] = field(default_factory=list)  # due, serial, from, to, frame
    serial: int = 0

    def __post_init__(self) -> None:
        self.ways = [[Way() for _ in self.taps] for _ in self.taps]

    def take(self, source: int) -> None:
        """Whatever that host sends now."""
        for _ in range(BURST):
            try:
                frame = os.read(self.taps[source], FRAME_BYTES)
            except BlockingIOError:
                return
            target = frame[5] if frame[:5] == PREFIX else -1  # else a broadcast, which nobody here needs
            if 0 <= target < len(self.taps) and target != source:
                self.pass_on(source, target, frame)

    def pass_on(self, source: int, target: int, frame: bytes) -> None:
        way = self.ways[source][target]
        if way.loss and self.chance.random() < way.loss:
            way.dropped += 1
        elif way.delay_ms or way.jitter_ms:
            delay_s = (way.delay_ms + way.jitter_ms * self.chance.random()) / 1_000
            self.serial += 1
            heapq.heappush(self.late, (time.monotonic() + delay_s, self.serial, source, target, frame))
        else:
            self.write(way, target, frame)

    def write(self, way: Way, target: int, frame: bytes) -> None:
        try:
            os.write(self.taps[target], frame)
        except OSError:  # that host's interface is down, or its queue is full
            way.dropped += 1
        else:
            way.passed += 1

    def deliver(self) -> float | None:
        """What is due of the delayed. Seconds until there is more; None: nothing is under way."""
        while self.late:
            due, _, source, target, frame = self.late[0]
            wait_s = due - time.monotonic()
            if wait_s > 0:
                return wait_s
            heapq.heappop(self.late)
            way = self.ways[source][target]
            if way.loss >= 1:  # it was cut while the frame was under way
                way.dropped += 1
            else:
                self.write(way, target, frame)
        return None

    def obey(self, order: dict[str, object]) -> dict[str, object]:
        if "count" in order:
            return {
                "passed": [[way.passed for way in row] for row in self.ways],
                "dropped": [[way.dropped for way in row] for row in self.ways],
            }
        pairs = order["ways"]
        assert isinstance(pairs, list), order
        for source, target in pairs:
            way = self.ways[source][target]
            for name in ("loss", "delay_ms", "jitter_ms"):
                value = order[name]
                assert isinstance(value, int | float), order
                setattr(way, name, float(value))
        return {}


def serve(switch: Switch) -> None:
    """Until stdin ends."""
    stdin, typed = sys.stdin.fileno(), b""
    os.set_blocking(stdin, False)
    poll = select.epoll()
    poll.register(stdin, select.EPOLLIN)
    source_of = {tap: source for source, tap in enumerate(switch.taps)}
    for tap in switch.taps:
        poll.register(tap, select.EPOLLIN)
    while True:
        wait_s = switch.deliver()
        for ready, _ in poll.poll(wait_s):
            if ready != stdin:
                switch.take(source_of[ready])
                continue
            with contextlib.suppress(BlockingIOError):
                data = os.read(stdin, FRAME_BYTES)
                if not data:
                    return
                *lines, typed = (typed + data).split(b"\n")
                for line in lines:
                    print(json.dumps(switch.obey(json.loads(line))), flush=True)


def main(arguments: Sequence[str]) -> None:
    seed, *namespaces = arguments
    switch = Switch([open_tap(namespace) for namespace in namespaces], random.Random(int(seed)))
    print("{}", flush=True)  # the interfaces are there
    serve(switch)


if __name__ == "__main__":
    main(sys.argv[1:])
