"""Targets: JSON lines between a runner and its children, in both directions, and files with jobs."""

import json
import socket
from pathlib import Path
from typing import Any, Final

from cronring.child.channel import Channel
from cronring.child.verbs import ChildRun, runs_from
from cronring.cli.commands.job_writes import create_job
from cronring.cli.files import toml_form, yaml_form
from cronring.cli.files.parsed import UnreadableFile
from cronring.cli.files.reading import Files
from cronring.cli.job_lines import JobLines, WrongLine
from cronring.client import convert
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.executions import decode_reports
from cronring.runner.codec import report_messages
from cronring.runner.held import Held
from cronring.runner.lines import Done, Failed, GarbageError, HandedBack, Printed, read_line
from cronring.runner.pool import result_of
from cronring.schema.execution import Outcome, Run
from tests.fuzz.bounds import Misbehaved, as_wire_text

_RUN: Final = Run(7, 1, "m.v", "d", "v", 1, 1, 1, 9, 1, "schedule", finish=False, memory_limit=1 << 30)
_JOB_LINES: Final = JobLines(create_job)


def child_line(data: bytes) -> None:
    """Whatever a child writes: refused as garbage, or a result that goes all the way to the controller's core."""
    for line in data.split(b"\n"):
        try:
            said = read_line(line)
        except GarbageError:
            continue
        match said:
            case Done(rows, peak_bytes):
                _delivered([result_of(Held(_RUN), row, 0, (row.cpu_us, peak_bytes or None, True)) for row in rows])
            case Printed(_, text, cut):
                held = Held(_RUN)
                held.write(text, cut)
                held.write(text)
                _delivered([held.result(Outcome.COMPLETED, 0, 0)])
            case HandedBack(ids):
                if any(not isinstance(each, int) for each in ids):
                    raise Misbehaved(f"{ids} are no executions")
            case Failed(error_type, message):
                if len(error_type) + len(message) > 20_000:
                    raise Misbehaved("a failure of that length")


def _delivered(results: list[Any]) -> None:
    for message in report_messages(results):
        again = type(message).FromString(message.SerializeToString())
        decode_reports(again.reports)


def runner_line(data: bytes) -> None:
    """A child reads what the runner sent: objects, however it is cut into pieces. (Only its runner has the other end.)

    Bytes before the first NUL say where it is cut.
    """
    cuts, _, rest = data.partition(b"\x00")
    lines = [line for line in rest.split(b"\n") if _is_object(line)]
    near, far = socket.socketpair()
    try:
        channel = Channel(near)
        sent = b"".join(line + b"\n" for line in lines)[:60_000]
        expected = [json.loads(line) for line in sent.split(b"\n")[:-1]]
        heard: list[dict[str, Any]] = []
        position = 0
        for cut in (*(1 + each * 16 for each in cuts[:50]), len(sent)):
            far.sendall(sent[position : position + cut])
            if sent[position : position + cut]:
                heard += channel.receive()
            position += cut
        if _same(heard) != _same(expected):
            raise Misbehaved(f"sent {expected}, heard {heard}")
        for message in heard:
            _read_runs(message)
    finally:
        near.close()
        far.close()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _same(messages: list[dict[str, Any]]) -> str:
    return repr(messages)  # NaN is not equal to itself


def _read_runs(message: dict[str, Any]) -> None:
    """Columns as a runner of ours sends them are as many runs as they have ids."""
    columns = message.get("runs")
    if not isinstance(columns, list) or len(columns) != len(ChildRun._fields):
        return
    fit = all(isinstance(each, list) and len(each) in {1, len(columns[1])} for each in columns)
    if fit and len(list(runs_from(columns))) != len(columns[1]):
        raise Misbehaved(f"{columns} are not as many runs as there are ids")


def job_line(raw: bytes) -> None:
    """Of a file for `cronring jobs import`."""
    try:
        job = _JOB_LINES.job(raw)
    except WrongLine:
        return
    jobs_pb2.CreateJobRequest(
        namespace=job.namespace, module=job.module, verb=job.verb, name=job.name, spec=convert.job_spec(job.spec)
    ).SerializeToString()


def set_yaml(raw: bytes) -> None:
    """A file for `cronring apply`: told what is wrong with it, or values that are written and read as they are."""
    try:
        parsed = yaml_form.parse(as_wire_text(raw))
    except UnreadableFile:
        return
    again = yaml_form.parse(yaml_form.dump(dict(parsed.values))).values
    if repr(again) != repr(parsed.values):
        raise Misbehaved(f"{parsed.values} is written so that it is read as {again}")
    Files(JobLines(create_job)).take(Path("x.yaml"), parsed)


def set_toml(raw: bytes) -> None:
    """The same in TOML."""
    try:
        parsed = toml_form.parse(as_wire_text(raw))
    except UnreadableFile:
        return
    Files(JobLines(create_job)).take(Path("x.toml"), parsed)
