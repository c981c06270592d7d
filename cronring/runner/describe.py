"""What a module's file declares, asked of the author's own interpreter."""

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from cronring.runner.run_as import RunAs
from cronring.runner.spawn import Program, empty_file, kill_group, reap, start_child
from cronring.runner.tail import Tail
from cronring.schema.duration import measured

IMPORT_TIMEOUT_S = 30.0


class DescribeFailed(Exception):  # the file is at fault, not the program
    """The file could not be described at all. The message says what to do."""


def read_program(file: str | Path, python: str, namespace: str, run_as: RunAs | None = None) -> Program:
    """The program of an author's file, read now, once, and by this process's user. Raises DescribeFailed."""
    path = Path(file).absolute()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DescribeFailed(f"{file}: {error.strerror or error}") from error
    return Program(python, path, source, namespace, run_as=run_as)


class Described(NamedTuple):
    """`dump`: that of cronring.child.describe. `code`: as `Program` has it."""

    dump: dict[str, Any]
    code: bytes


class Describing:
    """A child that imports the file and describes it, from now on: `described` or `stop` ends it.

    Raises DescribeFailed when it can't be started.
    """

    def __init__(self, program: Program, timeout_s: float = IMPORT_TIMEOUT_S) -> None:
        self._program = program
        self._timeout_s = timeout_s
        self._answer, self._code = empty_file(), empty_file()
        self._tail = Tail()
        self._expired = threading.Event()
        lifeline_read, self._lifeline = os.pipe()
        output_read, output_write = os.pipe()
        try:
            with program.source_file() as source:
                files = {"source": source, "code": self._code, "answer": self._answer}
                descriptors = {name: file.fileno() for name, file in files.items()}
                self._process = start_child(program, "describe", lifeline_read, output_write, descriptors)
        except OSError as error:
            os.close(output_read)
            self._close()
            whom = "" if program.run_as is None else f" as {program.run_as.name}"
            message = f"--python {program.python} can't be started{whom}: {error.strerror or error}"
            raise DescribeFailed(message) from error
        finally:
            os.close(lifeline_read)
            os.close(output_write)
        # Daemons: who gives up while a child is at work need not wait for them.
        self._reader = threading.Thread(target=self._read_output, args=(output_read,), daemon=True)
        self._reader.start()
        self._timer = threading.Timer(timeout_s, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def described(self) -> Described:
        """To be called once. What the file prints at import is only shown when it fails.

        Blocks for as long as the import takes. Raises DescribeFailed when there is no answer.
        """
        try:
            reap(self._process)
            self._timer.cancel()
            self._reader.join(timeout=1.0)
            if self._expired.is_set():
                limit = measured(self._timeout_s * 1_000)
                raise DescribeFailed(f"{self._program.file}: its import took longer than {limit}")
            return Described(self._dump(), _read_all(self._code))
        finally:
            self._close()

    def stop(self) -> None:
        """In place of `described`: nobody wants to know any more."""
        self._timer.cancel()
        kill_group(self._process.pid)
        reap(self._process)
        self._close()

    def _dump(self) -> dict[str, Any]:
        try:
            dump = json.loads(_read_all(self._answer))
        except (ValueError, RecursionError):
            dump = None
        if not isinstance(dump, dict):  # it may have written there itself
            ended = f"its import ended the interpreter (exit code {self._process.returncode})"
            raise DescribeFailed(f"{self._program.file}: {ended}\n{self._tail.text()}".strip())
        return dump

    def _read_output(self, output: int) -> None:
        with os.fdopen(output, "rb", buffering=0) as stream:
            while data := stream.read(1 << 16):
                self._tail.write(data.decode("utf-8", "replace"))

    def _expire(self) -> None:
        with contextlib.suppress(ChildProcessError):  # reaped at this moment
            # It may be over, and wait for its answer to be read.
            if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                self._expired.set()
                kill_group(self._process.pid)

    def _close(self) -> None:
        self._answer.close()
        self._code.close()
        os.close(self._lifeline)


class DescribedFiles:
    """Each program with what its child says, in the order of the files; to be iterated over once.

    As many children as there are CPUs begin at once, and are at work while others' answers are read. What can't be
    described raises DescribeFailed in its turn.
    """

    def __init__(self, files: Iterable[str | Path], python: str, namespace: str, run_as: RunAs | None = None) -> None:
        self._files = iter(files)
        self._run_as = run_as
        self._python = python
        self._namespace = namespace
        self._at_work: deque[tuple[Program, Describing] | DescribeFailed] = deque()
        for _ in range(os.cpu_count() or 1):
            self._begin()

    def _begin(self) -> None:
        for file in islice(self._files, 1):
            try:
                program = read_program(file, self._python, self._namespace, self._run_as)
                self._at_work.append((program, Describing(program)))
            except DescribeFailed as error:
                self._at_work.append(error)

    def __iter__(self) -> Iterator[tuple[Program, Described]]:
        try:
            while self._at_work:
                begun = self._at_work.popleft()
                if isinstance(begun, DescribeFailed):
                    raise begun
                program, describing = begun
                described = describing.described()
                self._begin()
                yield program, described
        finally:
            self._stop()

    def _stop(self) -> None:
        for begun in self._at_work:
            if not isinstance(begun, DescribeFailed):
                begun[1].stop()


def _read_all(file: IO[bytes]) -> bytes:
    """By position: the child's descriptor is this one, and has moved it."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
