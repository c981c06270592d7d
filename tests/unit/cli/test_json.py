"""`-o json` is everywhere, and stdout has nothing beside it."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

from cronring.cli.dev.happenings import RingHealed, StartProgress
from cronring.cli.dev.plain import Plain
from cronring.cli.dev.state import DevState
from cronring.cli.root import cli
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

NO_DATA: Final = {
    "audit-log export": "it writes lines of JSON",
    **{f"certs {name}": "it writes files" for name in ("init", "renew", "rotate", "retire")},
    **{f"certs issue {name}": "it writes files" for name in ("controller", "runner")},
    **{f"secrets-key {name}": "it writes a file" for name in ("init", "add", "use", "retire")},
    "completion": "a program for a shell",
    "jobs export": "it writes a file for `cronring apply`",
    "queues consume": "its command prints what it likes",
    "token curl": "it writes what curl reads",
    "workspaces export": "it writes lines of JSON",
    "controller": "a server; its log has a format of its own",
    "runner": "a server; its log has a format of its own",
}
MODULE: Final = "from cronring import every\n\n\n@every('5m')\ndef {verb}() -> None: ...\n"
CRONTAB: Final = "*/5 * * * * echo hello\n@reboot echo up\n"


def leaves(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "billing.py"
    path.write_text(MODULE.format(verb="refresh"))
    return str(path)


def test_every_command_that_prints_data_prints_it_as_json() -> None:
    without = []
    for name, command in leaves():
        choices = [
            param.type.choices
            for param in command.params
            if "-o" in param.opts and "--output" in param.opts and isinstance(param.type, click.Choice)
        ]
        if not any("json" in each for each in choices):
            without.append(name)
    assert sorted(without) == sorted(NO_DATA)


def test_output_is_a_form_and_nothing_else() -> None:
    """One flag, one meaning: files are named by others."""
    others = [
        name
        for name, command in leaves()
        for param in command.params
        if "--output" in param.opts and "-o" not in param.opts
    ]
    assert not others


OTHER_UNITS: Final = re.compile(r"_(s|sec|secs|seconds|us|ns|minutes|hours)$|(^|_)(late|lag|delay)_ms$")
LENGTHS: Final = re.compile(r"(^|_)(late|lateness|lag|delay|duration|took)(_|$)")


def misnamed(value: object, key: str = "") -> Iterator[str]:
    """Keys of lengths of time that are no `..._ms`, and of lateness that are not called so. `late` counts ticks."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from misnamed(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from misnamed(each, key)
    elif OTHER_UNITS.search(key) or (is_length(value, key) and not key.endswith("_ms")):
        yield key


def is_length(value: object, key: str) -> bool:
    """Texts like late_after's 10s have their unit, and `late` with a whole number counts ticks."""
    return isinstance(value, float | int) and bool(LENGTHS.search(key)) and not (key == "late" and type(value) is int)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [({"lateness_ms": 1.5, "lateness": {"p50_ms": 1.0}, "late": 3, "template": "x"}, []),
     ({"late_s": 1, "took": 1.0, "jobs": [{"lag_ms": 2, "clock_error_us": 3}]}, ["late_s", "took", "lag_ms",
                                                                               "clock_error_us"])],
)  # fmt: skip
def test_misnamed_keys_are_found(value: object, wrong: list[str]) -> None:
    assert list(misnamed(value)) == wrong


def printed(cronring: Cronring, *arguments: str, code: int = 0) -> Any:
    done = cronring(*arguments, "-o", "json")
    assert done.exit_code == code, done
    return json.loads(done.stdout)


def test_check(cronring: Cronring, module: str) -> None:
    found = printed(cronring, "check", module)
    assert found["schema_text"] == cronring("check", module).stdout
    assert [(verb["name"], verb["schedule"]) for verb in found["module"]["verbs"]] == [("refresh", "every 5m")]
    assert len(found["digest"]) == 64
    assert found["warnings"] == []


def test_check_warns_in_both_places(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "past.py"
    file.write_text("from cronring import once\n\n\n@once('2001-01-01T00:00:00Z')\ndef ever() -> None: ...\n")
    done = cronring("check", str(file), "-o", "json")
    [warning] = json.loads(done.stdout)["warnings"]
    assert warning["verb"] == "ever"
    assert warning["message"] in done.stderr


def test_schema_diff(cronring: Cronring, module: str, tmp_path: Path) -> None:
    assert printed(cronring, "schema", "diff", module, module) == {
        "equal": True, "module": [], "added": [], "removed": [], "changed": [],
    }  # fmt: skip
    other = tmp_path / "other" / "billing.py"
    other.parent.mkdir()
    other.write_text(MODULE.format(verb="refresh").replace("5m", "6m") + MODULE.format(verb="close"))
    found = printed(cronring, "schema", "diff", module, str(other), code=1)
    assert not found["equal"]
    assert [verb["name"] for verb in found["added"]] == ["close"]
    assert found["changed"] == [
        {"name": "refresh", "fields": [{"field": "schedule", "old": "every 5m", "new": "every 6m"}]}
    ]


def test_import_crontab(cronring: Cronring, tmp_path: Path) -> None:
    crontab, target = tmp_path / "crontab", tmp_path / "nightly.py"
    crontab.write_text(CRONTAB)
    found = printed(cronring, "import", "crontab", str(crontab), code=1)
    assert found["text"] == cronring("import", "crontab", str(crontab)).stdout
    assert (found["file"], found["jobs"], found["entries"]) == (None, [], 1)
    assert [(remark["line"], remark["lost"]) for remark in found["remarks"] if remark["lost"]] == [(2, True)]
    written = printed(cronring, "import", "crontab", str(crontab), "-O", str(target), code=1)
    assert (written["text"], written["file"]) == (None, str(target))
    assert target.read_text() == found["text"]


def test_import_verb(cronring: Cronring, tmp_path: Path) -> None:
    found = printed(cronring, "import", "verb")
    assert found == {"text": cronring("import", "verb").stdout, "file": None}
    target = tmp_path / "commands.py"
    assert printed(cronring, "import", "verb", "-O", str(target)) == {"text": None, "file": str(target)}
    assert target.read_text() == found["text"]


@pytest.mark.parametrize("command", [("logs",), ("executions", "logs")])
def test_logs(asked: Cronring, api: FakeApi, command: tuple[str, ...]) -> None:
    api.printed, api.cut = "0123456789: grün\n".encode(), 10
    done = asked(*command, "5", "-o", "json")
    cut, *texts, end = map(json.loads, done.stdout.splitlines())
    assert cut == {"kind": "cut", "bytes": 10}
    assert "".join(each["text"] for each in texts) == ": grün\n"
    assert (end["kind"], end["execution"]["id"], end["execution"]["outcome"]) == ("execution", 5, "completed")
    assert done.stderr == ""


def test_logs_in_json_have_every_character(asked: Cronring, api: FakeApi) -> None:
    api.printed = b"\x1b[1mbold\xc3"
    *texts, _ = map(json.loads, asked("logs", "5", "-o", "json").stdout.splitlines())
    assert "".join(each["text"] for each in texts) == "\x1b[1mbold\ufffd"
    assert asked("logs", "5", "-o", "json", "--colours").exit_code == 2


def test_top(asked: Cronring) -> None:
    frame = printed(asked, "top", "--once")
    assert frame["cluster"]["members"]
    assert frame["rates"] is None
    assert {"now", "figures", "running", "due", "troubles"} < frame.keys()


def test_dev_says_its_lines_as_json() -> None:
    output = io.StringIO()
    plain = Plain(DevState(), output, as_json=True)
    plain.tell(StartProgress('"a step"'))
    plain.tell(RingHealed(1.5, 2))
    first, second = map(json.loads, output.getvalue().splitlines())
    assert (first["event"], first["step"]) == ("progress", '"a step"')
    assert (second["event"], second["after_ms"], second["owners"]) == ("ring_healed", 1_500.0, 2)
