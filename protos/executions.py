"""Runs and reports between their values (schema/execution.py) and the wire (runner/v1), once for each direction.

Fields go by their names: what is new in Run or Report only has to be added to runner.proto. Hot: every execution passes
here twice on its controller, and twice on its runner.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar

from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.execution import OF_A_RUNNER, Outcome, Report, Run

ERROR_TYPE_LENGTH_MAX: Final = 200
ERROR_BASES_MAX: Final = 20
TEXT_LENGTH_MAX: Final = 16 * 1024  # of every text of a report that has no other limit
OUTPUT_LENGTH_MAX: Final = 64 * 1024
METRICS_LENGTH_MAX: Final = 4 * 1024
COMPLETED_MAX: Final = 10_000  # a runner of ours says 2,000 at most in one message
# What timestamptz and datetime both hold without trouble: to the end of the year 2199.
INSTANT_US_MAX: Final = 7_258_118_400_000_000 - 1
# Far below gRPC's 4 MiB for a message, however much the runs have printed.
_MESSAGE_BYTES: Final = 2 << 20
_MESSAGE_REPORTS: Final = 2_000

_RUN_ON_WIRE: Final = {"finish": "on_disconnect", "memory_limit": "memory_limit_bytes"}
_RUN_COLUMNS: Final = tuple(_RUN_ON_WIRE.get(name, name) for name in Run._fields)
_columns: Callable[[wire.Runs], tuple[Sequence[Any], ...]] = attrgetter(*_RUN_COLUMNS)
_COLUMNS: Final = wire.Runs.DESCRIPTOR.fields_by_name
_NOTHING: Final = tuple("" if _COLUMNS[name].cpp_type == _COLUMNS[name].CPPTYPE_STRING else 0 for name in _RUN_COLUMNS)
_FINISH: Final = Run._fields.index("finish")

_REPORT_ON_WIRE: Final = {
    "claimed_at": "claimed_at_us", "started_at": "started_at_us", "ended_at": "ended_at_us", "metrics": "metrics_json",
}  # fmt: skip
_USAGE: Final = tuple(wire.Usage.DESCRIPTOR.fields_by_name)
_SAID: Final = {name: _REPORT_ON_WIRE.get(name, name) for name in Report._fields if name not in _USAGE}
_COMPLETED: Final = {
    name: on_wire
    for name in Report._fields
    if (on_wire := _REPORT_ON_WIRE.get(name, name)) in wire.Completed.DESCRIPTOR.fields_by_name
}
# What Completed has no column for, and its value in a report of which Completed tells all.
_BESIDES: Final = tuple(name for name in Report._fields if name not in _COMPLETED and name != "outcome")
_besides: Callable[[Report], tuple[Any, ...]] = itemgetter(*map(Report._fields.index, _BESIDES))
_NOTHING_BESIDES: Final = tuple(Report._field_defaults[name] for name in _BESIDES)

_TO_WIRE: Final = {outcome: wire.Outcome.Value(f"OUTCOME_{outcome.name}") for outcome in OF_A_RUNNER}
_FROM_WIRE: Final = {int(number): outcome for outcome, number in _TO_WIRE.items()}
T = TypeVar("T")
# _make, without its Python
_as_run: Callable[[Iterable[Any]], Run] = partial(tuple.__new__, Run)
_as_report: Callable[[Iterable[Any]], Report] = partial(tuple.__new__, Report)


class MalformedError(ValueError):
    """Not something that a controller or a runner of ours sends. The message names the field."""


# Runs: from the controller to the runner


def encode_runs(runs: Iterable[Run]) -> wire.Runs:
    """By columns."""
    columns: list[Sequence[Any]] = list(zip(*runs, strict=True))
    columns[_FINISH] = [wire.ON_DISCONNECT_FINISH if finish else wire.ON_DISCONNECT_STOP for finish in columns[_FINISH]]
    shortest = zip(_RUN_COLUMNS, map(_shortest, columns), strict=True)
    return wire.Runs(**{name: column for name, column in shortest if column})


def _shortest(column: Sequence[Any]) -> Sequence[Any]:
    """One entry for all if they are the same, none if that is nothing."""
    first = column[0]
    if column.count(first) < len(column):
        return column
    return (first,) if first else ()


def decode_runs(said: wire.Runs) -> list[Run]:
    """Raises MalformedError if the columns don't belong together."""
    count = len(said.execution_id)
    columns = [_filled(column, nothing, count) for column, nothing in zip(_columns(said), _NOTHING, strict=True)]
    finish = wire.ON_DISCONNECT_FINISH
    columns[_FINISH] = _filled([each == finish for each in said.on_disconnect], False, count)
    return list(map(_as_run, zip(*columns, strict=False)))


def _filled(column: Sequence[T], nothing: T, count: int) -> Iterable[T]:
    """As long as there are runs, or without end."""
    entries = len(column)
    if entries == count:
        return column[:]
    if entries > 1:
        raise MalformedError(f"a column of {entries} entries for {count} runs")
    return repeat(column[0] if entries else nothing)


# Reports: from the runner to the controller


def encode_reports(reports: Iterable[Report]) -> Iterator[wire.Reports]:
    """All in one message, or in several where it would become too large."""
    completed: list[Report] = []
    others: list[wire.Report] = []
    size = 0
    for report in reports:
        if report.outcome is Outcome.COMPLETED and report.cpu_us is not None and _besides(report) == _NOTHING_BESIDES:
            completed.append(report)
        else:
            said = _encode_report(report)
            others.append(said)
            size += said.ByteSize()
        if size >= _MESSAGE_BYTES or len(others) + len(completed) >= _MESSAGE_REPORTS:
            yield _encode_together(completed, others)
            completed, others, size = [], [], 0
    if others or completed:
        yield _encode_together(completed, others)


def _encode_together(completed: list[Report], others: list[wire.Report]) -> wire.Reports:
    if not completed:
        return wire.Reports(reports=others)
    columns: dict[str, Sequence[Any]] = dict(zip(Report._fields, zip(*completed, strict=True), strict=True))
    columns["memory_peak_bytes"] = [peak or 0 for peak in columns["memory_peak_bytes"]]
    said = wire.Completed(**{on_wire: columns[name] for name, on_wire in _COMPLETED.items()})
    return wire.Reports(reports=others, completed=said)


def _encode_report(report: Report) -> wire.Report:
    said: dict[str, Any] = {on_wire: getattr(report, name) for name, on_wire in _SAID.items()}
    said["outcome"] = _TO_WIRE[report.outcome]
    if report.cpu_us is not None:
        usage: dict[str, Any] = {name: getattr(report, name) or 0 for name in _USAGE}
        said["usage"] = wire.Usage(**usage)
    return wire.Report(**said)


def decode_reports(reports: wire.Reports) -> list[Report]:
    """Raises MalformedError. Times that contradict each other are put in order, texts are cut to their limits."""
    decoded = _decode_completed(reports.completed) if reports.HasField("completed") else []
    return decoded + [_decode_report(report) for report in reports.reports] if reports.reports else decoded


def _decode_completed(said: wire.Completed) -> list[Report]:
    """Hot: a column at a time."""
    count = len(said.execution_id)
    if not 0 < count <= COMPLETED_MAX:
        raise MalformedError(f"{count} completed executions in one message; from 1 to {COMPLETED_MAX} are allowed")
    known: dict[str, Iterable[Any]] = {
        name: _column(getattr(said, on_wire), count) for name, on_wire in _COMPLETED.items()
    }
    known["outcome"] = repeat(Outcome.COMPLETED)
    claimed_at = _column(said.claimed_at_us, count)
    known["started_at"] = started_at = list(map(max, known["started_at"], claimed_at))
    known["ended_at"] = ended_at = list(map(max, known["ended_at"], started_at))
    if min(claimed_at) < 0 or max(ended_at) > INSTANT_US_MAX:
        raise MalformedError("instants of completed executions are outside of 1970 to 2199")
    known["cpu_us"] = map(max, known["cpu_us"], repeat(0))
    known["memory_peak_bytes"] = (each if each > 0 else None for each in known["memory_peak_bytes"])
    columns = [known[name] if name in known else repeat(Report._field_defaults[name]) for name in Report._fields]
    return list(map(_as_report, zip(*columns, strict=False)))


def _column(column: Sequence[T], count: int) -> Sequence[T]:
    """As long as there are executions."""
    found = column[:]
    if len(found) == 1:
        return [found[0]] * count
    if len(found) != count:
        raise MalformedError(f"a column of {len(found)} entries for {count} completed executions")
    return found


def _decode_report(said: wire.Report) -> Report:
    outcome = _FROM_WIRE.get(said.outcome)
    if outcome is None:
        raise MalformedError(f"outcome {said.outcome} of execution {said.execution_id} is none a runner may report")
    values: dict[str, Any] = {name: _bounded(getattr(said, on_wire)) for name, on_wire in _SAID.items()}
    claimed_at = said.claimed_at_us
    # A verb starts after its claim and ends after its start; a runner's estimate of the clock may say otherwise.
    started_at = max(said.started_at_us, claimed_at)
    ended_at = max(said.ended_at_us, started_at)
    if claimed_at < 0 or ended_at > INSTANT_US_MAX:
        raise MalformedError(f"instants of execution {said.execution_id} are outside of 1970 to 2199")
    values |= {
        "outcome": outcome,
        "started_at": started_at,
        "ended_at": ended_at,
        "error_type": clean_text(said.error_type, ERROR_TYPE_LENGTH_MAX),
        "output": clean_text(said.output, OUTPUT_LENGTH_MAX),
        "next_in_ms": min(max(said.next_in_ms, 0), DURATION_LIMIT_MS),
        "error_bases": _bases(said) if outcome is Outcome.FAILED else (),
        "metrics": _metrics(said.metrics_json),
    }
    if said.HasField("usage"):
        usage = said.usage
        values["cpu_us"] = max(usage.cpu_us, 0)
        values["memory_peak_bytes"] = max(usage.memory_peak_bytes, 0) or None
        values["memory_shared"] = usage.memory_shared
    return Report(**values)


def _bounded(value: Any) -> Any:
    return clean_text(value, TEXT_LENGTH_MAX) if isinstance(value, str) else value


def _bases(report: wire.Report) -> tuple[str, ...]:
    return tuple(clean_text(base, ERROR_TYPE_LENGTH_MAX) for base in report.error_bases[:ERROR_BASES_MAX])


def _metrics(text: str) -> str:
    """A runner of ours has checked it; whatever else comes is no reason to refuse a result."""
    if not text:
        return ""
    try:
        known = len(text) <= METRICS_LENGTH_MAX and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        known = False
    return text if known and "\\u0000" not in text and "\x00" not in text else ""


def clean_text(text: str, length_max: int) -> str:
    """The last `length_max` characters, without NUL, which PostgreSQL's text can't hold."""
    if len(text) > length_max:
        text = text[-length_max:]
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}") if "\x00" in text else text
