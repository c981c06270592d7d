"""A command that a text names in backticks, with its options, is one that there is: people type what they read."""

import re
import subprocess
from typing import Final

import click

from cronring.cli.root import cli
from tests.tidy.test_tidy import ROOT

TEXTS: Final = ("*.py", "*.mjs", "*.proto", "*.md", "*.sql", "*.yml", "*.toml")
NAMED: Final = re.compile(r"`(?:\$ )?cronring((?: [\w.{}:/=,+\"'\\-]+)+)")
OTHERS: Final = ("tests/", "CHANGELOG.md")  # what isn't there (any more) may be named, too


def options(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def fault(words: list[str]) -> str:
    """What there isn't: a command, or an option of it."""
    here: click.Command = cli
    path = ""
    while isinstance(here, click.Group) and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        path += f" {words[0]}"
        if words[0] not in here.commands:
            return f"no command{path}"
        here, words = here.commands[words[0]], words[1:]
    known = options(cli) | options(here) | {"--help"}
    given = [word.partition("=")[0].rstrip("\\.,:") for word in words if word.startswith("--") and "{" not in word]
    return next((f"{path} has no {name}" for name in given if name not in known | {"--"}), "")


def test_commands_that_are_named_are_there() -> None:
    listed = subprocess.run(["git", "ls-files", *TEXTS], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.splitlines() if "_pb2" not in name and not name.startswith(OTHERS)]
    named = [(name, match[1]) for name in files for match in NAMED.finditer((ROOT / name).read_text())]
    assert len(named) > 500
    assert [(name, said) for name, said in named if fault(said.split())] == []


def test_one_that_is_not_is_found() -> None:
    assert fault(["tokens", "create"]) == "no command tokens"
    assert fault(["jobs", "list", "--nothing=1"]) == " jobs list has no --nothing"
    assert fault(["jobs", "list", "--output", "json"]) == ""
