"""What is read of a file: plain values, where each stands, and what is wrong with it."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class FileFault(NamedTuple):
    """`line`: from 1 on; 0: nobody knows."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}" if self.line else f"{self.file}: {self.problem}"


class ParsedFile(NamedTuple):
    """`lines`: of the items of lists right below the top, by key."""

    values: Mapping[str, Any]
    lines: Mapping[str, list[int]]


class UnreadableFile(Exception):
    """`faults` are (line, problem) pairs."""

    def __init__(self, *faults: tuple[int, str]) -> None:
        super().__init__("; ".join(problem for _, problem in faults))
        self.faults = faults
