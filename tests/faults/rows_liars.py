"""Runners that lie, bytes that are no protocol, and thousands of runners that come and go."""

import asyncio
import contextlib
import re
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

import psutil

from tests.faults import liars
from tests.faults.row import row
from tests.faults.stage import Stage
from tests.support.cluster import Process
from tests.support.looking import look

LONG_S = 60.0
BORNE_MAX = 2  # liars that stay below their allowance, in a short form
PROMISE: Final = "refused, counted, nobody else disturbed"
GROWTH_MAX_MIB: Final = 200
HONEST_OUTCOMES: Final = """
SELECT e.outcome, count(*) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
WHERE j.module = 'steady' AND e.outcome IS NOT NULL GROUP BY 1
"""
LIARS_ENDS: Final = """
SELECT e.outcome, e.error_message, count(*) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
WHERE j.module = $1 AND e.outcome IS NOT NULL GROUP BY 1, 2
"""
HELD_S: Final = """
SELECT coalesce(max(extract(epoch FROM coalesce(e.ended_at, now()) - e.claimed_at)), 0)::float8
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id WHERE j.module = $1
"""


def refused(controllers: list[Process]) -> Counter[str]:
    """What all controllers together say that they refused, by kind."""
    counts: Counter[str] = Counter()
    for controller in controllers:
        with urllib.request.urlopen(f"http://{controller.http}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        for what, count in re.findall(r'^cronring_refused_total\{what="(\w+)"\} (\S+)$', text, re.MULTILINE):
            counts[what] += int(float(count))
    return counts


def cut_off(controllers: list[Process], runner: str) -> list[str]:
    """The lines of the controllers' logs that say why."""
    lines = [line for each in controllers for line in each.log.read_text(errors="replace").splitlines()]
    return [line for line in lines if "runner_cut_off" in line and f'"{runner}-' in line]


def resident_mib(controllers: list[Process]) -> int:
    """Of the largest of them."""
    return max(psutil.Process(each.pid).memory_info().rss for each in controllers) >> 20


def fetch(stage: Stage, query: str, *arguments: Any) -> list[Any]:
    async def ask() -> list[Any]:
        connection = await look(stage.cluster.database_url)
        try:
            return await connection.fetch(query, *arguments)
        finally:
            await connection.close()

    return asyncio.run(ask())


class Memory:
    """The most that a controller held while it is looked at, over what it held before."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._before = self.most = resident_mib(stage.cluster.controllers)

    def look(self) -> None:
        self.most = max(self.most, resident_mib(self._stage.cluster.controllers))

    def settle(self, bound_mib: int = GROWTH_MAX_MIB) -> None:
        self.look()
        grown = self.most - self._before
        self._stage.measured["memory"] = f"+{grown} MiB at most"
        self._stage.expect(grown <= bound_mib, f"a controller grew by {grown} MiB; at most {bound_mib} are allowed")


def meanwhile(work: Callable[[], Coroutine[Any, Any, Any]], look: Callable[[], None]) -> None:
    """Run it in a thread of its own; `look` each half second until it is over. Raises what it raises."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:  # raised again below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        look()
        thread.join(timeout=0.5)
    if failed:
        raise failed[0]


def only_honest_ends(stage: Stage) -> None:
    """Whatever was said of them by others, what honest runners ran ended as it did."""
    outcomes = {record["outcome"]: record["count"] for record in fetch(stage, HONEST_OUTCOMES)}
    stage.expect(set(outcomes) == {"completed"}, f"honest runs ended as {outcomes}")
    stage.measured["honest runs"] = str(sum(outcomes.values()))


@row(
    "lying-runners", fault="seven runners that lie at once, beside honest ones", promise=PROMISE, short_s=14, long_s=120
)
def lying_runners(stage: Stage) -> None:
    """They end twice, end what is others' or never was, flood, and say garbage; cut off, they come again."""
    stage.start()
    memory = Memory(stage)
    url = stage.cluster.database_url
    addresses = [each.grpc for each in stage.cluster.controllers]
    all_liars = [kind(addresses[n % len(addresses)], url) for n, kind in enumerate(liars.ALL)]
    until = time.monotonic() + stage.seconds

    async def lie() -> None:
        await asyncio.gather(*(liar.live(until) for liar in all_liars))

    for liar in all_liars:
        stage.fault(type(liar).__name__)
    meanwhile(lie, memory.look)
    counts, borne = refused(stage.cluster.controllers), list[str]()
    for liar in all_liars:
        name = type(liar).__name__
        stage.tell(f"{name} said {liar.said}, cut off: {dict(liar.cut_off)}")
        stage.expect(counts[liar.what] > 0, f"{name}: nothing is counted as {liar.what}")
        if not liar.reasons:  # slow enough to be borne
            continue
        if not liar.cut_off and stage.seconds < LONG_S:  # on a busy machine it isn't given enough to lie about
            borne.append(name)
            continue
        stage.expect(bool(liar.cut_off), f"{name} was never cut off")
        # Who writes as its stream ends hears of an internal error at its own end; the log has the reason.
        told = [*liar.cut_off, *cut_off(stage.cluster.controllers, name)]
        right = any(part in reason for part in liar.reasons for reason in told)
        stage.expect(right, f"{name} was not cut off for {liar.reasons}, but {told}")
    stage.expect(len(borne) <= BORNE_MAX, f"{borne} were never cut off")
    ends = {(each["outcome"], each["error_message"]) for each in fetch(stage, LIARS_ENDS, "liars")}
    # What it was given and had not ended when it was cut off goes the way of every lost runner's runs.
    stage.expect(("failed", "a lie") not in ends, f"its own runs were ended twice: {ends}")
    stage.bounds.outcomes = frozenset({"completed", "lost"})
    stage.measured["refused"] = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    stage.measured["cut off"] = str(sum(liar.cut_off.total() for liar in all_liars))
    memory.settle()
    only_honest_ends(stage)


GARBAGE: Final = (
    b"\x00" * 70_000, b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5_000, b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000,
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", b"\r\n" * 1_000, b"",
)  # fmt: skip


def throw(address: str, data: bytes, held: list[socket.socket]) -> None:
    """Send it, and hear whatever there is at once; of every tenth connection nothing more ever comes."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=2)
    connection.settimeout(0.05)
    with contextlib.suppress(OSError):
        connection.sendall(data)
        connection.recv(4_096)
    if len(held) < 200:
        held.append(connection)
    else:
        connection.close()


@row("garbage", fault="bytes that are no protocol, on the gRPC and HTTP ports", promise=PROMISE, short_s=8, long_s=60)
def garbage(stage: Stage) -> None:
    stage.start(controllers=2, runners=1)
    memory = Memory(stage)
    until = time.monotonic() + stage.seconds
    held: list[socket.socket] = []
    connections = 0
    log_bytes = sum(each.log.stat().st_size for each in stage.cluster.controllers)
    while time.monotonic() < until:
        for controller in stage.cluster.controllers:
            for data in GARBAGE:
                throw(controller.grpc, data, held)
                throw(controller.http, data, held)
                connections += 2
        memory.look()
    for connection in held:
        connection.close()
    stage.fault("connection of garbage", f"{connections} of them")
    stage.faults["connection of garbage"] = connections
    counts = refused(stage.cluster.controllers)
    stage.expect(counts["http"] > 0, f"what is no HTTP is not counted: {dict(counts)}")
    logged = sum(each.log.stat().st_size for each in stage.cluster.controllers) - log_bytes
    stage.expect(logged < 100_000, f"it filled the logs with {logged} bytes")
    stage.measured["refused"] = f"{counts['http']} on HTTP"
    memory.settle(100)
    only_honest_ends(stage)


HARD_TIMEOUT_S: Final = 2.0 + 30.0  # the verb's own, and the grace after it (docs/operations.md)


@row(
    "never-reads", fault="a runner that takes runs, gives signs of life, and never reads its stream",
    promise="its runs are ended by their hard timeout and go by policy; memory bounded; nobody else disturbed",
    short_s=40, long_s=120, soak_only=True,
)  # fmt: skip
def never_reads(stage: Stage) -> None:
    stage.start(controllers=2, runners=1)
    memory = Memory(stage)
    verbs = {f"hoard_{number:03}": "*/5 * * * * *" for number in range(100)}
    began = time.time()

    async def hoard() -> None:
        async with liars.NeverReads(stage.cluster.controllers[0].grpc, "hoards", verbs).connected():
            await asyncio.sleep(stage.seconds)

    stage.fault("never reads", f"{len(verbs)} jobs")
    meanwhile(hoard, memory.look)
    ends = {each["outcome"]: each["count"] for each in fetch(stage, LIARS_ENDS, "hoards")}
    [[longest_s]] = [tuple(record) for record in fetch(stage, HELD_S, "hoards")]
    stage.tell(f"of its runs: {ends}, the longest {longest_s:.1f} s, {time.time() - began:.0f} s later")
    stage.expect(bool(ends), "none of its runs was ended")
    stage.expect(longest_s <= HARD_TIMEOUT_S + 5, f"a run was with it for {longest_s:.1f} s")
    stage.bounds.outcomes = frozenset({"completed", "timed_out", "lost"})
    stage.measured["held"] = f"{longest_s:.1f} s at most, of {HARD_TIMEOUT_S:g} allowed"
    memory.settle()
    only_honest_ends(stage)


KEPT_RUNNERS: Final = 1_000
FORGOTTEN_S: Final = 90.0  # a minute, and the next renewal


def remembered(stage: Stage) -> int:
    [record] = fetch(stage, "SELECT count(*) AS count FROM runners")
    return int(record["count"])


@row(
    "reconnects", fault="runners that come, say Hello and go: 10,000 in the long form, 1,000 in the short",
    promise="tables and memory don't grow without end, nobody else disturbed", short_s=10, long_s=100,
)  # fmt: skip
def reconnects(stage: Stage) -> None:
    stage.start()
    memory = Memory(stage)
    count = round(stage.seconds * 100)
    addresses = [each.grpc for each in stage.cluster.controllers]
    came: Counter[str] = Counter()

    async def pass_by() -> None:
        each = count // len(addresses) + 1
        for counted in await asyncio.gather(*(liars.reconnect(address, each, 8) for address in addresses)):
            came.update(counted)

    began = time.monotonic()
    meanwhile(pass_by, memory.look)
    took_s = time.monotonic() - began
    stage.fault("runner that comes and goes", f"{dict(came)} in {took_s:.1f} s")
    stage.faults["runner that comes and goes"] = came.total()
    stage.expect(came["welcomed"] >= count, f"not all were welcomed: {dict(came)}")
    stage.wait_until(
        "no more than the newest are remembered", lambda: remembered(stage) <= KEPT_RUNNERS + 5, FORGOTTEN_S
    )
    stage.measured["runners remembered"] = str(remembered(stage))
    stage.measured["rate"] = f"{came.total() / took_s:.0f}/s"
    memory.settle(100)
    only_honest_ends(stage)
