"""Programs that tests start as forks do what those do that are started anew."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import programs

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


def test_a_killed_one_is_dead(tmp_path: Path) -> None:
    log = tmp_path / "log"
    nobody = ("--database-url", "postgresql://nobody@127.0.0.1:1/none")
    began = programs.start(("controller", *nobody, "--insecure"), log, os.environ, tmp_path)
    assert began.poll() is None
    began.kill()
    assert began.wait() == -signal.SIGKILL == began.poll()
    with pytest.raises(ProcessLookupError):
        os.kill(began.pid, 0)
