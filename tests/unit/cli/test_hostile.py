"""Every command, on a terminal and in a pipe, against a server whose every string is hostile."""

import contextlib
import io
import json
import os
import pty
import re
import sys
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

import click
import grpc
import pytest

from cronring.cli import root as program
from cronring.cli.root import cli
from cronring.client import lasting, patience
from tests.unit.cli.hostile import FORGED, HOSTILE, MARK, NUMBER, HostileServer, serving_hostile
from tests.unit.cli.test_json import misnamed

JOB: Final = "billing.refresh"
# What our own pictures do to a terminal: colours, the cursor shown and hidden, up, the start of a line, a line or a
# screen cleared, the other screen.
OURS: Final = re.compile(r"\x1b\[(?:(?!38;5;201)[0-9;]*m|\?25[hl]|\?1049[hl]|[0-9]*[AGK]|H|2J|0?K)")
OF_LINES: Final = {"logs", "executions logs"}
# Who has controllers and asks them nothing that is printed by it.
HOSTS: Final = {"dev", "login", "logout", "queues consume", "runner"}
# Whose answer has no word of a stranger in it, and why.
SILENT: Final = {
    "doctor": "what it asks each member fails here: tests/unit/cli/test_doctor.py has its findings",
    "drill kill-owner": "no job ticks here: tests/unit/cli/test_drill.py",
    "plan": "no schema is read that is none: its error says so",
    "token curl": "it asks no server",
    "audit-log verify": "rows without an end are none of a chain: its error says so",
    "jobs import": "answers for other jobs than it has asked for: its error says so",
    "lint": "what it finds is in the file",
    **dict.fromkeys(
        (
            "jobs backfill",
            "jobs delete",
            "jobs skip-next",
            "jobs trigger",
            "limits remove",
            "limits set",
            "queues put",
            "queues remove",
            "queues replay",
            "queues set",
            "template delete",
            "webhook disable",
            "webhook enable",
            "webhook redeliver",
            "webhook remove",
            "workspaces delete",
        ),
        "it repeats what was typed",
    ),
}
# Beyond required arguments: what makes it do its work, and come to an end.
EXTRA: Final = {
    "deploy": ["--yes"],
    "drill kill-owner": ["--yes", "--for", "2s"],
    "events": ["--follow"],
    "limits remove": ["billing"],
    "limits set": ["billing"],
    "jobs backfill": ["--from", "2026-11-01", "--to", "2026-11-02"],
    "jobs create": ["billing.close_month", "--name", "nightly", "--every", "5m"],
    "jobs update": ["--every", "5m"],
    "queues remove": ["--all", "--yes"],
    "queues replay": ["--all", "--yes"],
    "queues set": ["--on-retry", "pass"],
    "rollback": ["--to", HOSTILE, "--yes"],
    "template set": ["--every", "5m"],
    "top": ["--once"],
    "undeploy": [HOSTILE, "--yes"],
    "workspaces delete": ["--yes"],
    "webhook update": ["--pause"],
    "import crontab": ["--as", "jobs", "--verb", JOB],
}
# By name of the parameter; anything else is the key of a job.
VALUES: Final = {
    "execution_id": str(NUMBER), "what": str(NUMBER), "id": str(NUMBER), "max_concurrent": "3", "url": "http://127.0.0.1:9/",
    "verb": "billing.refresh", "name": "billing", "module": "billing", "group": "billing", "kind": "bash",
    "session_id": str(NUMBER), "values": "timeout=1m", "unset": "timeout",
}  # fmt: skip


class Told(NamedTuple):
    code: int
    out: str
    err: str


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL: Final = dict(commands())
ASKING: Final = sorted(
    name for name, command in ALL.items() if name not in HOSTS and any(p.name == "controllers" for p in command.params)
)


def arguments(name: str, file: Path) -> list[str]:
    """The command with what it cannot do without."""
    given = [*name.split(), *EXTRA.get(name, [])]
    if name == "undeploy":
        return given
    for param in ALL[name].params:
        flags = [opt for opt in param.opts if opt.startswith("--")]
        wanted = param.required or param.name == "key"  # one job rather than many
        if not wanted or (flags and flags[0] in given):
            continue
        value = str(file) if isinstance(param.type, click.Path) else VALUES.get(param.name or "", JOB)
        if isinstance(param.type, click.Choice):
            value = str(next(iter(param.type.choices)))
        given += [*flags[:1], value]
    names = {opt for param in ALL[name].params for opt in param.opts}
    return given + [flag for flag in ("--yes",) if flag in names and flag not in given and "--dry-run" not in names]


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with serving_hostile() as hostile:
        yield hostile


@pytest.fixture
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "billing.py"
    if "jobs import" in request.node.name:
        path.write_text(json.dumps({"verb": "billing.refresh", "name": "x", "every": "5m"}))
        return path
    if "import" in request.node.name:
        path.write_text("*/5 * * * * echo hello\n")
        return path
    if "[apply" in request.node.name:
        path = tmp_path / "billing.yaml"
        path.write_text("set: x\njobs:\n- {verb: billing.refresh, name: x, every: 5m}\n")
        return path
    path.write_text("from cronring import every\n\n\n@every('5m')\ndef refresh() -> None: ...\n")
    return path


def run(given: list[str], *, tty: bool) -> Told:
    """As its process would: `run`, with the streams that it finds."""
    out, err = (_Terminal(), _Terminal()) if tty else (_Pipe(), _Pipe())
    with (
        mock.patch.object(sys, "argv", ["cronring", *given]),
        mock.patch.object(sys, "stdout", out.stream),
        mock.patch.object(sys, "stderr", err.stream),
        mock.patch.object(sys, "stdin", io.StringIO("")),
    ):
        try:
            program.run()
        except SystemExit as done:
            code = done.code
    return Told(int(code or 0), out.text(), err.text())


class _Pipe:
    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self.stream = io.TextIOWrapper(self._bytes, encoding="utf-8", newline="\n", write_through=True)

    def text(self) -> str:
        self.stream.flush()
        return self._bytes.getvalue().decode()


class _Terminal:
    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8", newline="\n", buffering=1)
        self._read = bytearray()
        self._reader = threading.Thread(target=self._drain)
        self._reader.start()

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self._master, 65_536):
                self._read += piece

    def text(self) -> str:
        self.stream.close()
        self._reader.join(60)
        os.close(self._master)
        return self._read.decode().replace("\r\n", "\n")


def obeyed(text: str, *, tty: bool) -> list[str]:
    """What a terminal would obey of it, but for our own sequences; and lines that are not ours."""
    rest = OURS.sub("", text) if tty else text
    bad = [f"{char!r} at {rest[max(0, at - 30) : at + 10]!r}" for at, char in enumerate(rest) if is_obeyed(char, tty)]
    return bad + [f"a forged line: {line!r}" for line in rest.splitlines() if line.lstrip("\r").startswith(FORGED)]


def is_obeyed(char: str, tty: bool) -> bool:
    if char in "\n\t" or (tty and char == "\r"):  # a bar's way to the start of its line
        return False
    return unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"}


def held(told: Told, *, tty: bool, lines: bool = False) -> None:
    """`lines`: its stdout is a verb's, whose lines are its own."""
    found = obeyed(told.out, tty=tty)
    assert not [each for each in found if not (lines and "forged" in each)], told.out
    assert not obeyed(told.err, tty=tty), told.err
    assert "Traceback" not in told.err, told.err


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("name", ASKING)
def test_what_servers_answer_is_shown(name: str, tty: bool, server: HostileServer, file: Path) -> None:
    server.failing, server.honest_addresses = None, name in {"doctor", "drill kill-owner"}
    told = run([*arguments(name, file), "--controllers", server.address], tty=tty)
    held(told, tty=tty, lines=name in OF_LINES)
    assert told.code != 2, told
    advice = "it shows no text of the answer: show one, or give the reason in SILENT"
    assert name in SILENT or MARK in told.out, (advice, told)


@pytest.mark.parametrize("name", [name for name in ASKING if any(p.name == "output" for p in ALL[name].params)])
def test_json_is_whole_and_shown(name: str, server: HostileServer, file: Path) -> None:
    server.failing, server.honest_addresses = None, name in {"doctor", "drill kill-owner"}
    told = run([*arguments(name, file), "--controllers", server.address, "-o", "json"], tty=False)
    held(told, tty=False)
    assert told.code != 2, told
    for value in told.out.splitlines() if "watch" in name or name in {"events", *OF_LINES} else [told.out]:
        assert value or told.code, told
        assert not value or json.loads(value) is not None
        assert not value or not list(misnamed(json.loads(value)))


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize(
    "failing", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INTERNAL], ids=lambda code: code.name
)  # fmt: skip
def test_what_servers_refuse_with_is_shown(
    failing: grpc.StatusCode, tty: bool, server: HostileServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasting, "FIRST_MAX_S", 0.0)  # what is shown is the same after seconds of trying
    monkeypatch.setattr(patience, "LOST_MAX_S", 0.0)
    server.failing, server.honest_addresses = failing, True
    for name in ASKING:
        held(run([*arguments(name, file), "--controllers", server.address], tty=tty), tty=tty)
    server.failing = None


def test_every_string_is_hostile() -> None:
    assert {unicodedata.category(char) for char in HOSTILE} >= {"Cc", "Cf", "Zl", "Zp", "Lo", "Mn"}
