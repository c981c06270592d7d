"""cronring's own programs as processes: forks of one process that has imported them.

A controller imports for two seconds of CPU, a command for one, and the suite starts a thousand of them. So each worker
of pytest has a fork server (Python's multiprocessing), which imports all of it once (docs/decisions/0113). Whatever
else makes a process is as ever: an own pid, an own environment and folder, signals, `kill -9`, an exit code.

In /proc others see the command line and the environment of its parent. What an interpreter takes from its environment
as it begins, its hash seed and encoding, is its parent's, too. Tests that look at these have `fresh_programs` of
tests/conftest.py, or start `COMMAND` themselves, as most of `acceptance` and `docs` do. Outside of pytest every program
is started anew: benchmarks weigh what users have.
"""

import atexit
import contextlib
import functools
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import connection, forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.switch import NAMESPACES, enter_namespace

COMMAND: Final = (sys.executable, "-m", "cronring.cli.main")
INTO_NETWORK: Final = ("ip", "netns", "exec")
Done = subprocess.CompletedProcess[str]
ROOT: Final = Path(__file__).resolve().parents[2]
DEADLINE_S: Final = 100.0
# An exit code can be read once, and each start reads those of all that have ended: of two threads, one would miss it.
_ONE_READS = threading.Lock()
_forking = [False]  # the last one counts


class _Start(NamedTuple):
    """What a process of its own has of its own. `network`: the name of a network namespace."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    stdin: str
    stdout: str
    stderr: str  # the same file as stdout: both in one
    network: str


class Program:
    """As subprocess.Popen."""

    def __init__(self, process: ForkServerProcess, arguments: Sequence[str]) -> None:
        self._process = process
        self._arguments = arguments
        assert process.pid is not None, "it is started"
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with _ONE_READS:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            assert timeout is not None, "it has ended"
            raise subprocess.TimeoutExpired(self._arguments, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Started = subprocess.Popen[bytes] | Program


@contextlib.contextmanager
def forking(wanted: bool) -> Iterator[None]:
    """Whether programs that begin meanwhile are forks."""
    _forking.append(wanted)
    try:
        yield
    finally:
        _forking.pop()


def start(
    arguments: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path, wrapper: Sequence[str] = ()
) -> Started:
    """`cronring ARGUMENTS`, with stdout and stderr in `log`. `wrapper`: a command that starts another."""
    if _forking[-1] and tuple(wrapper[:-1]) in ((), INTO_NETWORK):
        log.write_bytes(b"")
        network = wrapper[-1] if wrapper else ""
        return _forked(_Start(arguments, dict(environment), folder, os.devnull, str(log), str(log), network))
    with log.open("wb") as output:
        return subprocess.Popen(
            [*wrapper, *COMMAND, *arguments],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, cwd=folder,
        )  # fmt: skip


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    given: str = "",
    network: str = "",
    timeout: float = DEADLINE_S,
) -> Done:
    """`cronring ARGUMENTS` until its end. `given`: its stdin. `network`: the name of a network namespace.

    Raises subprocess.TimeoutExpired; it is killed then.
    """
    if not _forking[-1]:
        return subprocess.run(
            [*((*INTO_NETWORK, network) if network else ()), *COMMAND, *arguments], input=given, capture_output=True,
            text=True, timeout=timeout, env=environment, cwd=folder, check=False,
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="cronring-run-") as made:
        stdin, stdout, stderr = files = [str(Path(made, name)) for name in ("stdin", "stdout", "stderr")]
        for file, content in zip(files, (given, "", ""), strict=True):
            Path(file).write_text(content)
        whole = dict(os.environ if environment is None else environment)
        program = _forked(_Start(arguments, whole, folder or Path.cwd(), stdin, stdout, stderr, network))
        try:
            code = program.wait(timeout)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
            raise
        said = (Path(file).read_text() for file in (stdout, stderr))
        return subprocess.CompletedProcess([*COMMAND, *arguments], code, *said)


def _forked(what: _Start) -> Program:
    with _ONE_READS:
        process = _served().Process(target=_become, args=(what,), daemon=True)
        process.start()
    return Program(process, what.arguments)


@functools.cache
def _served() -> ForkServerContext:
    """Have the fork server, with all imported as `python -m cronring.cli.main` imports it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.programs_imported"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("GRPC_VERBOSITY", "NONE")
        forkserver.ensure_running()
    return context


def _become(what: _Start) -> None:
    """In the fork: what a new interpreter would find."""
    for number, file, flags in (
        (0, what.stdin, os.O_RDONLY),
        (1, what.stdout, os.O_WRONLY | os.O_APPEND),
        (2, what.stderr, os.O_WRONLY | os.O_APPEND),
    ):
        opened = os.open(file, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing made another of it
    if what.network:
        enter_namespace(NAMESPACES / what.network)
    os.environ.clear()
    os.environ.update(what.environment)
    time.tzset()
    os.chdir(what.folder)
    ways = what.environment.get("PYTHONPATH", "")
    sys.path[0:1] = [str(what.folder), *(each for each in ways.split(os.pathsep) if each)]
    sys.argv = ["", *what.arguments]
    sys.orig_argv = [*COMMAND, *what.arguments]
    try:
        runpy.run_module("cronring.cli.main", run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()  # multiprocessing passes them over
