"""The first step of a run is taken at once, and only what then waits becomes a task.

Most short verbs never wait, and their tasks (a callback of the loop, its handle, an entry among all tasks) were a
quarter of what their runs cost. Whoever asks for the current task, or for all of them, finds a task all the same: it is
made when it is asked for. Since 3.12 CPython does all that by itself; before 3.11 no task can be given its context, so
there each run begins as a task.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import threading
from typing import Any, Callable

from cronring.child.output import current_printer
from cronring.child.steps import RunStep

Begin = Callable[[RunStep], None]


def beginning(loop: asyncio.AbstractEventLoop) -> Begin:
    """What begins a run on this loop: afterwards it has ended, or has a task. To be called before an author's code."""

    def begin_eagerly(step: RunStep) -> None:
        task = asyncio.Task(step, loop=loop, eager_start=True)  # type: ignore[call-arg]  # since 3.12
        if not task.done():
            step.task = task

    def begin_as_task(step: RunStep) -> None:
        step.task = asyncio.Task(step, loop=loop)

    if sys.version_info >= (3, 12):
        return _printing(begin_eagerly)
    if sys.version_info >= (3, 11):
        return FirstSteps(loop, _printing(begin_as_task)).begin
    return _printing(begin_as_task)


def _printing(begin: Begin) -> Begin:
    """What it prints is the run's, as a task copies the context."""

    def begin_printing(step: RunStep) -> None:
        token = current_printer.set(step.printer)
        try:
            begin(step)
        finally:
            current_printer.reset(token)

    return begin_printing


class FirstSteps:
    """For 3.11. A verb that has needed a task once begins with one from then on, as making it later costs more.

    From its making on asyncio's current_task and all_tasks know of first steps.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, begin_with_task: Begin) -> None:
        self._loop = loop
        self._begin_with_task = begin_with_task
        self._with_task: set[str] = set()  # verbs
        self._thread = threading.get_ident()
        self._first: tuple[RunStep, contextvars.Context] | None = None  # the run that takes its first step right now
        self._asked: asyncio.Task[None] | None = None  # its task, if somebody has asked for it
        for module in (asyncio, asyncio.tasks):
            for name in ("current_task", "all_tasks"):
                setattr(module, name, self._after_making_one(getattr(module, name)))

    def begin(self, step: RunStep) -> None:
        if step.run.verb in self._with_task:
            self._begin_with_task(step)
            return
        context = contextvars.copy_context()
        self._first = step, context
        try:
            context.run(_take_first, step)
        finally:
            self._first = None
            asked, self._asked = self._asked, None
            if asked is not None:
                asyncio.tasks._leave_task(self._loop, asked)  # noqa: SLF001  # documented, as below
        if asked is None and step.suspended:
            self._make_task(step, context)

    def _make_task(self, step: RunStep, context: contextvars.Context) -> asyncio.Task[None]:
        self._with_task.add(step.run.verb)
        step.task = asyncio.Task(step, loop=self._loop, context=context)
        return step.task

    def _after_making_one(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """`ask`, but a first step that asks has a task by then."""

        def ask_after(loop: asyncio.AbstractEventLoop | None = None) -> Any:
            first = self._first
            if first is not None and self._asked is None and threading.get_ident() == self._thread:
                self._asked = self._make_task(*first)
                asyncio.tasks._enter_task(self._loop, self._asked)  # noqa: SLF001  # documented: asyncio, "Extending"
            return ask(loop)

        return functools.wraps(ask)(ask_after)


def _take_first(step: RunStep) -> None:
    current_printer.set(step.printer)
    step.take_first()
