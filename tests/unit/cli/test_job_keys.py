"""Keys of a job in a line or a file: each of them with each value of JSON is taken, or told by its name and place."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import tomli_w

from cronring.cli.commands.job_writes import create_job
from cronring.cli.failures import Failure
from cronring.cli.files import yaml_form
from cronring.cli.files.reading import Files
from cronring.cli.job_lines import JobLines, WrongLine
from cronring.client.many import creation
from cronring.protos.cronring.v1 import jobs_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

LINES: Final = JobLines(create_job)
VERB: Final = {"verb": "mail.send", "name": "n1"}
QUEUE: Final = {"queue": "reports"}
OF_COMMAND: Final = (
    "dry-run", "note", "as", "output", "controllers", "help", "token-file", "ca", "server-name", "insecure",
)  # fmt: skip
# Of JSON, and what its files may hold beside: a number without end, half of a pair, NUL, and digits without number.
VALUES: Final[tuple[Any, ...]] = (
    None, 5, -1, 1.5, True, False, "", "x", [], ["a"], [5], {}, {"a": 1}, {"a": "b"}, 10**30, 10**400, 1e400, "\ud800",
    "\0", ["\ud800"], {"\ud800": "x"},
)  # fmt: skip


def flags_of_jobs() -> set[str]:
    """All long options of the command, but for its own, are keys."""
    flags = {flag[2:] for each in create_job.params for flag in each.opts if flag.startswith("--")}
    return flags - set(OF_COMMAND)


KEYS: Final = sorted({"verb", "labels", *flags_of_jobs()} - {"label"})


def taken_or_told(base: dict[str, Any], key: str, value: Any) -> str:
    """What is told; "" where the job can be asked for."""
    said = base | {"manual": True} | {key: value}
    if key in {"cron", "every", "at", "after", "now"}:
        said.pop("manual")
    try:
        job = LINES.job(json.dumps(said).encode())
    except WrongLine as error:
        return str(error)
    creation(job).SerializeToString()
    return ""


@pytest.mark.parametrize("base", [VERB, QUEUE], ids=["verb", "queue"])
@pytest.mark.parametrize("key", KEYS)
def test_each_key_takes_each_value_or_names_itself(base: dict[str, Any], key: str) -> None:
    for value in VALUES:
        told = taken_or_told(base, key, value)
        assert not told or key in told or key.replace("-", "_") in told or (not value and "when does it tick" in told)


@pytest.mark.parametrize("form", ["yaml", "toml"])
@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_a_file_as_well(key: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{form}"
    storable = [value for value in VALUES if value is not None and "ud800" not in json.dumps(value)]
    jobs = [VERB | {"name": f"n{at}", "every": "5m", key: value} for at, value in enumerate(storable)]
    values = {"set": "prod", "jobs": jobs}
    path.write_text(yaml_form.dump(values) if form == "yaml" else tomli_w.dumps(values), "utf-8")
    files = Files(LINES)
    files.read(path)
    for fault in files.faults:
        assert (fault.file, fault.line > 0) == (str(path), form == "yaml")
        assert any(word in fault.problem for word in (key, key.replace("-", "_"), "stands in"))


@pytest.mark.parametrize(("form", "text"), [
    ("ndjson", '{"verb": "mail.send", "name": "a", "every": "5m", "payload": %s}'),
    ("yaml", "set: x\njobs:\n- {verb: mail.send, name: a, every: 5m, payload: %s}\n"),
    ("toml", "set = 'x'\n[[jobs]]\nverb = 'mail.send'\nname = 'a'\nevery = '5m'\npayload = %s\n"),
])  # fmt: skip
@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "f" * 5_000, "nan", "inf", "NaN", "1e999"])
def test_numbers_that_are_none_are_told(form: str, text: str, number: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{form}"
    path.write_text(text % number)
    files = Files(LINES)
    if form == "ndjson":
        with pytest.raises(WrongLine):
            LINES.job(path.read_bytes())
        return
    files.read(path)
    text_of_yaml = form == "yaml" and number[0] not in "19"
    assert bool(files.faults) is not text_of_yaml


@pytest.mark.parametrize("value", ["5", "null", '["a"]'])
def test_a_verb_that_is_no_text_stops_no_other_line(asked: Cronring, api: FakeApi, tmp_path: Path, value: str) -> None:
    file = tmp_path / "jobs.ndjson"
    job = '{"verb": %s, "name": "%s", "every": "5m"}\n'
    file.write_text(job % ('"mail.send"', "a") + job % (value, "b") + job % ('"mail.send"', "c"))
    done = asked("jobs", "import", "--stream", str(file))
    why = f"verb: {value} must be a text" if value != "null" else 'it needs a "verb"'
    assert (done.exit_code, f"{file}:2: {why}" in done.stderr) == (1, True), done.stderr
    assert [each.name for each in api.requests[-1].jobs] == ["a", "c"]


def test_halves_of_pairs_are_none_in_raw_bytes_either() -> None:
    with pytest.raises(WrongLine, match="no JSON"):
        LINES.job(b'{"verb": "mail.send", "name": "\xed\xa0\x80", "every": "5m"}')


@pytest.mark.parametrize("key", OF_COMMAND)
def test_what_is_an_option_of_the_command_is_no_key(key: str) -> None:
    for name in (key, key.replace("-", "_")):
        with pytest.raises(WrongLine, match=f"{name}: it is an option of a command"):
            LINES.job(json.dumps(VERB | {"every": "5m", name: True}).encode())


def test_a_line_with_now_runs_at_once(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "jobs.ndjson"
    lines: list[dict[str, object]] = [
        {"now": True},
        {"now": True, "every": "5m"},
        {"every": "5m"},
        {"now": False, "every": "5m"},
    ]
    file.write_text("".join(json.dumps(VERB | line) + "\n" for line in lines))
    assert asked("jobs", "import", "--stream", str(file)).exit_code == 0
    (request,) = [each for each in api.requests if isinstance(each, jobs_pb2.CreateJobsRequest)]
    assert [each.run_now for each in request.jobs] == [True, True, False, False]
    assert [each.spec.schedule for each in request.jobs] == ["manual", "every 5m", "every 5m", "every 5m"]


def test_a_file_that_is_applied_runs_nothing_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("set: x\njobs:\n- {verb: mail.send, name: a, every: 5m, now: true}\n")
    files = Files(LINES)
    files.read(path)
    assert "now: a file says which jobs there are" in str(files.faults[0])


@pytest.mark.parametrize("text", ["set: x\n", "set: x\njobs:\n", "set = 'x'\n"])
def test_a_file_that_was_cut_short_removes_nothing(asked: Cronring, api: FakeApi, tmp_path: Path, text: str) -> None:
    toml = "=" in text
    path = tmp_path / ("a.toml" if toml else "a.yaml")
    path.write_text(text)
    done = asked("apply", str(path), "--prune")
    assert (done.exit_code, api.requests) == (1, [])
    assert f"it has no jobs: write `{'jobs = []' if toml else 'jobs: []'}`" in done.stderr


@pytest.mark.parametrize("jobs", ["{}", "''", "0", "false"])
def test_what_is_empty_and_no_list_removes_nothing(tmp_path: Path, jobs: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"set: x\njobs: {jobs}\n")
    files = Files(LINES)
    files.read(path)
    assert "jobs must be a list" in str(files.faults[0])


def test_an_empty_list_that_is_written_out_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("set: x\njobs: []\n")
    files = Files(LINES)
    files.read(path)
    assert (files.faults, files.sets["default", "x"].jobs) == ([], {})


def test_a_verb_has_no_workspace() -> None:
    """It would be left out, as `jobs create` refuses it."""
    with pytest.raises(WrongLine, match="workspace"):
        LINES.job(json.dumps(VERB | {"every": "5m", "workspace": "w"}).encode())


def test_names_of_sets_are_texts_whatever_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"set = 0x{'f' * 5_000}\njobs = []\n")
    files = Files(LINES)
    try:
        files.read(path)
    except Failure:
        pytest.fail("it is a fault of the file")
    assert "it names no set" in str(files.faults[0])
