"""`cronring secrets-key`: a file of keys is made, added to, turned over and shown, and no key is ever printed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cronring.cli.root import cli
from cronring.trust.keyfile import read_keys


def told(*words: object) -> Result:
    return CliRunner().invoke(cli, ["secrets-key", *map(str, words)])


def ids(file: Path) -> list[str]:
    return [key.key_id for key in read_keys(file)]


def test_a_key_takes_the_place_of_another(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    steps = [told("init", file)]
    (old,) = ids(file)
    steps.append(told("add", file))
    new = ids(file)[1]
    assert ids(file) == [old, new]
    assert steps[-1].stdout == f"{new}\n", "so that a script can go on with it"
    for _ in range(2):
        steps.append(told("use", file, new))
        assert ids(file) == [new, old]
    steps.append(told("show", file))
    assert json.loads(told("show", file, "-o", "json").stdout) == [
        {"id": new, "encrypts": True}, {"id": old, "encrypts": False},
    ]  # fmt: skip
    keys = [line.split()[1] for line in file.read_text().splitlines() if not line.startswith("#")]
    steps.append(told("retire", file))
    assert ids(file) == [new]
    assert [step.exit_code for step in steps] == [0] * 6
    said = "".join(step.output for step in steps)
    assert f"cronring secrets-key use {file} {new}" in said
    assert f"gone: {old}" in said
    assert f"{new}  encrypts and opens\n{old}  opens\n" in said
    assert not [key for key in keys if key in said]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("init", "FILE"), "is there already, and is not overwritten"),
        (("use", "FILE", "none"), "has no key 'none'; it has key-"),
        (("init", "/nowhere/secrets.key"), "No such file"),
    ],
)
def test_what_would_lose_a_key_is_refused(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    file = tmp_path / "secrets.key"
    told("init", file)
    before = file.read_text()
    done = told(*({"FILE": file}.get(word, word) for word in words))
    assert done.exit_code == 1
    assert says in done.stderr
    assert file.read_text() == before


def test_a_controller_does_not_start_with_keys_that_can_t_be_used(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    told("init", file)
    start = ["controller", "--insecure", "--database-url", "postgresql://127.0.0.1:1/x"]
    file.chmod(0o644)
    done = CliRunner().invoke(cli, [*start, "--secrets-key", str(file)])
    assert (done.exit_code, f"--secrets-key: {file} is open to others" in done.stderr) == (2, True)
    done = CliRunner().invoke(cli, [*start, "--secrets-command", "kms 'open"])
    assert (done.exit_code, "--secrets-command: No closing quotation" in done.stderr) == (2, True)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    told("init", file)
    file.chmod(0o644)
    assert "is open to others (mode 0644)" in told("show", file).stderr
