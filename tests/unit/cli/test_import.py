"""`cronring import crontab`: modules that check, and that run what cron would."""

import getpass
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

from tests.unit.cli.conftest import Cronring

CRONTAB = r"""# The shop's.

SHELL=/bin/bash
PATH=/usr/local/bin:/usr/bin:/bin
CRON_TZ=Europe/Berlin
GREETING="hello world"
# Greets.
30 4 * * mon-fri echo "$GREETING of $LOGNAME at $HOME in $PWD by ${BASH:+bash}, not ${CRONRING_SECRET:-set}"
@daily cat%one%two\%
*/10 * * * * echo said; false
"""


@pytest.fixture
def crontab(tmp_path: Path) -> Path:
    file = tmp_path / "shop.crontab"
    file.write_text(CRONTAB)
    return file


def run_verb(file: Path, verb: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, as a runner's child would, with a variable that cron would not hand on."""
    script = f"import runpy; runpy.run_path({str(file)!r})[{verb!r}]()"
    environment = os.environ | {"CRONRING_SECRET": "leaked"}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)


def test_the_module_checks_and_runs(cronring: Cronring, crontab: Path, tmp_path: Path) -> None:
    target = tmp_path / "shop.py"
    done = cronring("import", "crontab", str(crontab), "-O", str(target))
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert "3 jobs translated, 0 lines not" in done.stderr
    checked = cronring("check", str(target))
    assert checked.exit_code == 0, checked.stderr
    assert '+cron "30 4 * * 1-5"' in checked.stdout
    assert checked.stdout.count('+timezone "Europe/Berlin"') == 3
    assert "  // Greets." in checked.stdout
    home = os.path.expanduser(f"~{getpass.getuser()}")
    greeting = run_verb(target, "echo")
    assert greeting.stdout == f"hello world of {getpass.getuser()} at {home} in {home} by bash, not set\n"
    assert run_verb(target, "cat").stdout == "one\ntwo%\n"
    failing = run_verb(target, "echo_2")
    assert (failing.returncode, failing.stdout) == (1, "said\n")
    assert "returned non-zero exit status 1" in failing.stderr


def test_the_text_form_checks(cronring: Cronring, crontab: Path, tmp_path: Path) -> None:
    printed = cronring("import", "crontab", str(crontab), "--as", "text", "--namespace", "shop")
    assert printed.stdout.count("module shop/shop {") == 1
    text = tmp_path / "shop.schema"
    text.write_text(printed.stdout)
    assert cronring("check", str(text)).stdout == printed.stdout


def test_what_is_not_translated_is_said_and_the_rest_written(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_text("@reboot start\n5 4 * * * fine\n* * * * fri-mon odd\n")
    done = cronring("import", "crontab", str(file), "--timezone", "UTC")
    assert done.exit_code == 1
    assert f"{file}:1: not translated: @reboot" in done.stderr
    assert f"{file}:3: not translated: day-of-week" in done.stderr
    assert "1 job translated, 2 lines not" in done.stderr
    assert 'run("fine")' in done.stdout
    assert "# NOT TRANSLATED, line 1: @reboot start" in done.stdout


def test_nothing_to_translate_writes_nothing(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_text("# nothing\n")
    done = cronring("import", "crontab", str(file), "-O", str(tmp_path / "out.py"))
    assert done.exit_code == 1
    assert not (tmp_path / "out.py").exists()


def test_no_file_is_written_over(cronring: Cronring, crontab: Path) -> None:
    done = cronring("import", "crontab", str(crontab), "-O", str(crontab))
    assert (done.exit_code, "exists already" in done.stderr) == (1, True)
    assert crontab.read_text() == CRONTAB


def test_system_crontabs_run_as_their_users(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "system"
    file.write_text(f"17 * * * *  {getpass.getuser()}  echo me: $LOGNAME\n18 * * * *  no-such-user  id\n")
    target = tmp_path / "system.py"
    done = cronring("import", "crontab", str(file), "--system", "--timezone", "Europe/Paris", "-O", str(target))
    assert done.exit_code == 0, done.stderr
    assert run_verb(target, "echo").stdout == f"me: {getpass.getuser()}\n"
    assert "no-such-user" in run_verb(target, "id").stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root may run as another user")
def test_root_runs_as_another_user(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "system"
    file.write_text("HOME=/\n17 * * * *  nobody  id -un\n")
    target = tmp_path / "system.py"
    assert cronring("import", "crontab", str(file), "--system", "-O", str(target)).exit_code == 0
    assert run_verb(target, "id").stdout == "nobody\n"


HOSTILE = [
    '* * * * * echo """ \' \\ {braces} $(x) \\t',
    '* * * * * python3 -c "import os; print(1)"',
    "* * * * * class",
    "* * * * * 7z a x; run; pwd; os",
    "* * * * * über/€.sh",
    "* * * * * a#b # c",
]


def test_any_command_makes_a_module_that_says_it(cronring: Cronring, tmp_path: Path) -> None:
    file, target = tmp_path / "tab", tmp_path / "hostile.py"
    comment = '# a docstring\'s """ end \\'
    file.write_text("".join(f"{comment}\n{line}\n" for line in HOSTILE))
    assert cronring("import", "crontab", str(file), "-O", str(target)).exit_code == 0
    checked = cronring("check", str(target))
    assert checked.exit_code == 0, checked.stderr
    ran: list[str] = []
    module = runpy.run_path(str(target))
    for name, verb in [(name, each) for name, each in module.items() if isinstance(each, FunctionType)]:
        if verb.__code__.co_filename == str(target) and name != "run":
            verb.__globals__["run"] = lambda command, **_: ran.append(command)
            verb()
    assert ran == [line.removeprefix("* * * * * ") for line in HOSTILE]


def test_bytes_that_are_no_utf8(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "tab"
    file.write_bytes(b"# caf\xe9\n* * * * * ls\n")
    done = cronring("import", "crontab", str(file), "--timezone", "UTC")
    assert (done.exit_code, "café" in done.stdout) == (0, True)


def test_standard_input(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "cronring.cli.main", "import", "crontab", "-", "--as", "text"]
    done = subprocess.run(arguments, input="0 6 * * * ls\n", capture_output=True, text=True, check=True)
    assert "module crontab {" in done.stdout


def test_a_zone_that_does_not_exist(cronring: Cronring, crontab: Path) -> None:
    done = cronring("import", "crontab", str(crontab), "--timezone", "Europe/Berln")
    assert (done.exit_code, "Europe/Berlin" in done.stderr) == (1, True)


def test_lint_of_an_import(cronring: Cronring, crontab: Path, tmp_path: Path) -> None:
    target = tmp_path / "shop.py"
    cronring("import", "crontab", str(crontab), "-O", str(target))
    rows = json.loads(cronring("lint", str(target), "-o", "json").stdout)
    assert {row["level"] for row in rows} <= {"note"}


def test_jobs_need_a_verb(cronring: Cronring, crontab: Path) -> None:
    for arguments in (["--as", "jobs"], ["--verb", "commands.execute"]):
        done = cronring("import", "crontab", str(crontab), *arguments)
        assert (done.exit_code, "--as jobs --verb" in done.stderr) == (2, True)
    into = ["--as", "jobs", "--verb", "commands.execute", "-O", "new.py"]
    assert "--as jobs writes none" in cronring("import", "crontab", str(crontab), *into).stderr


def test_the_verb_of_jobs_checks_and_runs(cronring: Cronring, tmp_path: Path) -> None:
    target = tmp_path / "commands.py"
    assert cronring("import", "verb", "-O", str(target)).exit_code == 0
    assert "verb execute(Command) Unit" in cronring("check", str(target)).stdout
    request = {"command": 'cat; echo "$A"', "stdin": "in\n", "user": "", "environment": {"A": "b"}}
    script = f"import runpy; runpy.run_path({str(target)!r})['execute']({request!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "in\nb\n"
