"""From an author's file to what a controller registers."""

from dataclasses import replace
from typing import NamedTuple

from cronring.runner.describe import Described, Describing
from cronring.runner.spawn import Program
from cronring.schema.declaration import Problem, read_declaration
from cronring.schema.digest import digest
from cronring.schema.module import Module
from cronring.schema.text_print import print_module


class InvalidFile(Exception):  # the file is at fault, not the program
    """`problems` name file, line, verb and remedy."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class LoadedModule(NamedTuple):
    """A module, its digest (over its text form and its source), and what its children run."""

    module: Module
    digest: str
    program: Program


def load_module(program: Program) -> LoadedModule:
    """Import the file in a child and read its declarations. Blocks. Raises InvalidFile, and DescribeFailed."""
    return read_module(program, Describing(program).described())


def read_module(program: Program, described: Described) -> LoadedModule:
    """What a child has said of the program's file. Raises InvalidFile."""
    declared = read_declaration(described.dump)
    if not isinstance(declared, Module):
        raise InvalidFile(declared)
    of_text = digest(print_module(declared), program.source)
    return LoadedModule(declared, of_text, replace(program, code=described.code))
