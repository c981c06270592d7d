"""What a module's file declares, asked of the author's own interpreter."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from cronring.runner.spawn import Program, reap, start_child
from cronring.runner.tail import Tail
from cronring.schema.duration import measured

IMPORT_TIMEOUT_S = 30.0


class DescribeFailed(Exception):  # the file is at fault, not the program
    """The file could not be described at all. The message says what to do."""


def read_program(file: str | Path, python: str, namespace: str) -> Program:
    """The program of an author's file, read now and once. Raises DescribeFailed."""
    path = Path(file).absolute()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DescribeFailed(f"{file}: {error.strerror or error}") from error
    return Program(python, path, source, namespace)


def dump_module(program: Program, timeout_s: float = IMPORT_TIMEOUT_S) -> dict[str, Any]:
    """The dump of cronring.child.describe. What the file prints at import is only shown when it fails.

    Blocks for as long as the import takes. Raises DescribeFailed when there is no answer.
    """
    lifeline_read, lifeline_write = os.pipe()
    output_read, output_write = os.pipe()
    answer_read, answer_write = os.pipe()
    try:
        with program.source_file() as source:
            descriptors = {"source": source.fileno(), "answer": answer_write}
            process = start_child(program, "describe", lifeline_read, output_write, descriptors)
    except OSError as error:
        for descriptor in (output_read, answer_read, lifeline_write):
            os.close(descriptor)
        raise DescribeFailed(f"--python {program.python} can't be started: {error.strerror or error}") from error
    finally:
        for descriptor in (lifeline_read, output_write, answer_write):
            os.close(descriptor)
    answer, printed, timed_out = _collect(process, answer_read, output_read, timeout_s)
    os.close(lifeline_write)
    if timed_out:
        raise DescribeFailed(f"{program.file}: its import took longer than {measured(timeout_s * 1_000)}")
    try:
        dump = json.loads(answer)
    except (ValueError, RecursionError):
        dump = None
    if not isinstance(dump, dict):  # it may have written there itself
        raise DescribeFailed(
            f"{program.file}: its import ended the interpreter (exit code {process.returncode})\n{printed}".strip()
        ) from None
    return dump


def _collect(process: subprocess.Popen[bytes], answer: int, output: int, timeout_s: float) -> tuple[bytes, str, bool]:
    """Read both pipes to their ends; (answer, last output, whether it had to be killed)."""
    tail = Tail()
    expired = threading.Event()

    def kill() -> None:
        expired.set()
        os.killpg(process.pid, signal.SIGKILL)

    def read_output() -> None:
        with os.fdopen(output, "rb", buffering=0) as stream:
            while data := stream.read(1 << 16):
                tail.write(data.decode("utf-8", "replace"))

    reader = threading.Thread(target=read_output, daemon=True)
    reader.start()
    timer = threading.Timer(timeout_s, kill)
    timer.start()
    try:
        with os.fdopen(answer, "rb") as stream:
            data = stream.read()
        reap(process)
    finally:
        timer.cancel()
        timer.join()
    reader.join(timeout=1.0)
    return data, tail.text(), expired.is_set()
