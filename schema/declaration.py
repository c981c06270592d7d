"""Turns a child's description of its file, a JSON value, into a module, or into the problems of the file.

The child is the author's process, so nothing in the value is trusted. For any value at all, the answer is a Module or
at least one Problem, and never an exception.
"""

import json
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from cronring.schema.declaration_values import Malformed, json_text, line, listed, mapping, text, type_text
from cronring.schema.declaration_verb import VerbReader
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.payload import value_faults
from cronring.schema.types import ANY
from cronring.schema.validate import clean_doc, name_fault, namespace_fault, validate

VERSION: Final = 1
_TEXT_LIMIT: Final = 2_000  # of a problem's message or remedy that the child wrote


class Problem(NamedTuple):
    """Something the author has to mend. `line` is 0 and `verb` empty where the whole file is meant."""

    file: str
    line: int
    verb: str
    message: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        verb = f" verb {self.verb}:" if self.verb else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{where}:{verb} {self.message}{remedy}"


def read_declaration(dump: object) -> Module | list[Problem]:
    """The module that a child's dump declares, or every problem in the order of the file's lines."""
    try:
        return _Reader(mapping(dump, "the description")).read()
    except Malformed as fault:
        return [
            Problem(
                "",
                0,
                "",
                f"the child process described its module in a way that is not understood: {fault}",
                "let the runner's own version of cronring describe it, and look for output on its channel",
            )
        ]


class _Reader:
    def __init__(self, dump: dict[str, Any]) -> None:
        version = dump.get("version")
        if version != VERSION or isinstance(version, bool):
            raise Malformed(f"its version is not {VERSION}")
        self._dump = dump
        self._file = text(dump, "file") or ""
        self._problems: list[Problem] = []

    def read(self) -> Module | list[Problem]:
        for problem in listed(self._dump, "problems"):
            self._pass_on(mapping(problem, "a problem"))
        module = self._module()
        if not self._problems:
            for flaw in validate(module):  # limits, payloads, and whatever else deployment would refuse
                verb = self._verb_of(flaw.path, module)
                if verb is None:
                    self._report(0, "", f"{flaw.path}: {flaw.message}", "")
                else:
                    self._report(verb.line, verb.name, f"its {flaw.path.partition('.')[2]}: {flaw.message}", "")
        if not self._problems:
            return module
        return sorted(dict.fromkeys(self._problems), key=lambda problem: problem.line)

    def _pass_on(self, problem: dict[str, Any]) -> None:
        self._report(
            line(problem),
            text(problem, "verb") or "",
            (text(problem, "message") or "the child found a problem and did not say which")[:_TEXT_LIMIT],
            (text(problem, "remedy") or "")[:_TEXT_LIMIT],
        )

    def _report(self, line: int, verb: str, message: str, remedy: str) -> None:
        self._problems.append(
            Problem(clean_doc(self._file), line, clean_doc(verb), clean_doc(message), clean_doc(remedy))
        )

    def _module(self) -> Module:
        name = text(self._dump, "module") or PurePath(self._file).stem
        fault = name_fault(name)
        if fault is not None:
            self._report(0, "", f"the module's name {fault}", "it is that of the file without .py: rename the file")
        namespace = text(self._dump, "namespace") or DEFAULT_NAMESPACE
        fault = namespace_fault(namespace)
        if fault is not None:
            self._report(0, "", f"the namespace {fault}", "write one like `team-a`")
        verbs = [VerbReader(mapping(verb, "a verb"), self._report).read() for verb in listed(self._dump, "verbs")]
        types = [_data_type(mapping(each, "a type")) for each in listed(self._dump, "types")]
        if not verbs and not self._problems:
            self._report(0, "", "the file declares no verb", "put @cron, @every or @verb above a function")
        self._find_repeated(verbs)
        doc = clean_doc(text(self._dump, "doc") or "")
        return Module(name, tuple(verbs), namespace, doc, _without_odd_defaults(types))

    def _find_repeated(self, verbs: list[Verb]) -> None:
        first: dict[str, Verb] = {}
        told = {(problem.line, problem.verb) for problem in self._problems}
        for verb in verbs:
            earlier = first.setdefault(verb.name, verb)
            if earlier is not verb and (verb.line, verb.name) not in told:
                message = f"a verb of this name is declared already, in line {earlier.line}"
                self._report(verb.line, verb.name, message, "rename one of them")

    def _verb_of(self, path: str, module: Module) -> Verb | None:
        """The verb that a flaw is about, if it is about one."""
        index = path.removeprefix("verbs[").partition("]")[0]
        return module.verbs[int(index)] if index != path and index.isdigit() else None


def _without_odd_defaults(types: list[DataType]) -> tuple[DataType, ...]:
    """`note: str = None` is wrong, and everywhere: only the author's code knows what becomes of such a default."""
    known = {data.name: data for data in types}

    def mended(field: DataField) -> DataField:
        odd = field.default and value_faults(known, field.type, json.loads(field.default))
        return field._replace(default="") if odd else field

    return tuple(replace(data, fields=tuple(map(mended, data.fields))) for data in types)


def _data_type(dump: dict[str, Any]) -> DataType:
    fields = tuple(_data_field(mapping(field, "a field")) for field in listed(dump, "fields"))
    return DataType(text(dump, "name") or "", fields, clean_doc(text(dump, "doc") or ""))


def _data_field(dump: dict[str, Any]) -> DataField:
    type_ = type_text(text(dump, "type"), ANY)
    return DataField(text(dump, "name") or "", type_, dump.get("optional") is True, json_text(dump, "default"))
