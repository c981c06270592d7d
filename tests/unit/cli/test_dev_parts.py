"""The parts of `cronring dev` that draw and print, from states made by hand."""

import asyncio
import dataclasses
import io
import signal
import socket
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cronring.cli.dev import happenings as say
from cronring.cli.dev.feed import DevFeed
from cronring.cli.dev.panels import picture
from cronring.cli.dev.plain import Plain, line
from cronring.cli.dev.processes import DevProcess, Processes, free_addresses
from cronring.cli.dev.state import RECENT_EXECUTIONS, DevState
from cronring.cli.dev.summary import last_line, outcomes_line, settled
from cronring.cli.glance import bar, countdown
from cronring.cli.output import milliseconds
from cronring.client import AsyncClient, convert
from cronring.client.model import Audit
from tests.unit.cli.fake_api import FakeApi, execution, job
from tests.unit.cli.fake_times import EPOCH


def books(**counts: Any) -> Audit:
    nothing: dict[str, Any] = dict.fromkeys((field.name for field in dataclasses.fields(Audit)), 0)
    nothing |= {"skipped": {}, "outcomes": {}, "findings": (), "until": None, "summarised_until": None, "remark": ""}
    return Audit(**(nothing | counts))


BOOKS = books(ticks=87, executed=81, skipped={"overlap": 6}, outcomes={"completed": 79, "failed": 2})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "due"), (0, "due"), (0.04, "40ms"), (2.44, "2.4s"), (42.2, "42.2s"), (754, "12m34s"), (3600, "1h"),
     (18_720, "5h12m"), (273_600, "3d4h")],
)  # fmt: skip
def test_countdown(seconds: float, text: str) -> None:
    assert countdown(seconds) == text


def test_lateness_has_a_sign_and_durations_a_unit() -> None:
    assert [milliseconds(value, signed=True) for value in (None, 0.04, 3.06, -1.0, 2500)] == [
        "-",
        "+0ms",
        "+3.1ms",
        "-1ms",
        "+2.5s",
    ]
    assert [milliseconds(value) for value in (None, 12.34, 1500)] == ["-", "12ms", "1.5s"]


@pytest.mark.parametrize(("share", "cells"), [(0, "    "), (1, "████"), (0.5, "██  "), (0.28, "█▏  "), (7, "████")])
def test_bar_is_as_long_as_the_share_and_never_longer(share: float, cells: str) -> None:
    assert bar(share, 4) == cells


def test_last_line() -> None:
    assert last_line(BOOKS) == "ticks due 87 | executed 81 | skipped 6 (overlap 6) | unaccounted: 0"
    none = books(ticks=3, executed=2, unaccounted=1)
    assert last_line(none) == "ticks due 3 | executed 2 | skipped 0 | unaccounted: 1"
    waits = books(ticks=3, executed=2, pending=1)
    assert last_line(waits) == "ticks due 3 | executed 2 | skipped 0 | pending 1 | unaccounted: 0"
    assert outcomes_line(BOOKS, 12.34) == "outcomes: completed 79, failed 2 | worst lateness 12ms"


def test_settled_means_nothing_runs_and_nothing_misses() -> None:
    assert settled(BOOKS)
    assert not settled(books(ticks=3, executed=2, running=1))
    assert not settled(books(ticks=3, executed=2, pending=1))
    assert not settled(books(ticks=3, executed=2, unaccounted=1))


MOMENT = datetime(2026, 11, 21, 8, 0, 1, 234567, UTC)


@pytest.mark.parametrize(
    ("happening", "text"),
    [
        (say.StartProgress("the tables are up to date"), 'progress step="the tables are up to date"'),
        (say.ProcessStarted("controller-1", 7, "127.0.0.1:1", "127.0.0.1:2"),
         "process_started name=controller-1 pid=7 grpc=127.0.0.1:1 http=127.0.0.1:2"),
        (say.ProcessStarted("runner-1", 8, "", ""), "process_started name=runner-1 pid=8"),
        (say.ProcessEnded("controller-1", 7, "killed by SIGKILL", "2 left, the ring heals"),
         'process_ended name=controller-1 pid=7 how="killed by SIGKILL" next="2 left, the ring heals"'),
        (say.MemberChanged("controller-1", "alive", "dead"), "member name=controller-1 before=alive status=dead"),
        (say.RingHealed(1.84, 2), "ring_healed after_ms=1840.0 owners=2"),
        (say.ServedBy("controller-2"), "served_by name=controller-2"),
        (say.ViewLost('no "one"'), 'view_lost reason="no \\"one\\""'),
        (say.RunEnded(convert.execution(execution(3)), "controller-1", "runner-1"),
         "execution id=3 job=billing.refresh tick=2026-11-21T08:00:03Z outcome=completed lateness_ms=2.5"
         " duration_ms=497.5 controller=controller-1 runner=runner-1"),
        (say.RunEnded(convert.execution(execution(3, outcome="lost", started_at=None, error_type="Lost")), "c", "r"),
         "execution id=3 job=billing.refresh tick=2026-11-21T08:00:03Z outcome=lost lateness_ms=- duration_ms=-"
         " controller=c runner=r error=Lost"),
        (say.Heartbeat(BOOKS, 12.34, 3),
         "heartbeat due=87 executed=81 running=0 skipped=6 not_booked_yet=0 worst_lateness_ms=12.3 controllers=3"),
    ],
)  # fmt: skip
def test_plain_lines(happening: say.Happening, text: str) -> None:
    assert line(MOMENT, happening) == f"2026-11-21T08:00:01.234000Z {text}"


def child(name: str, returncode: int | None = None, address: str = "") -> DevProcess:
    """A process that is only looked at."""

    class Process:
        pid = 4242

    Process.returncode = returncode  # type: ignore[attr-defined]  # as asyncio's has it
    return DevProcess(name, Process(), Path("no.log"), address, address.replace(":740", ":748"))  # type: ignore[arg-type]  # only these are read


def state() -> DevState:
    made = DevState()
    made.controllers = [
        child("controller-1", address="127.0.0.1:7400"),
        child("controller-2", -signal.SIGKILL, "127.0.0.1:7401"),
        child("controller-3", address="127.0.0.1:7402"),
    ]
    made.runners = [child("runner-1")]
    made.clock = (EPOCH, 0)
    made.jobs = [convert.job(job("refresh")), convert.job(job("close_month", last_outcome="", status="running"))]
    for number in (1, 2):
        made.keep(convert.execution(execution(number)))
    made.books = BOOKS
    made.happenings.append((EPOCH, say.RingHealed(1.84, 2)))
    made.printed.append(say.OutputLine(1, "billing.refresh", "12 rows", is_error=False))
    made.printed.append(say.OutputLine(2, "billing.refresh", "ValueError: no such month", is_error=True))
    return made


async def drawn(api: FakeApi, width: int, height: int) -> str:
    shown = state()
    async with AsyncClient([api.address]) as client:
        shown.learn(await client.cluster.get())
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    console.print(picture(shown, "demo.py", width, height))
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


async def test_picture_shows_everything(api: FakeApi) -> None:
    text = await drawn(api, 140, 40)
    words = (
        "controller-1", "alive", "50.0%", "██████████", "killed by SIGKILL", "starting", "runner-1", "billing.refresh",
        "every 5 minutes", "completed", "+3ms", "08:00:01.002", "ring healed after 1.8s", "due 87",
        "overlap 6", "kill -9 4242", "Ctrl-C", "cronring jobs list --controllers", "billing.refresh: 12 rows",
        "billing.refresh: ValueError: no such month", "127.0.0.1:7400 :7480",
    )  # fmt: skip
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(("width", "height"), [(80, 20), (80, 24), (100, 30), (200, 60)])
async def test_picture_fits_the_terminal_and_nothing_that_counts_is_cut(api: FakeApi, width: int, height: int) -> None:
    text = await drawn(api, width, height)
    lines = text.splitlines()
    assert len(lines) < height, "the last line is where the cursor stands"
    assert max(len(line) for line in lines) <= width
    words = (
        "controller-1  4242", "killed by SIGKILL", "127.0.0.1:7400 :7480", "runner-1", "completed", "kill -9 4242",
        "Ctrl-C", "cronring jobs list", "billing.refresh: ValueError: no such month", "ring healed after 1.8s",
    )  # fmt: skip
    assert [word for word in words if word not in text] == []


def test_a_picture_shows_what_strangers_write() -> None:
    made = state()
    made.printed.append(say.OutputLine(3, "billing.refresh", "\x1b[2J[red]\u202e", is_error=False))
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    console.print(picture(made, "[b]\x1b.py", 80, 24))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert r"billing.refresh: \x1b[2J[red]\u202e" in text
    assert r"[b]\x1b.py" in text


def test_the_countdown_goes_on_between_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = DevState()
    made.clock = (EPOCH, 5_000_000_000)
    monkeypatch.setattr("time.monotonic_ns", lambda: 6_500_000_000)
    assert made.now() == EPOCH + timedelta(seconds=1.5)


def test_only_the_newest_executions_are_kept_and_those_that_run() -> None:
    made = DevState()
    made.keep(convert.execution(execution(1, outcome="", ended_at=None)))
    for number in range(2, RECENT_EXECUTIONS + 50):
        made.keep(convert.execution(execution(number)))
    assert len(made.executions) == RECENT_EXECUTIONS + 1
    assert min(made.executions) == 1


class Told(list[say.Happening]):
    """What a feed told."""

    def of(self, kind: type) -> list[say.Happening]:
        return [each for each in self if isinstance(each, kind)]


async def test_feed_tells_each_run_once_and_its_end_once(api: FakeApi) -> None:
    told = Told()
    async with AsyncClient([api.address]) as client:
        feed = DevFeed(client, DevState(), told.append)
        api.executions = [execution(1)]
        await feed.begin()  # what was there before is no news
        api.executions = [execution(2, outcome="", ended_at=None), execution(1)]
        await feed.ask_executions()
        await feed.ask_executions()
        api.executions = [execution(3), execution(2), execution(1)]
        await feed.ask_executions()
        await feed.ask_executions()
    assert [
        (type(each).__name__, each.execution.id) for each in told if isinstance(each, say.RunStarted | say.RunEnded)
    ] == [
        ("RunStarted", 2),
        ("RunEnded", 2),
        ("RunEnded", 3),
    ]


async def test_feed_tells_what_was_printed_and_why_it_failed(api: FakeApi) -> None:
    told, shown = Told(), DevState()
    async with AsyncClient([api.address]) as client:
        feed = DevFeed(client, shown, told.append)
        api.executions = [
            execution(2, outcome="failed", output="1\n2\n3\n4\n", error_type="ValueError", error_message="no\nmonth")
        ]
        await feed.ask_executions()
        await feed.ask_executions()
    lines = [(each.text, each.is_error) for each in told.of(say.OutputLine) if isinstance(each, say.OutputLine)]
    assert lines == [("2", False), ("3", False), ("4", False), ("ValueError: no", True)]
    assert [each.text for each in shown.printed] == [text for text, _ in lines]
    assert line(MOMENT, told[-1]).endswith('error id=2 job=billing.refresh text="ValueError: no"')


async def test_feed_looks_again_for_ids_that_are_committed_late(api: FakeApi) -> None:
    told = Told()
    async with AsyncClient([api.address]) as client:
        feed = DevFeed(client, DevState(), told.append)
        api.executions = [execution(4), execution(2)]
        await feed.ask_executions()
        api.executions = [execution(4), execution(3), execution(2)]
        await feed.ask_executions()
    assert [each.execution.id for each in told.of(say.RunEnded) if isinstance(each, say.RunEnded)] == [2, 4, 3]


async def test_feed_tells_members_and_the_healed_ring(api: FakeApi) -> None:
    told, shown = Told(), state()
    async with AsyncClient([api.address]) as client:
        feed = DevFeed(client, shown, told.append)
        await feed.ask_cluster()
        feed.controller_died()
        await feed.ask_cluster()
        assert told.of(say.RingHealed) == []  # half of the ring still is the dead one's
        shown.controllers[1] = child("controller-2", address="127.0.0.1:7401")
        api.members = ["controller-1", "controller-2"]
        await feed.ask_cluster()
        (healed,) = told.of(say.RingHealed)
        api.members = ["controller-1"]
        await feed.ask_cluster()
    assert isinstance(healed, say.RingHealed)
    assert healed.owners == 2
    assert told[:2] == [say.MemberChanged("controller-1", "", "alive"), say.MemberChanged("controller-2", "", "alive")]
    assert told[-1] == say.MemberChanged("controller-2", "alive", "gone")


async def test_feed_counts_from_its_beginning(api: FakeApi) -> None:
    told, shown = Told(), state()
    async with AsyncClient([api.address]) as client:
        feed = DevFeed(client, shown, told.append)
        await feed.begin()
        await feed.ask_books()
    assert api.requests[-1].since.ToDatetime(UTC) == feed.since
    assert told[-1] == say.Heartbeat(BOOKS_OF_API, 0.0, 2)


BOOKS_OF_API = books(
    ticks=87, executed=81, on_time=80, late=1, skipped={"overlap": 6}, outcomes={"completed": 81}, jobs=2,
    until=EPOCH + timedelta(seconds=60),
)  # fmt: skip


def test_plain_flushes_each_line() -> None:
    class Output(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    output = Output()
    Plain(state(), output).tell(say.ServedBy("controller-2"))
    assert output.flushed.endswith("served_by name=controller-2\n")


def test_free_addresses_are_distinct() -> None:
    addresses = free_addresses([0] * 20)
    assert len(set(addresses)) == 20


def test_wanted_ports_are_had_where_nobody_listens() -> None:
    (free,) = free_addresses([0])
    port = int(free.rpartition(":")[2])
    assert free_addresses([port]) == [free]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert free_addresses([port]) != [free]


async def test_stop_ends_even_what_is_paused_or_deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes: one that ends on SIGTERM, one that is stopped, one that ignores SIGTERM."""
    ended: list[DevProcess] = []
    scripts = {
        "polite": "import sys; print('up', flush=True); sys.stdin.read()",
        "paused": "import sys; print('up', flush=True); sys.stdin.read()",
        "deaf": "import signal, sys; signal.signal(15, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()",
    }
    processes = Processes(tmp_path, {}, ended.append)
    real = asyncio.create_subprocess_exec

    async def script(*command: str, **settings: object) -> asyncio.subprocess.Process:
        return await real(sys.executable, "-c", scripts[command[3]], **settings)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(asyncio, "create_subprocess_exec", script)
    children = [await processes.start(name, [name]) for name in scripts]
    while not all(each.log.read_text() for each in children):
        await asyncio.sleep(0.01)  # a poll of their logs: these processes have no other way to tell
    children[1].process.send_signal(signal.SIGSTOP)
    await processes.stop(children, grace_s=1.0)
    assert [each.end for each in children] == ["killed by SIGTERM", "killed by SIGTERM", "killed by SIGKILL"]
    assert sorted(each.name for each in ended) == ["deaf", "paused", "polite"]
