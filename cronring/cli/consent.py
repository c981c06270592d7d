"""The one place where a command asks whether it is to go on."""

import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

import click

from cronring.cli.printing import say_lines, visible

LOOK_FIRST: Final = "See which with --dry-run; do it with --yes"


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def require_terminal() -> None:
    """Before what is about to happen is looked up. Raises UsageError where there is nobody to ask."""
    if not is_terminal():
        raise click.UsageError("it asks for consent, and there is no terminal to ask on; give it with --yes")


def confirm(lines: Sequence[str] = (), remedy: str = "Do it with --yes") -> None:
    """Say what is about to happen, and ask "Do it?". `remedy`: what to give where there is nobody to ask.

    Raises UsageError there, and click.Abort for a no, and for Ctrl-C.
    Within a loop Ctrl-C only cancels the task, which would wait for the answer all the same: here it is heard at once.
    """
    if not is_terminal() and lines:
        raise click.UsageError(f"{visible('; '.join(lines))}. {remedy}")
    require_terminal()
    say_lines(lines, err=True)
    before = signal.getsignal(signal.SIGINT)
    mine = threading.current_thread() is threading.main_thread()  # elsewhere nobody may set handlers
    if mine:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        click.confirm("Do it?", abort=True, err=True)
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)
