"""What `make demo` runs: real processes, killed as the README invites to."""

import os
import pty
import re
import select
import signal
import struct
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.acceptance.dev import DEMO, Dev, fields

LAST_LINE = re.compile(
    r"ticks due (\d+) \| executed (\d+) \| skipped (\d+)(?: \(([a-z_0-9, ]+)\))? \| unaccounted: (\d+)"
)
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STOP_S = 8.0  # on a machine whose cores are all at work; it was 5.1 s once


def is_run(line: str) -> bool:
    return " execution " in line


def is_completed(line: str) -> bool:
    return is_run(line) and " outcome=completed " in line


@pytest.mark.timeout(180)
def test_for_a_while_with_a_controller_killed(folder: Path) -> None:
    with Dev([str(DEMO), "--for", "20s"], folder) as dev:
        dev.wait_for(is_completed)
        victim = dev.wait_for(is_completed)
        name = fields(victim)["controller"]
        os.kill(dev.pid_of(name), signal.SIGKILL)
        dev.wait_for(lambda line: "process_ended" in line and f"name={name}" in line)
        healed = dev.wait_for(lambda line: " ring_healed " in line, timeout_s=10)
        dev.wait_for(is_completed)
        code = dev.finish(timeout_s=60)
        assert dev.wait_gone(0) == []
    assert float(fields(healed)["after_s"]) < 5
    match = LAST_LINE.fullmatch(dev.lines[-1])
    assert match, dev.lines[-5:]
    due, executed, skipped = (int(match[group]) for group in (1, 2, 3))
    assert (code, match[5]) == (0, "0"), "\n".join(dev.lines)
    assert due == executed + skipped
    assert executed >= 10
    assert not list(folder.glob("cronring*")), "the temporary database is removed"


@pytest.mark.timeout(120)
def test_ctrl_c_ends_everything_within_seconds(folder: Path) -> None:
    with Dev([str(DEMO), "--for", "5m"], folder) as dev:
        dev.wait_for(is_run)
        asked = time.monotonic()
        dev.interrupt()
        code = dev.finish(timeout_s=15)
        took = time.monotonic() - asked
        assert dev.wait_gone(0) == []
    assert took < STOP_S
    assert code == 0
    assert dev.errors.read_text() == ""


@pytest.mark.timeout(120)
def test_killed_itself_it_leaves_nobody_behind(folder: Path) -> None:
    with Dev([str(DEMO)], folder) as dev:
        dev.wait_for(is_run)
        assert len(dev.living()) >= 6
        dev.popen.kill()
        assert dev.wait_gone(10) == []
    assert not list(folder.glob("cronring*"))


@pytest.mark.timeout(180)
def test_a_killed_runner_is_replaced(folder: Path) -> None:
    with Dev([str(DEMO)], folder) as dev:
        dev.wait_for(is_completed)
        os.kill(dev.pid_of("runner-1"), signal.SIGKILL)
        dev.wait_for(lambda line: "process_started name=runner-2" in line)
        dev.wait_for(lambda line: is_completed(line) and "runner=runner-2" in line)
        dev.interrupt()
        assert dev.finish(timeout_s=15) == 0


@pytest.mark.timeout(180)
def test_a_kept_database_goes_on_after_kill_9(folder: Path) -> None:
    data = folder / "data"
    with Dev([str(DEMO), "--data", str(data)], folder) as first:
        highest = int(fields(first.wait_for(is_completed))["id"])
        first.popen.kill()
        # At once, while the first one's PostgreSQL is still being stopped.
        with Dev([str(DEMO), "--data", str(data)], folder) as second:
            assert int(fields(second.wait_for(is_completed))["id"]) > highest
            second.interrupt()
            assert second.finish(timeout_s=15) == 0
    assert (data / "postgres" / "PG_VERSION").exists()


@pytest.mark.timeout(120)
def test_the_live_picture(folder: Path) -> None:
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
    with Dev([str(DEMO)], folder, terminal=follower) as dev:
        os.close(follower)
        wanted = {"controller-1", "controller-3", "share of the ring", "next tick in", "demo.heartbeat", "completed",
                  "kill -9", "Ctrl-C", "ticks due"}  # fmt: skip
        seen = read_until(leader, wanted, timeout_s=60)
        assert wanted - {word for word in wanted if word in seen} == set(), seen[-3000:]
        assert re.search(r"every 3 seconds .*\d\.\d s", seen), "the countdown"
        dev.interrupt()
        read_until(leader, {"no such word"}, timeout_s=10)
        assert dev.popen.wait(10) == 0
        assert dev.wait_gone(0) == []
    os.close(leader)


def read_until(terminal: int, wanted: set[str], timeout_s: float) -> str:
    """What the terminal showed until all words were seen, the other side hung up, or the time is over."""
    seen = ""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and not all(word in seen for word in wanted):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # EIO: nobody has the other end any more
                break
            seen += ANSI.sub("", data.decode(errors="replace"))
    return seen


@pytest.mark.timeout(120)
def test_a_reader_who_has_had_enough_ends_it(folder: Path) -> None:
    with Dev([str(DEMO)], folder) as dev:
        dev.wait_for(is_run)
        dev.stop_reading()
        assert dev.popen.wait(15) == 0
        assert dev.wait_gone(0) == []
    assert dev.errors.read_text() == ""


@pytest.mark.timeout(120)
def test_a_database_of_ones_own(folder: Path, empty_database_url: str) -> None:
    with Dev([str(DEMO), "--database-url", empty_database_url, "--for", "3s", "--controllers", "2"], folder) as dev:
        code = dev.finish(timeout_s=60)
    match = LAST_LINE.fullmatch(dev.lines[-1])
    assert match, dev.lines[-5:]
    assert (code, match[5]) == (0, "0")
    assert "name=controller-2" in "\n".join(dev.lines)
    assert "name=controller-3" not in "\n".join(dev.lines)
    assert not list(folder.glob("cronring*"))


@pytest.mark.timeout(120)
def test_what_stops_it_from_starting_is_told(folder: Path) -> None:
    """Two files that are one module are refused by the runner, which dies each time it is started."""
    other = folder / "other"
    other.mkdir()
    twin = other / "demo.py"
    twin.write_text(DEMO.read_text())
    with Dev([str(DEMO), str(twin)], folder) as dev:
        assert dev.finish(timeout_s=60) == 1
        assert dev.wait_gone(0) == []
    said = dev.errors.read_text()
    assert "two files would both be module 'demo'" in said
    (kept,) = folder.glob("cronring-dev-*")
    assert str(kept) in said
    assert (kept / "logs" / "runner-1.log").exists()
