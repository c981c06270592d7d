"""The verbs of a loaded module, ready to be called."""

from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple

from cronring.child.signature import parameters
from cronring.context import Context, RunFacts
from cronring.declare import Declaration, declarations


class Run(NamedTuple):
    """One execution, as the runner sends it: a JSON array in this order."""

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


class UnknownVerb(LookupError):
    """The module has no verb of that name."""


class Verbs:
    """Callables by name. How many parameters one takes is looked up at its first call: a file may have thousands."""

    def __init__(self, module_name: str) -> None:
        self._declared: dict[str, Declaration] = {d.name: d for d in declarations(module_name)}
        self._takes_context: dict[str, bool] = {}
        self.moved: dict[int, int] = {}  # by execution: in how many ms its job is to run next

    def call(self, run: Run, started_us: int) -> Any:
        """Call the verb of `run`: its result, which is a coroutine for an async verb. Raises UnknownVerb."""
        declaration = self._declared.get(run.verb)
        if declaration is None:
            raise UnknownVerb(f"this file has no verb {run.verb!r}")
        takes_context = self._takes_context.get(run.verb)
        if takes_context is None:
            takes_context = self._takes_context[run.verb] = _takes_context(declaration.function)
        if not takes_context:
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
        return declaration.function(Context(facts, self.moved))


def _takes_context(function: Callable[..., Any]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in positional for parameter in parameters(function))
