"""What a child says, one JSON line at a time, read and checked. A verb may have written to the child's socket, so that
anything at all may come: nothing that this takes can break whoever handles it.
"""

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from cronring.schema.duration import DURATION_LIMIT_MS

_INTEGER_MAX: Final = 1 << 62
_TEXT_LENGTH_MAX: Final = 16 * 1024  # of an error's message, or its stack; the end is kept
_NAME_LENGTH_MAX: Final = 200
_METRICS_LENGTH_MAX: Final = 4 * 1024
_BASES_MAX: Final = 50
_PLAIN: Final = 4
_CALLS_MAX: Final = 1_000_000  # of a run; controllers allow fewer, and say so
_PATIENCE_MS_MAX: Final = 3_600_000


class GarbageError(ValueError):
    """No child of ours sends such a line. The message says what is wrong with it."""


class Told(NamedTuple):
    """What there is to tell of a run beyond that it completed. `outcome`: "completed", "stopped" or "failed"."""

    outcome: str
    error_type: str
    message: str
    stack: str
    next_in_ms: int
    metrics: str
    bases: tuple[str, ...]


class Row(NamedTuple):
    """One result. Instants are microseconds of the child's monotonic clock. `told` is None for a plain completion."""

    execution_id: int
    started_us: int
    ended_us: int
    cpu_us: int
    told: Told | None


_as_row: Callable[[Iterable[Any]], Row] = partial(tuple.__new__, Row)  # Row._make, without its Python


class Done(NamedTuple):
    rows: list[Row]
    peak_bytes: int


class Printed(NamedTuple):
    """`cut`: something before `text` was dropped on the way."""

    execution_id: int
    text: str
    cut: bool


class HandedBack(NamedTuple):
    execution_ids: list[int]


class Asked(NamedTuple):
    """A call of a verb's (ctx.jobs), as its author's process gives it: `request` is not judged yet."""

    execution_id: int
    number: int
    method: str
    request: dict[str, Any]
    patience_ms: int


class Ready(NamedTuple):
    """Its file is loaded."""


class Failed(NamedTuple):
    """Its file can't be loaded."""

    error_type: str
    message: str


Line = Done | Printed | HandedBack | Asked | Ready | Failed


# docs/decisions/0043: a verb may have written anything at all
def read_line(line: bytes) -> Line | None:
    """None: of a kind that this version doesn't know. Raises GarbageError."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError too
        raise GarbageError(f"{type(error).__name__}: {error}"[:_NAME_LENGTH_MAX]) from None
    if not isinstance(message, dict):
        raise GarbageError(f"a line is an object, not {type(message).__name__}")
    for name, read in _READERS.items():
        if name in message:
            return read(message)
    return None


def _done(message: dict[str, Any]) -> Done:
    rows = message["done"]
    if type(rows) is not list:
        raise GarbageError("done is no list")
    return Done(_plain_rows(rows) or [_row(row) for row in rows], _count(message.get("peak")))


def _plain_rows(rows: list[Any]) -> list[Row]:
    """Hot: plain results, checked a column at a time. None at all if one of them is more, or something else."""
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {_PLAIN}:
        return []
    columns = list(zip(*rows, strict=True))
    for column in columns:
        if set(map(type, column)) != {int} or min(column) < 0 or max(column) >= _INTEGER_MAX:
            return []
    return list(map(_as_row, zip(*columns, repeat(None))))


def _row(row: object) -> Row:
    if type(row) is not list or len(row) < _PLAIN:
        raise GarbageError("a result is no list of four or more")
    execution_id, started_us, ended_us, cpu_us = row[:_PLAIN]
    for value in (execution_id, started_us, ended_us, cpu_us):
        if type(value) is not int or not 0 <= value < _INTEGER_MAX:
            raise GarbageError(f"{_shown(value)} is none of a result's numbers")
    return Row(execution_id, started_us, ended_us, cpu_us, None if len(row) == _PLAIN else _told(row[_PLAIN:]))


def _told(rest: list[object]) -> Told:
    if len(rest) not in {6, 7}:
        raise GarbageError(f"a result with {len(rest) + _PLAIN} columns")
    outcome, error_type, message, stack, next_in_ms, metrics = rest[:6]
    bases = rest[6] if len(rest) > 6 else []
    if outcome not in {"completed", "stopped", "failed"} or not isinstance(outcome, str):
        raise GarbageError(f"{_shown(outcome)} is no outcome")
    if type(next_in_ms) is not int or not 0 <= next_in_ms <= DURATION_LIMIT_MS:
        raise GarbageError(f"{_shown(next_in_ms)} is no delay")
    if not isinstance(bases, list) or not isinstance(metrics, str) or len(metrics) > _METRICS_LENGTH_MAX:
        raise GarbageError("a result with bases or metrics of another kind")
    return Told(
        outcome,
        _text(error_type, _NAME_LENGTH_MAX),
        _text(message, _TEXT_LENGTH_MAX),
        _text(stack, _TEXT_LENGTH_MAX),
        next_in_ms,
        metrics if metrics.isascii() and "\x00" not in metrics else "",
        tuple(_text(base, _NAME_LENGTH_MAX) for base in bases[:_BASES_MAX]),
    )


def _printed(message: dict[str, Any]) -> Printed:
    out = message["out"]
    if type(out) is not list or len(out) != 3 or type(out[0]) is not int or not isinstance(out[1], str):
        raise GarbageError("out is no execution, text and mark")
    return Printed(out[0], out[1], bool(out[2]))


def _asked(message: dict[str, Any]) -> Asked:
    call = message["call"]
    if type(call) is not list or len(call) != 5:
        raise GarbageError("call is no execution, number, method, request and patience")
    execution_id, number, method, request, patience_ms = call
    for value, most in ((execution_id, _INTEGER_MAX), (number, _CALLS_MAX), (patience_ms, _PATIENCE_MS_MAX)):
        if type(value) is not int or not 0 < value <= most:
            raise GarbageError(f"{_shown(value)} is none of a call's numbers")
    if not isinstance(request, dict):
        raise GarbageError(f"{_shown(request)} is no request")
    return Asked(execution_id, number, _text(method, _NAME_LENGTH_MAX), request, patience_ms)


def _handed_back(message: dict[str, Any]) -> HandedBack:
    back = message["back"]
    if type(back) is not list or any(type(each) is not int for each in back):
        raise GarbageError("back is no list of executions")
    return HandedBack(back)


def _failed(message: dict[str, Any]) -> Failed:
    failed = message["failed"]
    if type(failed) is not list or len(failed) != 2:
        raise GarbageError("failed is no type and message")
    return Failed(_text(failed[0], _NAME_LENGTH_MAX), _text(failed[1], _TEXT_LENGTH_MAX))


def _text(value: object, length_max: int) -> str:
    if not isinstance(value, str):
        raise GarbageError(f"{_shown(value)} is no text")
    return value if len(value) <= length_max else value[-length_max:]


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _INTEGER_MAX:
        raise GarbageError(f"{_shown(value)} is no number of bytes")
    return value


def _shown(value: object) -> str:
    return f"{value!r:.60}" if not isinstance(value, int) or abs(value) < _INTEGER_MAX else "a huge number"


_READERS: Final[dict[str, Callable[[dict[str, Any]], Line]]] = {
    "done": _done,
    "out": _printed,
    "back": _handed_back,
    "call": _asked,
    "ready": lambda _: Ready(),
    "failed": _failed,
}
