"""From what a child process says about its file, a JSON value, to a module or to what is wrong with it.

The child is the author's process, so nothing in the value is taken on trust: whatever it is, the answer is a Module or
at least one Problem, and never an exception.
"""

from pathlib import PurePath
from typing import Any, Final, NamedTuple

from schema.duration import DurationError, parse_duration
from schema.keys import DEFAULT_NAMESPACE
from schema.module import Module, Verb
from schema.schedule import ScheduleError, check_interval, check_schedule, is_interval
from schema.types import ANY, UNIT, canonical_type
from schema.validate import LINE_LIMIT, ON_DISCONNECT, clean_doc, name_fault, namespace_fault, validate

VERSION: Final = 1
_CONTEXT: Final = "Context"
_TEXT_LIMIT: Final = 2_000  # of a problem's message or remedy that the child wrote


class Problem(NamedTuple):
    """Something the author has to mend. `line` is 0 and `verb` empty where the whole file is meant."""

    file: str
    line: int
    verb: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        verb = f" verb {self.verb}:" if self.verb else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{place}:{verb} {self.message}{remedy}"


class _Malformed(Exception):
    """The value is not what a child of this version says."""


def read_declaration(dump: object) -> Module | list[Problem]:
    """The module that a child's dump declares, or every problem in the order of the file's lines."""
    try:
        return _Reader(_mapping(dump, "the description")).read()
    except _Malformed as fault:
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
            raise _Malformed(f"its version is not {VERSION}")
        self._dump = dump
        self._file = _text(dump, "file") or ""
        self._problems: list[Problem] = []

    def read(self) -> Module | list[Problem]:
        for problem in _list(self._dump, "problems"):
            self._pass_on(_mapping(problem, "a problem"))
        module = self._module()
        if not self._problems:
            for flaw in validate(module):  # limits, and whatever else deployment would refuse
                self._report(0, "", f"{flaw.path}: {flaw.message}", "")
        if not self._problems:
            return module
        return sorted(dict.fromkeys(self._problems), key=lambda problem: problem.line)

    def _pass_on(self, problem: dict[str, Any]) -> None:
        self._report(
            _line(problem),
            _text(problem, "verb") or "",
            (_text(problem, "message") or "the child found a problem and did not say which")[:_TEXT_LIMIT],
            (_text(problem, "remedy") or "")[:_TEXT_LIMIT],
        )

    def _report(self, line: int, verb: str, message: str, remedy: str) -> None:
        self._problems.append(
            Problem(clean_doc(self._file), line, clean_doc(verb), clean_doc(message), clean_doc(remedy))
        )

    def _module(self) -> Module:
        name = _text(self._dump, "module") or PurePath(self._file).stem
        fault = name_fault(name)
        if fault is not None:
            self._report(0, "", f"the module's name {fault}", "it is that of the file without .py: rename the file")
        namespace = _text(self._dump, "namespace") or DEFAULT_NAMESPACE
        fault = namespace_fault(namespace)
        if fault is not None:
            self._report(0, "", f"the namespace {fault}", "write one like `team-a`")
        verbs = [self._verb(_mapping(verb, "a verb")) for verb in _list(self._dump, "verbs")]
        if not verbs and not self._problems:
            self._report(0, "", "the file declares no verb", "put @cron, @every or @verb above a function")
        self._find_repeated(verbs)
        return Module(name, tuple(verbs), namespace, clean_doc(_text(self._dump, "doc") or ""))

    def _find_repeated(self, verbs: list[Verb]) -> None:
        first: dict[str, Verb] = {}
        told = {(problem.line, problem.verb) for problem in self._problems}
        for verb in verbs:
            earlier = first.setdefault(verb.name, verb)
            if earlier is not verb and (verb.line, verb.name) not in told:
                message = f"a verb of this name is declared already, in line {earlier.line}"
                self._report(verb.line, verb.name, message, "rename one of them")

    def _verb(self, verb: dict[str, Any]) -> Verb:
        name = _text(verb, "name") or ""
        line = _line(verb)
        fault = name_fault(name)
        if fault is not None:
            self._report(line, name[:100], f"its name {fault}", "rename the function")
        schedule = self._schedule(verb, name, line)
        parameters = [_mapping(parameter, "a parameter") for parameter in _list(verb, "params")]
        returns = _text(verb, "returns")
        scheduled = _text(verb, "cron") is not None or _text(verb, "every") is not None
        if scheduled:
            self._check_signature(name, line, parameters, returns)
        return Verb(
            name=name,
            request=UNIT if scheduled else self._request(name, line, parameters),
            response=UNIT if scheduled else _type(returns, absent=UNIT),
            schedule=schedule,
            timeout_ms=self._timeout(verb, name, line),
            on_disconnect=self._on_disconnect(verb, name, line),
            is_async=verb.get("is_async") is True,
            doc=clean_doc(_text(verb, "doc") or ""),
            line=line,
        )

    def _schedule(self, verb: dict[str, Any], name: str, line: int) -> str:
        cron, every = _text(verb, "cron"), _text(verb, "every")
        if cron is not None and every is not None:
            message = "it has both @cron and @every"
            self._report(line, name, message, "keep one: a verb has one schedule")
            return ""
        decorator = "cron" if cron is not None else "every"
        try:
            if cron is not None:
                schedule = check_schedule(cron)
                if is_interval(schedule):
                    amount = schedule.partition(" ")[2]
                    self._report(line, name, f"@cron takes a pattern, not {cron!r:.60}", f'write @every("{amount}")')
                return schedule
            return "" if every is None else check_interval(every)
        except ScheduleError as error:
            given = every if cron is None else cron
            # A pattern's message says which character itself.
            place = f", character {error.position + 1}" if cron is None else ""
            message = f'@{decorator}("{_shown(given or "")}"){place}: {error.message}'
            remedy = f'write @{decorator}("{error.suggestion}")' if error.suggestion is not None else ""
            self._report(line, name, message, remedy or "the dialect stands in docs/schedules.md")
            return ""

    def _check_signature(self, name: str, line: int, parameters: list[dict[str, Any]], returns: str | None) -> None:
        """A scheduled verb takes nothing or a Context, and returns nothing."""
        if len(parameters) > 1:
            names = ", ".join(_shown(_text(parameter, "name") or "?") for parameter in parameters)
            message = (
                f"a verb with a schedule takes nothing or a Context, not {len(parameters)} parameters ({names[:200]})"
            )
            self._report(line, name, message, f"write `def {name}(ctx: Context) -> None`")
        for parameter in parameters[:1]:
            shown = _shown(_text(parameter, "name") or "?")
            annotation = _text(parameter, "annotation")
            if _text(parameter, "kind") not in {"positional", None}:
                message = f"its parameter {shown} is not positional, but the Context is given by position"
                self._report(line, name, message, f"write `def {name}(ctx: Context) -> None`")
            elif annotation is None:
                message = f"its parameter {shown} has no type; a verb with a schedule takes nothing or a Context"
                self._report(line, name, message, f"write `{shown}: Context`, with `from cronring import Context`")
            elif not _is_context(annotation):
                message = (
                    f"its parameter {shown} is a {_shown(annotation)}; a schedule has nothing to give but a Context"
                )
                self._report(line, name, message, f"write `{shown}: Context`, or take no parameter")
        if returns is not None and not _is_none(returns):
            message = f"it returns {_shown(returns)}, but nobody receives what a verb with a schedule returns"
            self._report(line, name, message, "return None, and say so: `-> None`")

    def _request(self, name: str, line: int, parameters: list[dict[str, Any]]) -> str:
        """The type of the one parameter beside the Context."""
        others = [parameter for parameter in parameters if not _is_context(_text(parameter, "annotation") or "")]
        if not others:
            return UNIT
        if len(others) > 1:
            names = ", ".join(_shown(_text(parameter, "name") or "?") for parameter in others)
            message = f"a verb takes at most a Context and one request, not {len(others)} ({names[:200]})"
            self._report(line, name, message, "put them together in one type")
        return _type(_text(others[0], "annotation"), absent=ANY)

    def _timeout(self, verb: dict[str, Any], name: str, line: int) -> int:
        text = _text(verb, "timeout")
        if text is None:
            return 0
        try:
            return parse_duration(text)
        except DurationError as error:
            remedy = 'write timeout="5m", for example'
            if error.suggestion is not None:
                remedy = f'write timeout="{error.suggestion}"'
            message = f'timeout="{_shown(text)}", character {error.position + 1}: {error.message}'
            self._report(line, name, message, remedy)
            return 0

    def _on_disconnect(self, verb: dict[str, Any], name: str, line: int) -> str:
        text = _text(verb, "on_disconnect")
        if text is None:
            return "stop"
        if text not in ON_DISCONNECT:
            message = f'on_disconnect="{_shown(text)}" is neither "stop" nor "finish"'
            self._report(line, name, message, 'write on_disconnect="finish" to let a run go on without controllers')
            return "stop"
        return text


def _type(annotation: str | None, absent: str) -> str:
    if annotation is None:
        return absent
    if _is_none(annotation):
        return UNIT
    return canonical_type(_unquoted(annotation)) or ANY


def _is_context(annotation: str) -> bool:
    return _unquoted(annotation).rpartition(".")[2] == _CONTEXT


def _is_none(annotation: str) -> bool:
    return _unquoted(annotation) in {"None", "NoneType"}


def _unquoted(annotation: str) -> str:
    """An annotation that was written as text, without its quotes."""
    return annotation.strip().strip("'\"").strip()


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}…"


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Malformed(f"{what} is not an object")
    return value


def _list(mapping: dict[str, Any], field: str) -> list[Any]:
    value = mapping.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Malformed(f"{field} is not a list")
    return value


def _text(mapping: dict[str, Any], field: str) -> str | None:
    value = mapping.get(field)
    if value is not None and not isinstance(value, str):
        raise _Malformed(f"{field} is not a text")
    return value


def _line(mapping: dict[str, Any]) -> int:
    value = mapping.get("line")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LINE_LIMIT:
        raise _Malformed("line is no line number")
    return value
