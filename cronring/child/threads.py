"""Threads that an async verb starts print into its execution: contextvars don't follow into them by themselves."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from typing import Any, Callable

from cronring.child.output import Printer, current_printer


def follow_threads(loop: asyncio.AbstractEventLoop) -> None:
    """From here on a thread prints for the run that started it, and a pool's work for the run that submitted it.

    (asyncio.to_thread takes the context along; run_in_executor and threading.Thread don't.)
    """
    start_thread = threading.Thread.start
    run_in_executor = loop.run_in_executor

    def start(self: threading.Thread) -> None:
        printer = current_printer.get()
        if printer is not None:
            self.run = _printing(printer, self.run)  # type: ignore[method-assign]  # of this one thread
        start_thread(self)

    def run(executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        threads = executor is None or isinstance(executor, concurrent.futures.ThreadPoolExecutor)
        if threads and current_printer.get() is not None:
            return run_in_executor(executor, contextvars.copy_context().run, function, *arguments)
        return run_in_executor(executor, function, *arguments)

    threading.Thread.start = start  # type: ignore[method-assign]  # for threads of libraries too
    loop.run_in_executor = run  # type: ignore[assignment]  # of this one loop


def _printing(printer: Printer, run: Callable[[], None]) -> Callable[[], None]:
    def run_printing() -> None:
        current_printer.set(printer)
        run()

    return run_printing
