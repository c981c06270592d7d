"""The one place that prints, and what prints past it."""

import io
import logging
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner

from cronring.cli import printing
from cronring.cli.commands.logs import logs
from cronring.cli.output import aligned
from cronring.controller.config import LogFormat, LogLevel
from cronring.controller.runtime.log_format import set_up_logging
from tests.unit.cli.fake_api import FakeApi
from tests.unit.cli.hostile import FORGED, HOSTILE, MARK


def obeyed(text: str) -> list[str]:
    return [char for char in text if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}]


def test_colours_of_output_pass_if_wanted_and_end(api: FakeApi) -> None:
    api.printed = b"\x1b[31mred\x1b]0;title\x07\x1b[2J\n"
    for wanted, colour, end in (([], "\\x1b[31m", ""), (["--colours"], "\x1b[31m", "\x1b[0m")):
        done = CliRunner().invoke(logs, ["3", *wanted, "--controllers", api.address], catch_exceptions=False)
        assert done.stdout == f"{colour}red\\x1b]0;title\\x07\\x1b[2J\n{end}"


def test_what_prints_without_us_is_shown_too() -> None:
    """A traceback, and click's own errors."""
    script = f"""
import sys
from cronring.cli import root
sys.argv = ["cronring", "jobs", {HOSTILE!r}]
try:
    root.run()
except SystemExit:
    pass
print({HOSTILE!r})
raise ValueError({HOSTILE!r})
""".replace("\\x00", "")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert not obeyed(done.stdout + done.stderr)
    assert done.stderr.count(MARK) >= 2
    assert MARK in done.stdout


def test_a_terminal_without_letters_gets_some() -> None:
    script = "from cronring.cli import printing; printing.guard_streams(); printing.say('zwölf €')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii"}
    )
    assert done.stdout == b"zw\\xf6lf \\u20ac\n"


def test_errors_of_several_lines_forge_none(capsys: pytest.CaptureFixture[str]) -> None:
    printing.say_failure("error: ", HOSTILE, sys.stderr)
    told = capsys.readouterr().err
    assert not obeyed(told)
    assert not any(line.startswith(FORGED) for line in told.splitlines())


def test_wide_characters_keep_columns_together() -> None:
    lines = list(aligned([["job", "n"], ["漢字", "1"], ["e\u0301clair", "2"]], [False, True]))
    assert lines == ["job     n", "漢字    1", "e\u0301clair  2"]


@pytest.mark.parametrize("form", [LogFormat.CONSOLE, LogFormat.JSON])
def test_log_lines_are_shown(form: LogFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    told, root, before = io.StringIO(), logging.getLogger(), logging.getLogger().handlers[:]
    monkeypatch.setattr(sys, "stderr", told)
    try:
        set_up_logging(LogLevel.INFO, form)
        structlog.get_logger().warning("event", error=HOSTILE, exc_info=ValueError(HOSTILE))
        root.warning("by the standard library: %s", HOSTILE)
    finally:
        root.handlers[:] = before
        structlog.reset_defaults()
    assert not obeyed(told.getvalue())
    assert told.getvalue().count(MARK) >= 3


def test_a_replay_shows_what_verbs_say(tmp_path: Path) -> None:
    """Real children, whose errors and output are hostile."""
    file = tmp_path / "bad.py"
    file.write_text(
        "from cronring import every\n\n\n@every('5s')\ndef shout():\n"
        f"    print({HOSTILE!r})\n    raise ValueError({HOSTILE!r})\n"
    )
    for form in ("text", "json"):
        command = [sys.executable, "-m", "cronring.cli.main", "dev", str(file), "--speed", "max", "--for", "11s"]
        done = subprocess.run([*command, "--output", form], capture_output=True, text=True, check=False, timeout=60)
        assert not obeyed(done.stdout + done.stderr)
        assert "shout" in done.stdout, done
        assert form == "text" or MARK in done.stdout
