"""An author's module, loaded into this very process, as what a controller registers and what is called."""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cronring.child.describe import describe_module
from cronring.child.load import load_file
from cronring.child.verbs import ChildRun, Verbs
from cronring.declare import declarations
from cronring.runner.children import utc_offset_s
from cronring.schema.declaration import read_declaration
from cronring.schema.digest import digest
from cronring.schema.execution import Run
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import Module
from cronring.schema.text_print import print_module
from cronring.virtual.asking import AnswerVerb, AskerHere, AwaitedAsker


class ModuleError(Exception):
    """What is wrong with a module, one problem a line, as `cronring check` tells it."""


class LoadedHere(NamedTuple):
    module: Module
    digest: str
    verbs: "VerbsHere"


def load_here(module: str | Path | ModuleType, namespace: str = DEFAULT_NAMESPACE) -> LoadedHere:
    """Of a path or a module. A file that is imported already is that module: what is monkeypatched there counts.

    Raises ModuleError.
    """
    loaded = module if isinstance(module, ModuleType) else _import(Path(module).absolute())
    path = getattr(loaded, "__file__", None) or f"{loaded.__name__.rpartition('.')[2]}.py"
    declared = read_declaration(describe_module(loaded, path, namespace))
    if not isinstance(declared, Module):
        raise ModuleError("\n".join(map(str, declared)))
    source = inspect.getsource(loaded) if getattr(loaded, "__file__", None) else ""
    return LoadedHere(declared, digest(print_module(declared), source.encode()), VerbsHere(loaded))


def _import(path: Path) -> ModuleType:
    for known in list(sys.modules.values()):
        file = getattr(known, "__file__", None)
        if isinstance(file, str) and Path(file).absolute() == path and declarations(known.__name__):
            return known
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ModuleError(f"{path}: {error.strerror or error}") from error
    try:
        return load_file(str(path), source)
    except ImportError as error:
        raise ModuleError(f"{path}: {error}") from error


class VerbsHere(Verbs):
    """The module's verbs; one that is replaced in the module (monkeypatched) is called as what it is now."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module
        self._before = {name: getattr(module, name, None) for name in self._declared}

    def prepare(self, run: Run, started_us: int, answer: AnswerVerb) -> Callable[[], Any]:
        """The call of this run's verb. `answer`: what it asks about jobs."""
        now = getattr(self._module, run.verb, None)
        if now is not self._before.get(run.verb) and callable(now):
            self._replace(run.verb, now)
        asker = AskerHere(run.execution_id, answer)
        is_async = inspect.iscoroutinefunction(inspect.unwrap(self._declared[run.verb].function))
        self.asker = AwaitedAsker(asker) if is_async else asker
        return lambda: self.call(_child_run(run), started_us)

    def _replace(self, verb: str, replacement: Callable[..., Any]) -> None:
        """It is called as the author's own function would be, whatever it declares itself (a Mock, a lambda)."""
        self._before[verb] = replacement
        declaration = self._declared[verb]

        @functools.wraps(declaration.function)
        def stand_in(*arguments: Any, **named: Any) -> Any:
            return replacement(*arguments, **named)

        self._declared[verb] = dataclasses.replace(declaration, function=stand_in)
        self._parameters.pop(verb, None)


def _child_run(run: Run) -> ChildRun:
    """As a child gets it from its runner."""
    return ChildRun(
        0,
        run.execution_id,
        run.verb,
        run.job,
        run.tick_us,
        run.run_at_us,
        run.deadline_us,
        run.attempt,
        run.trigger,
        run.missed,
        run.previous_tick_us,
        run.previous_success_us,
        run.payload_json,
        run.timezone,
        utc_offset_s(run.timezone, run.tick_us) if run.timezone else 0,
        run.interval,
    )
