"""docs/commands.md has one table of exit codes: commands of each kind, as processes, hold it."""

import os
import re
import socket
from pathlib import Path
from typing import Final

import pytest

from tests.support import programs

NOBODY: Final = "127.0.0.1:9"
NO_DATABASE: Final = f"postgresql://nobody@{NOBODY}/nothing"
CASES: Final = {
    "next 25m": 0, "--help": 0, "--version": 0, "jobs list --help": 0, "check good.py": 0, "convert 1h": 0,
    "check wrong.py": 1, "next nonsense": 1, "schema diff good.py other.py": 1, "runner wrong.py": 1,
    "convert */25*****": 1, "controller --grpc {taken} --http 127.0.0.1:0 --database-url " + NO_DATABASE: 1,
    "controller --http {taken} --grpc 127.0.0.1:0 --database-url " + NO_DATABASE: 1,
    "nonsense": 2, "jobs list --nonsense": 2, "jobs list -n many": 2, "check": 2, "check nowhere.py": 2, "top": 2,
    "drill kill-owner": 2, "jobs trigger": 2, "controller": 2, "controller --grpc nowhere --database-url x": 2,
    "jobs list": 3, "jobs trigger a.b": 3, "jobs trigger a.b --wait": 3, "cluster members": 3, "audit": 3, "why a.b": 3,
    "deploy good.py": 3, "doctor": 3, "top --once": 3, "logs 1": 3, "executions watch": 3, "stats": 3,
    "drill kill-owner --yes": 3, "migrate --database-url " + NO_DATABASE: 3,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text("from cronring import verb\n\n\n@verb\ndef a() -> None: ...\n")
    (tmp_path / "other.py").write_text("from cronring import verb\n\n\n@verb\ndef b() -> None: ...\n")
    (tmp_path / "wrong.py").write_text("from cronring import cron\n\n\n@cron('never')\ndef a() -> None: ...\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"), CASES.items(), ids=[f"{code} {command}" for command, code in CASES.items()]
)
def test_the_code_is_the_tables(command: str, code: int, folder: Path) -> None:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")}
    usual["CRONRING_INSECURE"] = "1"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = command.replace("{taken}", f"127.0.0.1:{taken.getsockname()[1]}").split()
        environment = usual | {"CRONRING_CONTROLLERS": NOBODY, "XDG_STATE_HOME": str(folder)}
        done = programs.run(words, environment, folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_the_table_of_the_docs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text()
    done = programs.run(["--help"])
    told = " ".join(done.stdout.partition("Exit codes:")[2].split())
    assert re.findall(r"(?:^|; )(\d+) ", told.strip()) == re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
