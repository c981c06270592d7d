"""dev without a terminal: a line for each happening, `INSTANT WORD key=value ...`, or an object in JSON."""

import os
from datetime import datetime
from typing import TextIO, assert_never

from cronring.cli.dev.happenings import (
    Happening,
    Heartbeat,
    MemberChanged,
    OutputLine,
    ProcessEnded,
    ProcessStarted,
    RingHealed,
    RunEnded,
    RunStarted,
    ServedBy,
    StartProgress,
    ViewLost,
)
from cronring.cli.dev.replay_lines import json_line
from cronring.cli.dev.state import DevState
from cronring.cli.dev.summary import not_booked
from cronring.cli.execution_rows import duration_ms
from cronring.cli.output import instant_text, quoted
from cronring.schema.visible import visible_line


class Plain:
    """Prints as it happens; every line is flushed, so a pipe sees it at once."""

    def __init__(self, state: DevState, output: TextIO, *, as_json: bool = False) -> None:
        self._state = state
        self._output = output
        self._line = line_of_json if as_json else line

    def tell(self, happening: Happening) -> None:
        """Raises BrokenPipeError, once, when nobody reads it any more."""
        try:
            self._output.write(self._line(self._state.now(), happening) + "\n")
            self._output.flush()
        except BrokenPipeError:
            # What is still to be written goes nowhere, this buffer's content at exit included.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())
            raise

    def draw(self) -> None:
        """Nothing moves here."""

    def close(self) -> None:
        """Nothing to put back."""


def line(moment: datetime, happening: Happening) -> str:
    word, values = fields(happening)
    pairs = " ".join(f"{key}={_value(value)}" for key, value in values.items())
    return f"{instant_text(moment.replace(microsecond=moment.microsecond // 1000 * 1000))} {word} {pairs}".rstrip()


def line_of_json(moment: datetime, happening: Happening) -> str:
    word, values = fields(happening)
    return json_line({"at": moment, "event": word, **values})


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    text = str(value) if value is not None else "-"
    return quoted(text) if not text or any(c in text for c in ' "=') or visible_line(text) != text else text


def fields(happening: Happening) -> tuple[str, dict[str, object]]:
    """The line's word and its values."""
    match happening:
        case StartProgress(text):
            return "progress", {"step": text}
        case ProcessStarted(name, pid, grpc_address, http_address):
            addresses = {"grpc": grpc_address, "http": http_address} if grpc_address else {}
            return "process_started", {"name": name, "pid": pid, **addresses}
        case ProcessEnded(name, pid, how, next_step):
            return "process_ended", {"name": name, "pid": pid, "how": how, "next": next_step}
        case MemberChanged() | RingHealed() | ServedBy() | ViewLost():
            return _membership(happening)
        case RunStarted() | RunEnded():
            return _run(happening)
        case OutputLine(execution_id, job, text, is_error):
            return "error" if is_error else "output", {"id": execution_id, "job": job, "text": text}
        case Heartbeat(books, worst_lateness_ms, alive):
            return "heartbeat", {
                "due": books.ticks,
                "executed": books.executed,
                "running": books.running,
                "skipped": sum(books.skipped.values()),
                "not_booked_yet": not_booked(books),
                "worst_lateness_ms": worst_lateness_ms,
                "controllers": alive,
            }
        case _:
            assert_never(happening)


def _membership(happening: MemberChanged | RingHealed | ServedBy | ViewLost) -> tuple[str, dict[str, object]]:
    match happening:
        case MemberChanged(name, before, after):
            return "member", {"name": name, "before": before or "-", "status": after}
        case RingHealed(after_s, owners):
            return "ring_healed", {"after_ms": after_s * 1_000, "owners": owners}
        case ServedBy(name):
            return "served_by", {"name": name}
        case ViewLost(reason):
            return "view_lost", {"reason": reason}
        case _:
            assert_never(happening)


def _run(happening: RunStarted | RunEnded) -> tuple[str, dict[str, object]]:
    execution = happening.execution
    who: dict[str, object] = {"controller": happening.controller, "runner": happening.runner}
    what: dict[str, object] = {"id": execution.id, "job": execution.job, "tick": instant_text(execution.tick)}
    if isinstance(happening, RunStarted):
        return "started", what | who
    ended: dict[str, object] = {
        "outcome": execution.outcome,
        "lateness_ms": execution.lateness_ms,
        "duration_ms": duration_ms(execution),
    }
    error: dict[str, object] = {"error": execution.error_type} if execution.error_type else {}
    return "execution", what | ended | who | error
