"""The verbs of a loaded module, ready to be called."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Callable, NamedTuple

from cronring.child import signature
from cronring.child.payloads import PayloadError, Payloads
from cronring.child.shapes import is_context, own_annotations
from cronring.context import Context, RunFacts
from cronring.declare import Declaration, declarations
from cronring.jobs import JobsAsker


class ChildRun(NamedTuple):
    """One execution, as the runner sends it: see `runs_from`."""

    slot: int
    execution_id: int
    verb: str
    job: str
    tick_us: int
    run_at_us: int
    deadline_us: int
    attempt: int
    trigger: str
    missed: int = 0
    previous_tick_us: int = 0  # 0: there is none, as below
    previous_success_us: int = 0
    payload_json: str = ""
    timezone: str = ""
    utc_offset_s: int | None = None
    interval: bool = False
    memory_limit: int = 0  # bytes; 0: none, as below
    cpu_limit_us: int = 0


def runs_from(columns: Sequence[Sequence[Any]]) -> Iterator[ChildRun]:
    """Runs from columns in the order of ChildRun's fields. A column with a single entry holds for all runs."""
    count = len(columns[1])  # ids of executions, no two of which are the same
    return map(
        ChildRun._make, zip(*[column if len(column) == count else repeat(column[0], count) for column in columns])
    )


class UnknownVerb(LookupError):
    """The module has no verb of that name."""


class _Parameters(NamedTuple):
    """What a verb takes. `payloads` is None if it takes no payload."""

    context: bool
    payloads: Payloads | None = None
    payload_name: str = ""
    payload_keyword: bool = False
    payload_first: bool = False
    payload_optional: bool = False


_NOTHING = _Parameters(False)
_CONTEXT = _Parameters(True)


class Verbs:
    """Callables by name. A verb's parameters are read at its first call, as a file may have thousands of verbs."""

    def __init__(self, module_name: str) -> None:
        self._declared: dict[str, Declaration] = {d.name: d for d in declarations(module_name)}
        self._parameters: dict[str, _Parameters] = {}
        self.moved: dict[int, int] = {}  # by execution: in how many ms its job is to run next
        self.reported: dict[int, dict[str, Any]] = {}  # by execution: what it says of itself
        self.asker: JobsAsker | None = None  # whom runs ask about jobs

    def told(self, execution_id: int) -> tuple[int, str]:
        """What an ended run has asked for and said: in how many ms its job is to run next, and metrics as JSON."""
        metrics = self.reported.pop(execution_id, None)
        return self.moved.pop(execution_id, 0), json.dumps(metrics, separators=(",", ":")) if metrics else ""

    def call(self, run: ChildRun, started_us: int) -> Any:
        """Call the verb of `run`. Returns its result: a coroutine for an async verb.

        Raises UnknownVerb, PayloadError for a payload that doesn't fit, and what the verb raises.
        """
        declaration = self._declared.get(run.verb)
        if declaration is None:
            raise UnknownVerb(f"this file has no verb {run.verb!r}")
        parameters = self._parameters.get(run.verb)
        if parameters is None:
            parameters = self._parameters[run.verb] = _parameters_of(declaration.function)
        if parameters is _NOTHING:
            return declaration.function()
        facts = RunFacts(
            run.execution_id,
            run.job,
            run.tick_us,
            run.run_at_us,
            run.deadline_us,
            run.attempt,
            run.trigger,
            started_us,
            run.missed,
            run.previous_tick_us,
            run.previous_success_us,
            run.payload_json,
            run.timezone,
            run.utc_offset_s,
            run.interval,
        )
        context = Context(facts, self.moved, self.reported, self.asker)
        if parameters is _CONTEXT:
            return declaration.function(context)
        return _call_with_payload(declaration.function, parameters, context, run.payload_json)


def _call_with_payload(function: Callable[..., Any], takes: _Parameters, context: Context, payload_json: str) -> Any:
    assert takes.payloads is not None
    positional: list[Any] = [context] if takes.context else []
    if not payload_json and takes.payload_optional:
        return function(*positional)
    try:
        value = takes.payloads.read(payload_json or "null")
    except PayloadError as error:
        if payload_json:
            raise
        message = f"it needs a payload for its parameter {takes.payload_name}, and this run has none"
        raise PayloadError(message) from error
    if takes.payload_keyword:
        return function(*positional, **{takes.payload_name: value})
    positional.insert(0 if takes.payload_first else len(positional), value)
    return function(*positional)


def _parameters_of(function: Callable[..., Any]) -> _Parameters:
    """Which parameter takes the Context, and which the payload. The module was checked: there is at most one more."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in signature.parameters(function) if p.kind in {*positional, inspect.Parameter.KEYWORD_ONLY}]
    plain = inspect.unwrap(function)
    annotations = own_annotations(plain)
    namespace = getattr(plain, "__globals__", {})
    others = [p for p in taken if not is_context(annotations.get(p.name), namespace)]
    if not others:
        return _CONTEXT if taken else _NOTHING
    payload = others[0]
    context = len(others) < len(taken)
    return _Parameters(
        context,
        Payloads(annotations.get(payload.name, Any), namespace),
        payload.name,
        payload.kind is inspect.Parameter.KEYWORD_ONLY,
        context and taken.index(payload) == 0,
        payload.default is not payload.empty,
    )
