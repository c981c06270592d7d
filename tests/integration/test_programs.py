"""Programs that tests start as forks do what those do that are started anew."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.waiting import TIMEOUT_S

HOURLY = "from cronring import cron\n\n@cron('0 * * * *')\ndef hourly(): print('x')\n"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("--version",), ""),
        (("jobs", "nonsense"), ""),
        (("check", "hourly.py"), ""),
        (("import", "crontab", "-", "--as", "text"), "0 6 * * * ls\n"),
        (("jobs", "list"), ""),
    ],
)
def test_they_say_and_end_the_same(arguments: Sequence[str], given: str, tmp_path: Path) -> None:
    (tmp_path / "hourly.py").write_text(HOURLY)
    environment = {"PATH": os.environ["PATH"], "CRONRING_CONTROLLERS": "127.0.0.1:9", "XDG_STATE_HOME": str(tmp_path)}
    forked = programs.run(arguments, environment, tmp_path, given=given)
    assert forked.stdout + forked.stderr
    with programs.forking(False):
        assert vars(programs.run(arguments, environment, tmp_path, given=given)) == vars(forked)


def test_the_package_runs_as_the_command() -> None:
    """Where no PATH leads to a virtual environment's scripts."""
    command = [sys.executable, "-m", "cronring"]
    asked = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert asked.stdout.startswith("cronring ")
    wrong = subprocess.run([*command, "nonsense"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (2, "Usage: cronring [OPTIONS] COMMAND [ARGS]...")


def test_a_killed_one_is_dead(tmp_path: Path) -> None:
    log = tmp_path / "log"
    nobody = ("--database-url", "postgresql://nobody@127.0.0.1:1/none")
    began = programs.start(("controller", *nobody, "--insecure"), log, os.environ, tmp_path)
    assert began.poll() is None
    began.kill()
    assert began.wait() == -signal.SIGKILL == began.poll()
    with pytest.raises(ProcessLookupError):
        os.kill(began.pid, 0)
