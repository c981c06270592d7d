"""Exceptions as text, cut to what is worth keeping."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback

from cronring.context import VerbStopped

MESSAGE_LIMIT = 16 * 1024
BASES_LIMIT = 20
_OURS = (
    os.path.dirname(os.path.abspath(__file__)),
    os.path.abspath(sys.modules[VerbStopped.__module__].__file__ or ""),
    "<frozen importlib",
)


def describe_error(error: BaseException) -> tuple[str, str, str]:
    """(type, message, traceback), the last two at most 16 KiB. Only the author's frames, not ours or importlib's."""
    name = _name(type(error))
    try:
        frames = "".join(_author_frames(error).format())
    except BaseException:  # the same as in error_text, or a __repr__ in a chained error
        frames = ""
    return name, clip(error_text(error).strip()), clip(frames.strip())


def error_bases(error: BaseException) -> list[str]:
    """The other names by which `except` would catch it: ancestors of its class, nearest first, without object."""
    return [_name(base) for base in type(error).__mro__[1:-1][:BASES_LIMIT]]


def _name(kind: type) -> str:
    module = str(kind.__module__)  # an author may have set anything
    plain = module == "builtins" or module.startswith("cronring.")
    return kind.__qualname__ if plain else f"{module}.{kind.__qualname__}"


def error_text(error: BaseException) -> str:
    """The text of an error. An author's __str__ may raise anything, SystemExit included."""
    try:
        return str(error)
    except BaseException as broken:
        return f"<unprintable: {type(broken).__name__}>"


def describe_end(stopped: bool, error: BaseException | None) -> tuple[str, str, str, str]:
    """(outcome, error_type, error_message, stack) of a run that did more than just complete.

    The outcome is "failed", "stopped" or "completed". The runner, which asked it to stop, knows whether "stopped" means
    timed out or cancelled.
    """
    if error is None:
        late = "it returned after it had been asked to stop"
        return ("stopped", "", late, "") if stopped else ("completed", "", "", "")
    error_type, message, stack = describe_error(error)
    if stopped or isinstance(error, VerbStopped):
        plain = isinstance(error, (asyncio.CancelledError, VerbStopped))
        return "stopped", "" if plain else error_type, message, stack
    return "failed", error_type, message, stack


def clip(text: str) -> str:
    """At most 16 KiB of UTF-8: the beginning says what, the end says where."""
    if len(text) * 4 <= MESSAGE_LIMIT or len(text.encode("utf-8", "replace")) <= MESSAGE_LIMIT:
        return text
    data = text.encode("utf-8", "replace")
    half = MESSAGE_LIMIT // 2 - 16
    return f"{data[:half].decode('utf-8', 'ignore')}\n[… cut …]\n{data[-half:].decode('utf-8', 'ignore')}"


def _author_frames(error: BaseException) -> traceback.TracebackException:
    told = traceback.TracebackException.from_exception(error)
    cut: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in cut:
            continue
        cut.add(id(one))
        one.stack = traceback.StackSummary.from_list(
            [frame for frame in one.stack if not frame.filename.startswith(_OURS)]
        )
        waiting += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]  # groups: from 3.11 on
    return told
