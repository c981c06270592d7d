"""On a terminal: Ctrl-C, whatever a command is doing, and NO_COLOR."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.dev import Dev
from tests.support.terminals import Terminal

MODULE: Final = """import time
from cronring import cron, every, manual


@every("1s")
def beat() -> None: ...


@manual(timeout="10m")
def long() -> None:
    print("here I am", flush=True)
    time.sleep(300)


@manual
def idle() -> None: ...


@cron("0 * * * *", timeout="10m")
def hourly() -> None:
    time.sleep(300)
"""
NO_DATABASE: Final = "postgresql://x@127.0.0.1:9/x"
STEP_S: Final = 0.15  # eight of them are the first second
CONTROLLER: Final = f"controller --database-url {NO_DATABASE} --grpc 127.0.0.1:0 --http 127.0.0.1:0"
PLAIN: Final = {"CRONRING_CONTROLLERS": "127.0.0.1:9"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="test-of-ctrl-c-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def cluster(shared: Path) -> Iterator[dict[str, str]]:
    """A dev that goes on; as the environment in which commands find it."""
    (shared / "slow.py").write_text(MODULE)
    environment = {"XDG_STATE_HOME": str(shared / "state")}
    with Dev([str(shared / "slow.py")], shared, environment=environment) as dev:
        dev.wait_for(lambda line: " execution " in line)
        yield environment
        dev.interrupt()
        assert dev.finish() == 0, "this is how it ends"
        assert dev.wait_gone() == []
        assert "Traceback" not in dev.errors.read_text()


@pytest.mark.parametrize(
    "command",
    [["jobs", "list"], ["next", "25m"], CONTROLLER.split(), ["--help"]],
    ids=lambda words: words[0],
)
def test_while_it_starts(command: list[str], tmp_path: Path) -> None:
    """Modules are being read for most of the first second. Before ours, a traceback is Python's own: nobody hears."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")} | PLAIN
    environment["CRONRING_INSECURE"] = "1"
    for step in range(8):
        with subprocess.Popen(
            [sys.executable, "-m", "cronring.cli.main", *command], env=environment, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            time.sleep(step * STEP_S)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
        if "in main\n" not in said and ("<frozen site>" in said or "<frozen runpy>" in said):
            continue
        assert "Traceback" not in said, f"after {step * STEP_S:.2f} s: {said}"
        assert "ignored" not in said, f"after {step * STEP_S:.2f} s: {said}"
        # 0 and 3: it had ended. -SIGINT: Python was not there yet, or not any more; shells say 130, too.
        assert process.returncode in {130, -signal.SIGINT, 0, 3}, f"after {step * STEP_S:.2f} s: {said}"


@pytest.fixture
def silent() -> Iterator[str]:
    """A listener that takes calls, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    taken.append(listener.accept()[0])
                except OSError:
                    return

        taking = threading.Thread(target=take, daemon=True)
        taking.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        taking.join()
        for connection in taken:
            connection.close()


@pytest.mark.parametrize(
    "command", [["jobs", "list"], ["doctor"], ["jobs", "trigger", "a.b", "--wait"], ["top"]], ids=" ".join
)
def test_while_nobody_answers(command: list[str], silent: str, tmp_path: Path) -> None:
    with Terminal(command, {"CRONRING_CONTROLLERS": silent}, tmp_path) as terminal:
        time.sleep(2)  # there is no sign of it: that is the point
        terminal.interrupt()
        code = terminal.finish()
    assert "Traceback" not in terminal.seen
    assert code == 130, terminal.seen


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("drill kill-owner", "Do it?"),
        ("jobs pause --module slow", "[y/N]"),
        ("drill kill-owner --yes --for 30s", "claims nothing  ["),
        ("jobs backfill slow.hourly --from -5h --wait", "  ["),
        ("jobs watch", "changes follow"),
        ("executions watch", "started"),
        ("top", "due soon"),
        ("logs -f slow.idle", "waiting for its next"),
    ],
)
def test_while_it_works(command: str, sign: str, cluster: dict[str, str], shared: Path) -> None:
    with Terminal(command.split(), cluster, shared) as terminal:
        terminal.wait_for(sign)
        terminal.interrupt()
        code = terminal.finish()
    assert "Traceback" not in terminal.seen
    assert code == 130, terminal.seen
    assert terminal.seen.rfind("\x1b[?25l") <= terminal.seen.rfind("\x1b[?25h"), "the cursor is left hidden"


def test_a_run_that_is_waited_for_goes_on(cluster: dict[str, str], shared: Path) -> None:
    with Terminal(["jobs", "trigger", "slow.long", "--wait"], cluster, shared) as terminal:
        terminal.wait_for("here I am")
        terminal.interrupt()
        assert terminal.finish() == 130
    assert "Traceback" not in terminal.seen
    assert "goes on without this command" in terminal.seen
    way = next(line for line in terminal.seen.splitlines() if "see it: cronring logs -f " in line)
    with Terminal(way.split("cronring ")[1].split(), cluster, shared) as following:
        following.wait_for("here I am")
        following.interrupt()
        assert following.finish() == 130
    number = way.split()[-1]
    done = subprocess.run(
        [sys.executable, "-m", "cronring.cli.main", "executions", "get", number, "-o", "json"], check=True, text=True,
        capture_output=True, env={**os.environ, **cluster},
    )  # fmt: skip
    assert json.loads(done.stdout)["outcome"] is None, "it runs"


COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")


@pytest.mark.parametrize("setting", ["NO_COLOR=1", "CLICOLOR=0", "TERM=xterm-256color"])
@pytest.mark.parametrize("command", ["jobs list", "cluster members", "top --once", "doctor", "jobs show slow.none"])
def test_colours_are_left_out_where_that_is_wanted(
    command: str, setting: str, cluster: dict[str, str], shared: Path
) -> None:
    name, value = setting.split("=")
    with Terminal(command.split(), {**cluster, name: value}, shared) as terminal:
        terminal.finish()
    assert bool(COLOUR.search(terminal.seen)) == (name == "TERM"), terminal.seen


@pytest.mark.parametrize("setting", ["NO_COLOR=1", "CLICOLOR=0"])
@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("top", "due soon"),
        ("runner slow.py --log-format console", "runner_started"),
        (
            f"{CONTROLLER} --log-format console",
            "waiting_for_database",
        ),
        ("dev slow.py --speed 60x", "slow.beat"),
        ("dev slow.py", "completed"),
    ],
    ids=["top", "runner", "controller", "replay", "dev"],
)
def test_nor_are_they_in_logs_and_pictures(
    command: str, sign: str, setting: str, cluster: dict[str, str], shared: Path
) -> None:
    name, value = setting.split("=")
    with Terminal(command.split(), {**cluster, name: value}, shared) as terminal:
        terminal.wait_for(sign)
        terminal.interrupt()
        terminal.finish()
    assert not COLOUR.search(terminal.seen), terminal.seen
    assert "Traceback" not in terminal.seen
