"""Secrets stay out of the lists of processes that everybody can read, and out of what is printed."""

import re
import signal
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from cronring.cli import root
from cronring.cli.main import main
from cronring.cli.options import Secret
from cronring.cli.root import cli
from cronring.client.environment import TOKEN
from cronring.trust import prctl
from cronring.trust.names import DEV_PARENT, INSECURE, SECRETS
from tests.unit.cli.test_options import ALL_OPTIONS

URL = "postgresql://ann:xyzzy@127.0.0.1:1/x"
LOOKS_SECRET: Final = re.compile(r"secret|token|password|passphrase|\bkey\b|url")
SEEN_BY_ALL = "everybody on this machine can read this --database-url in a list of processes"


def test_a_password_on_the_command_line_is_warned_of_and_not_repeated() -> None:
    done = CliRunner().invoke(cli, ["migrate", "--database-url", URL])
    assert done.exit_code == 3
    assert SEEN_BY_ALL in done.stderr
    assert "CRONRING_DATABASE_URL, or as --database-url @FILE" in done.stderr
    assert "xyzzy" not in done.output


def test_by_the_environment_or_from_a_file_nobody_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "url").write_text(f"{URL}\n")
    for given in (URL, f"@{tmp_path}/url"):
        monkeypatch.setenv("CRONRING_DATABASE_URL", given)
        done = CliRunner().invoke(cli, ["migrate"])
        assert (done.exit_code, "warning" in done.stderr) == (3, False)
        assert "127.0.0.1:1" in done.stderr
    monkeypatch.delenv("CRONRING_DATABASE_URL")
    done = CliRunner().invoke(cli, ["migrate", "--database-url", f"@{tmp_path}/url"])
    assert (done.exit_code, "warning" in done.stderr, "127.0.0.1:1" in done.stderr) == (3, False, True)
    done = CliRunner().invoke(cli, ["migrate", "--database-url", f"@{tmp_path}/none"])
    assert done.exit_code == 2
    assert "No such file" in done.stderr


def test_a_url_without_a_password_is_nobodys_secret() -> None:
    done = CliRunner().invoke(cli, ["migrate", "--database-url", "postgresql://ann@127.0.0.1:1/x"])
    assert "warning" not in done.stderr


def test_dev_names_its_own_variable(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("1 / 0\n")
    command = ["dev", str(tmp_path / "none.py"), "--database-url", URL]
    done = CliRunner().invoke(cli, command, auto_envvar_prefix="CRONRING")
    assert "CRONRING_DEV_DATABASE_URL, or as --database-url @FILE" in done.stderr


def test_every_variable_of_a_secret_is_kept_from_verbs() -> None:
    """An option that holds one says so by its type (`Secret`), whatever else looks like one names a file."""
    held, suspected = {TOKEN}, set()
    for _, option, context in ALL_OPTIONS:
        flag = max(option.opts, key=len).removeprefix("--")
        name = str(option.envvar or f"{context.auto_envvar_prefix}_{flag.replace('-', '_').upper()}")
        if isinstance(option.type, Secret):
            held.add(name)
        elif LOOKS_SECRET.search(flag) and not option.is_flag and not isinstance(option.type, click.Path):
            suspected.add(name)
    assert held == SECRETS
    # Addresses, and a program's name: a secret has no place in either.
    assert suspected == {"CRONRING_PUBLIC_URL", "CRONRING_SECRETS_COMMAND", "CRONRING_TRACE_URL"}


@pytest.mark.parametrize(("mark", "closed"), [("", 1), (DEV_PARENT, 0)])
def test_every_command_closes_its_process_but_for_the_controllers_of_a_dev(
    mark: str, closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(prctl, "close_to_own_user", lambda: calls.append(None))
    monkeypatch.setattr(root, "run", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.delenv(DEV_PARENT, raising=False)
    if mark:
        monkeypatch.setenv(mark, "1")
    main()
    assert len(calls) == closed


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--run-as", "root"], "--run-as: root reaches whatever the runner holds"),
        (["--run-as", "nobody-such"], "--run-as: there is no user 'nobody-such' here"),
        (["--join-token-file", "-", "--ca", __file__, "--stop-on-eof"], "with --stop-on-eof nothing is read from"),
    ],
)
def test_a_runner_refuses_in_words_before_any_code_of_an_author_runs(
    given: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mod.py").write_text("raise SystemExit('it was imported')\n")
    monkeypatch.setattr("cronring.cli.parent.watch_parent", lambda _: None)
    for name in SECRETS | {INSECURE}:
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(cli, ["runner", str(tmp_path / "mod.py"), "--controllers", "127.0.0.1:1", *given])
    assert (done.exit_code, says in " ".join(done.stderr.split())) == (2, True), done.stderr
