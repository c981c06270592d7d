"""`cronring dev` through its life: who is replaced, what is kept, what a terminal shows, and why it does not start."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

from cronring.trust.names import SECRETS
from tests.acceptance.dev import DEMO, PATIENCE_S, Dev, fields
from tests.acceptance.test_demo import is_run
from tests.acceptance.test_demo_healing import LAST_LINE, is_completed

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_no_process_beside_dev_is_told_a_secret_and_a_killed_runner_is_replaced(folder: Path) -> None:
    """What its verbs could read of processes of their user: environments and command lines."""
    told = dict.fromkeys(SECRETS - {"CRONRING_DEV_DATABASE_URL"}, "hunter2")
    with Dev([str(DEMO)], folder, environment=told) as dev:
        dev.wait_for(is_completed)
        others = [each for each in dev.living() if each.pid != dev.popen.pid]
        seen = {each.pid: f"{each.cmdline()} {each.environ()}" for each in others}
        assert len(seen) >= 6
        assert [text for text in seen.values() if "hunter2" in text or "postgresql://" in text] == []
        os.kill(dev.pid_of("runner-1"), signal.SIGKILL)
        dev.wait_for(lambda line: "process_started name=runner-2" in line)
        dev.wait_for(lambda line: is_completed(line) and "runner=runner-2" in line)
        dev.interrupt()
        assert dev.finish() == 0


def test_a_kept_database_goes_on_after_kill_9(folder: Path) -> None:
    data = folder / "data"
    with Dev([str(DEMO), "--data", str(data)], folder) as first:
        highest = int(fields(first.wait_for(is_completed))["id"])
        first.popen.kill()
        # At once, while the first one's PostgreSQL is still being stopped.
        with Dev([str(DEMO), "--data", str(data)], folder) as second:
            assert int(fields(second.wait_for(is_completed))["id"]) > highest
            second.interrupt()
            assert second.finish() == 0
    assert (data / "postgres" / "PG_VERSION").exists()


def test_the_live_picture(folder: Path) -> None:
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
    with Dev([str(DEMO)], folder, terminal=follower) as dev:
        os.close(follower)
        # The countdown comes in some pictures only: while the job runs, or is due, there is none.
        wanted = {"controller-1", "controller-3", "share of the ring", "next tick in", "demo.heartbeat", "completed",
                  "kill -9", "Ctrl-C", "not booked yet", r"every second .*\+[\d.]+m?s +[\d.]+m?s"}  # fmt: skip
        read_until(leader, wanted)
        dev.interrupt()
        read_to_end(leader)
        assert dev.popen.wait(PATIENCE_S) == 0
        assert dev.wait_gone() == []
    os.close(leader)


def test_on_a_small_terminal_a_kill_shows_who_takes_over(folder: Path) -> None:
    """80x24, as terminals open; and a second one, which needs no addresses."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    state = {"XDG_STATE_HOME": str(folder / "state")}
    with Dev([str(DEMO)], folder, terminal=follower, environment=state) as dev:
        os.close(follower)
        wanted = {"alive", "demo.heartbeat: tick", "completed", "kill -9 ", "stop  Ctrl-C", "not booked yet"}
        seen = read_until(leader, wanted)
        rows = re.findall(r"controller-(\d)  +(\d+)  alive .*127\.0\.0\.1:\d+ :\d+ *\r\n", seen)
        assert {number for number, _ in rows} == {"1", "2", "3"}, seen[-3000:]
        listed = subprocess.run(
            [sys.executable, "-m", "cronring.cli.main", "jobs", "list"], capture_output=True, text=True, check=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")} | state,
        )  # fmt: skip
        assert "demo.heartbeat" in listed.stdout
        os.kill(int(re.findall(r"kill -9 (\d+)", seen)[-1]), signal.SIGKILL)
        read_until(leader, {"killed by SIGKILL", "ring healed after", "2 controllers own"})
        dev.interrupt()
        read_to_end(leader)
        assert dev.popen.wait(PATIENCE_S) == 0
        assert dev.errors.read_text() == ""
    os.close(leader)


def read_until(terminal: int, wanted: set[str]) -> str:
    """What the terminal showed until each of these patterns was seen. Fails when one is not seen in time."""
    seen, left = "", set(wanted)
    deadline = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline and (shown := read_some(terminal)) is not None:
        seen += shown
        left = {pattern for pattern in left if not re.search(pattern, seen)}
    assert not left, f"{sorted(left)} not seen in\n{seen[-3000:]}"
    return seen


def read_to_end(terminal: int) -> None:
    """Until nobody has the other end any more."""
    deadline = time.monotonic() + PATIENCE_S
    while read_some(terminal) is not None:
        assert time.monotonic() < deadline, "somebody still has the terminal"


def read_some(terminal: int) -> str | None:
    """What it shows within a moment, without escape sequences. None: nobody has the other end any more."""
    if not select.select([terminal], [], [], 0.2)[0]:
        return ""
    try:
        return ANSI.sub("", os.read(terminal, 1 << 16).decode(errors="replace"))
    except OSError:  # EIO
        return None


def test_a_reader_who_has_had_enough_ends_it(folder: Path) -> None:
    with Dev([str(DEMO)], folder) as dev:
        dev.wait_for(is_run)
        dev.stop_reading()
        assert dev.popen.wait(PATIENCE_S) == 0
        assert dev.wait_gone() == []
    assert dev.errors.read_text() == ""


def test_a_database_of_ones_own(folder: Path, empty_database_url: str) -> None:
    with Dev([str(DEMO), "--database-url", empty_database_url, "--for", "3s", "--controllers", "2"], folder) as dev:
        code = dev.finish()
    match = LAST_LINE.fullmatch(dev.lines[-1])
    assert match, dev.lines[-5:]
    assert (code, match[5]) == (0, "0")
    assert "name=controller-2" in "\n".join(dev.lines)
    assert "name=controller-3" not in "\n".join(dev.lines)
    assert not list(folder.glob("cronring*"))


def test_what_stops_it_from_starting_is_told(folder: Path) -> None:
    """Two files that are one module are refused by the runner, which dies each time it is started."""
    other = folder / "other"
    other.mkdir()
    twin = other / "demo.py"
    twin.write_text(DEMO.read_text())
    with Dev([str(DEMO), str(twin)], folder) as dev:
        assert dev.finish() == 1
        assert dev.wait_gone() == []
    said = dev.errors.read_text()
    assert "two files would both be module 'demo'" in said
    (kept,) = folder.glob("cronring-dev-*")
    assert str(kept) in said
    assert (kept / "logs" / "runner-1.log").exists()
