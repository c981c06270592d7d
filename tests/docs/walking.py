"""A page that is typed from its top to its end, in the terminals that it names, by somebody who has only its text."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

from tests.docs.reading import ROOT, SHELL, typed

PATIENCE_S: Final = 60.0  # on a busy machine
# What goes on until somebody ends it, and what it says once it is there.
ENDLESS: Final = {"cronring controller": '"started"', "cronring runner": '"module_registered"'}
_TERMINALS: Final = re.compile(r"\b(first|second|third|fourth)\s+terminal\b|\b(?:in\s+the\s+(second)\s+one)\b")
_CODE: Final = re.compile(r"#.*\bexit code (\d+)")


class Line(NamedTuple):
    """`code`: that it is to end with."""

    terminal: str
    text: str
    code: int


def saved(page: str) -> Iterator[tuple[str, str]]:
    """(name, content) of the files that a page has its reader save: a block behind "Save this as `NAME`:"."""
    text = (ROOT / page).read_text()
    yield from re.findall(r"Save\s+this\s+as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def lines(page: str) -> Iterator[Line]:
    """Each line that is typed. A terminal goes on until another one is named."""
    terminal = "first"
    before, *fenced = re.split(r"^```", (ROOT / page).read_text(), flags=re.MULTILINE)
    for number, part in enumerate([before, *fenced]):
        if number % 2 == 0:  # prose
            for found in _TERMINALS.findall(part):
                terminal = found[0] or found[1]
            continue
        language, _, block = part.partition("\n")
        for text in typed(block) if language in SHELL else ():
            code = _CODE.search(text)
            yield Line(terminal, text, int(code[1]) if code else 0)


class Desk:
    """An empty folder, and terminals in it. What is left running is ended with the `with`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "walk"
        self.folder.mkdir()
        (folder / "bin").mkdir()
        command = folder / "bin" / "cronring"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cronring.cli.main "$@"\n')
        command.chmod(0o700)
        (folder / "bin" / "python").symlink_to(sys.executable)
        self._plain = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")} | {
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config"),
        }  # fmt: skip
        self._environments: dict[str, dict[str, str]] = {}
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def type(self, terminal: str, text: str) -> tuple[int, str]:
        """Its exit code, and what it said. What is endless is left running; its code is 0 once it is there."""
        environment = self._environments.setdefault(terminal, dict(self._plain))
        for beginning, sign in ENDLESS.items():
            if text.startswith(f"{beginning} "):
                return self._start(text, environment, sign)
        if text.startswith("export "):
            name = text.removeprefix("export ").partition("=")[0]
            code, said = self._run(f'{text}\nprintf "\\0%s" "${name}"', environment)
            environment[name] = said.rpartition("\0")[2]  # what a command in it has remarked stands before
            return code, ""
        return self._run(text, environment)

    def _run(self, text: str, environment: dict[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=environment, text=True, timeout=PATIENCE_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _start(self, text: str, environment: dict[str, str], sign: str) -> tuple[int, str]:
        log = self.folder.parent / f"{len(self._running)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {text}"], cwd=self.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._running.append(process)
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < until:
            if sign in log.read_text():
                return 0, ""
            time.sleep(0.05)
        return process.poll() or 1, log.read_text()
