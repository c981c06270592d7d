"""Runner streams between the wire (protos/runner/v1) and the core. Hot: every execution passes here twice."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, TypeVar

from cronring.controller.core import ticks
from cronring.controller.core.model import Execution, Outcome, Report, RunnerInfo, Trigger
from cronring.controller.core.node.events import RunnerBeat
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.lanes import Grant, LaneDemand, LaneKind
from cronring.schema.policy import parse_policy

IDENTIFIER_LENGTH_MAX: Final = 200
OUT_OF_REACH_MAX: Final = 100
MODULES_MAX: Final = 1_000
ERROR_TYPE_LENGTH_MAX: Final = 200
ERROR_BASES_MAX: Final = 20
ERROR_MESSAGE_LENGTH_MAX: Final = 16 * 1024
OUTPUT_LENGTH_MAX: Final = 64 * 1024
METRICS_LENGTH_MAX: Final = 4 * 1024
COMPLETED_MAX: Final = 10_000  # a runner of ours says 2,000 at most in one message
# What timestamptz and datetime both hold without trouble: to the end of the year 2199.
INSTANT_US_MAX: Final = 7_258_118_400_000_000 - 1

GRANTED_MAX: Final = 2**62
CLAIM_US_MAX: Final = 2**32 - 1
_KINDS: Final = {int(kind): kind for kind in LaneKind}
# LOST is absent: only controllers say so.
_OUTCOMES: Final = {
    int(wire.OUTCOME_COMPLETED): Outcome.COMPLETED,
    int(wire.OUTCOME_FAILED): Outcome.FAILED,
    int(wire.OUTCOME_TIMED_OUT): Outcome.TIMED_OUT,
    int(wire.OUTCOME_CANCELLED): Outcome.CANCELLED,
    int(wire.OUTCOME_OUT_OF_MEMORY): Outcome.OUT_OF_MEMORY,
    int(wire.OUTCOME_OUT_OF_CPU): Outcome.OUT_OF_CPU,
}
_CRON: Final = wire.SCHEDULE_KIND_CRON
_SCHEDULE_KINDS: Final = {
    "every": wire.SCHEDULE_KIND_INTERVAL,
    "at": wire.SCHEDULE_KIND_ONCE,
    "manual": wire.SCHEDULE_KIND_MANUAL,
}
_RUN_COLUMNS: Final = tuple(field.name for field in wire.Runs.DESCRIPTOR.fields)
_ON_DISCONNECT: Final = {"stop": wire.ON_DISCONNECT_STOP, "finish": wire.ON_DISCONNECT_FINISH}

# Of a report of one that completed: error, output, the job's next run, bases, stack.
_NOTHING_MORE: Final = (repeat(""), repeat(""), repeat(""), repeat(0), repeat(()), repeat(""))
T = TypeVar("T")
_as_report: Callable[[Iterable[Any]], Report] = partial(tuple.__new__, Report)  # Report._make, without its Python


class MalformedError(ValueError):
    """Not something that a runner of ours sends. The message names the field."""


def encode_runs(runs: Iterable[tuple[Execution, int]]) -> wire.Runs:
    """Executions, each with the epoch of the place that it takes; 0: none."""
    columns = zip(*[_run(execution, place_epoch) for execution, place_epoch in runs], strict=True)
    shortest = zip(_RUN_COLUMNS, map(_shortest, columns), strict=False)
    return wire.Runs(**{name: column for name, column in shortest if column})


def _run(execution: Execution, place_epoch: int) -> tuple[Any, ...]:
    """In the order of `_RUN_COLUMNS`."""
    job = execution.job
    timezone, memory_limit, cpu_limit_us, priority = "", 0, 0, 0
    if job.policy:
        policy = parse_policy(job.policy)
        timezone = policy.timezone
        if policy.memory_limit or policy.cpu_limit:
            memory_limit, cpu_limit_us = policy.memory_limit_bytes, policy.cpu_limit_us
    if job.policy or execution.trigger == Trigger.BACKFILL:
        priority = ticks.priority(job, execution.trigger)
    return (
        execution.execution_id,
        job.job_id,
        job.key,
        execution.deployment,
        job.verb,
        execution.tick,
        execution.run_at,
        execution.claimed_at,
        execution.claimed_at + job.timeout_ms * 1_000,
        execution.attempt,
        execution.trigger,
        _ON_DISCONNECT[job.on_disconnect],
        execution.missed,
        execution.previous_tick or 0,
        execution.previous_success or 0,
        execution.payload or job.payload or "",
        timezone,
        _SCHEDULE_KINDS.get(job.schedule.partition(" ")[0], _CRON),
        memory_limit,
        cpu_limit_us,
        priority,
        place_epoch,
    )


def _shortest(column: tuple[Any, ...]) -> Sequence[Any]:
    """One entry for all if they are the same, none if that is nothing."""
    first = column[0]
    if column.count(first) < len(column):
        return column
    return (first,) if first else ()


def encode_peers(peers: tuple[tuple[str, str], ...]) -> list[wire.Peer]:
    return [wire.Peer(controller_id=peer_id, address=address) for peer_id, address in peers]


def decode_beat(runner_id: str, beat: wire.Beat) -> RunnerBeat:
    """Raises MalformedError."""
    out_of_reach = tuple(beat.out_of_reach)
    lengths = range(1, IDENTIFIER_LENGTH_MAX + 1)
    if len(out_of_reach) > OUT_OF_REACH_MAX or any(len(each) not in lengths for each in out_of_reach):
        raise MalformedError("a beat names controllers that can be none")
    return RunnerBeat(runner_id, beat.sequence, beat.renew, beat.draining, beat.running, out_of_reach)


def decode_reports(reports: wire.Reports) -> list[Report]:
    """Raises MalformedError. Times that contradict each other are put in order, texts are cut to their limits."""
    decoded = _decode_completed(reports.completed) if reports.HasField("completed") else []
    return decoded + [_decode_report(report) for report in reports.reports] if reports.reports else decoded


def _decode_completed(said: wire.Completed) -> list[Report]:
    """Hot: a column at a time."""
    count = len(said.execution_id)
    if not 0 < count <= COMPLETED_MAX:
        raise MalformedError(f"{count} completed executions in one message; from 1 to {COMPLETED_MAX} are allowed")
    claimed_at = _column(said.claimed_at_us, count)
    started_at = list(map(max, _column(said.started_at_us, count), claimed_at))
    ended_at = list(map(max, _column(said.ended_at_us, count), started_at))
    if min(claimed_at) < 0 or max(ended_at) > INSTANT_US_MAX:
        raise MalformedError("instants of completed executions are outside of 1970 to 2199")
    cpu_us = map(max, _column(said.cpu_us, count), repeat(0))
    peaks = (each if each > 0 else None for each in _column(said.memory_peak_bytes, count))
    columns = (
        said.execution_id,
        _column(said.job_id, count),
        claimed_at,
        repeat(Outcome.COMPLETED),
        started_at,
        ended_at,
        *_NOTHING_MORE,
        cpu_us,
        peaks,
        _column(said.memory_shared, count),
        repeat(""),
    )
    return list(map(_as_report, zip(*columns, strict=False)))


def _column(column: Sequence[T], count: int) -> Sequence[T]:
    """As long as there are executions."""
    found = column[:]
    if len(found) == 1:
        return [found[0]] * count
    if len(found) != count:
        raise MalformedError(f"a column of {len(found)} entries for {count} completed executions")
    return found


def _decode_report(report: wire.Report) -> Report:
    outcome = _OUTCOMES.get(report.outcome)
    if outcome is None:
        raise MalformedError(f"outcome {report.outcome} of execution {report.execution_id} is none a runner may report")
    claimed_at = report.claimed_at_us
    # A verb starts after its claim and ends after its start; a runner's estimate of the clock may say otherwise.
    started_at = max(report.started_at_us, claimed_at)
    ended_at = max(report.ended_at_us, started_at)
    if claimed_at < 0 or ended_at > INSTANT_US_MAX:
        raise MalformedError(f"instants of execution {report.execution_id} are outside of 1970 to 2199")
    next_in_ms = report.next_in_ms
    return Report(
        report.execution_id,
        report.job_id,
        claimed_at,
        outcome,
        started_at,
        ended_at,
        clean_text(report.error_type, ERROR_TYPE_LENGTH_MAX),
        clean_text(report.error_message, ERROR_MESSAGE_LENGTH_MAX),
        clean_text(report.output, OUTPUT_LENGTH_MAX),
        min(max(next_in_ms, 0), DURATION_LIMIT_MS) if next_in_ms else 0,
        _bases(report) if outcome is Outcome.FAILED else (),
        clean_text(report.stack, ERROR_MESSAGE_LENGTH_MAX),
        *_usage(report),
        _metrics(report.metrics_json),
    )


def _bases(report: wire.Report) -> tuple[str, ...]:
    return tuple(clean_text(base, ERROR_TYPE_LENGTH_MAX) for base in report.error_bases[:ERROR_BASES_MAX])


def _usage(report: wire.Report) -> tuple[int | None, int | None, bool | None]:
    if not report.HasField("usage"):
        return None, None, None
    usage = report.usage
    return max(usage.cpu_us, 0), max(usage.memory_peak_bytes, 0) or None, usage.memory_shared


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


def decode_hello(hello: wire.Hello, deployments: tuple[str, ...]) -> RunnerInfo:
    """The runner, hosting `deployments`: one for each of its modules, "" for what was refused."""
    sync_verbs = None
    if hello.grants_places:
        sync_verbs = tuple(
            (deployment, frozenset(verb.name for verb in hosted.schema.verbs if not verb.is_async))
            for deployment, hosted in zip(deployments, hello.modules, strict=True)
            if deployment
        )
    names = tuple(deployment for deployment in deployments if deployment)
    return RunnerInfo(hello.runner_id, hello.hostname, hello.pid, hello.version, names, sync_verbs)


def decode_grants(grants: wire.Grants) -> list[Grant]:
    """Those of lanes that this version knows."""
    return [
        Grant(grant.deployment, kind, grant.epoch, min(grant.granted, GRANTED_MAX), grant.short, grant.keep)
        for grant in grants.grants
        if (kind := _KINDS.get(grant.lane)) is not None
    ]


def encode_wish(wish: LaneDemand) -> wire.Wish:
    return wire.Wish(
        deployment=wish.deployment,
        lane=wire.Lane.ValueType(wish.kind),
        epoch=wish.epoch,
        seen=wish.seen,
        returned=wish.returned,
        count=wish.wanted,
        standby=wish.standby,
        rank_us=wish.rank_us,
        claim_us=min(wish.claim_us, CLAIM_US_MAX),
        closed=wish.closed,
    )


def check_hello(hello: wire.Hello) -> None:
    """Raises MalformedError for what can't be a runner's introduction."""
    if not hello.runner_id:
        raise MalformedError("hello.runner_id must not be empty")
    for field in ("runner_id", "hostname", "version"):
        value: str = getattr(hello, field)
        if len(value) > IDENTIFIER_LENGTH_MAX or not value.isprintable():
            raise MalformedError(f"hello.{field} must be printable, with {IDENTIFIER_LENGTH_MAX} characters at most")
    if len(hello.modules) > MODULES_MAX:
        raise MalformedError(f"hello.modules has {len(hello.modules)} modules; at most {MODULES_MAX} are allowed")
    if hello.pid > 2**31 - 1:
        raise MalformedError(f"hello.pid is {hello.pid}, which is no process id")
