"""A file of lines, read in parts, and how far it has been dealt with: kept beside it, so that a command can go on."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from cronring.cli.failures import Failure
from cronring.cli.job_lines import LINE_MAX

PART_LINES: Final = 2_000
PART_BYTES: Final = 4 * 1024 * 1024  # half of what a call may have
_TAIL: Final = 4_096  # bytes before a position, by which the file is known again
_BOM: Final = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """`number`: from 1 on. `raw`: without its end; of one that is too long, its beginning."""

    number: int
    raw: bytes


class Reached(NamedTuple):
    """All before `offset` is dealt with. `tail`: SHA-256 of the last bytes before it. `cluster`: the id of whose."""

    offset: int = 0
    line: int = 0
    made: int = 0
    unchanged: int = 0
    failed: int = 0
    tail: str = ""
    changed: int = 0
    cluster: str = ""


class Part(NamedTuple):
    """Lines that follow each other, without empty ones. `offset`, `line`: of its end."""

    lines: list[Line]
    offset: int
    line: int


def parts(opened: IO[bytes], start: Reached, most_lines: int = PART_LINES) -> Iterator[Part]:
    """From `start` on, where the file stands."""
    offset, number, size = start.offset, start.line, 0
    lines: list[Line] = []
    while raw := opened.readline(LINE_MAX + 2):
        offset += len(raw)
        number += 1
        kept = raw
        while raw and not raw.endswith(b"\n"):  # the rest of one that is too long, or the file's end
            raw = opened.readline(LINE_MAX)
            offset += len(raw)
        text = kept.removeprefix(_BOM).strip() if number == 1 else kept.strip()
        if text:
            lines.append(Line(number, text))
            size += len(text)
        if len(lines) >= most_lines or size >= PART_BYTES:
            yield Part(lines, offset, number)
            lines, size = [], 0
    yield Part(lines, offset, number)


class Kept:
    """A position in a file, in another file."""

    def __init__(self, file: Path, kept: Path) -> None:
        self._file = file
        self._kept = kept

    def read(self, opened: IO[bytes], cluster: str) -> Reached:
        """Where to go on in that cluster; the file stands there then. Raises Failure if either is another by now."""
        try:
            position = Reached(**json.loads(self._kept.read_text("utf-8")))
        except FileNotFoundError:
            return Reached(cluster=cluster)
        except (OSError, ValueError, TypeError) as error:
            raise Failure(f"{self._kept}: it holds no position ({error}); remove it to begin anew") from None
        if position.cluster != cluster:
            raise Failure(
                f"{self._kept} is of another cluster than the one that is asked: up to line {position.line:,} it has "
                "been dealt with there; name another place with --position, or remove it to begin anew"
            )
        if (
            not 0 <= position.offset <= os.fstat(opened.fileno()).st_size
            or tail(opened, position.offset) != position.tail
        ):
            raise Failure(
                f"{self._file} is another file than the one of {self._kept}, which was read up to line "
                f"{position.line:,}; remove that to begin anew"
            )
        opened.seek(position.offset)
        return position

    def write(self, position: Reached) -> None:
        """Whoever kills this finds the old one or the new one. Raises Failure."""
        beside = self._kept.with_name(f"{self._kept.name}.new")
        try:
            beside.write_text(json.dumps(position._asdict()), "utf-8")
            beside.replace(self._kept)
        except OSError as error:
            raise Failure(f"{self._kept}: {error.strerror}; name another place with --position") from error

    def remove(self) -> None:
        self._kept.unlink(missing_ok=True)


def tail(opened: IO[bytes], offset: int) -> str:
    """Of the last bytes before it. The file stands where it stood."""
    first = max(0, offset - _TAIL)
    return hashlib.sha256(os.pread(opened.fileno(), offset - first, first)).hexdigest()
