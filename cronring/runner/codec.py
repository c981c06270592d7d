"""The only place where the runner's protobuf messages meet its plain values."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.core.effects import SendBeat
from cronring.runner.core.model import Outcome, Result, Run
from cronring.schema.lanes import Grant, LaneDemand, LaneKind

_KINDS = {int(kind): kind for kind in LaneKind}
_OUTCOMES = {
    Outcome.COMPLETED: runner_pb2.OUTCOME_COMPLETED,
    Outcome.FAILED: runner_pb2.OUTCOME_FAILED,
    Outcome.TIMED_OUT: runner_pb2.OUTCOME_TIMED_OUT,
    Outcome.CANCELLED: runner_pb2.OUTCOME_CANCELLED,
    Outcome.OUT_OF_MEMORY: runner_pb2.OUTCOME_OUT_OF_MEMORY,
    Outcome.OUT_OF_CPU: runner_pb2.OUTCOME_OUT_OF_CPU,
}
# Far below gRPC's 4 MiB for a message, however much the runs have printed.
_MESSAGE_BYTES = 2 << 20
_MESSAGE_REPORTS = 2_000
T = TypeVar("T")
_as_run: Callable[[Iterable[Any]], Run] = partial(tuple.__new__, Run)  # Run._make, without its Python


def runs_from_dispatch(dispatch: runner_pb2.Dispatch) -> list[Run]:
    """The runs of a Dispatch, a column at a time. Raises ValueError if its columns don't belong together."""
    said = dispatch.runs
    count = len(said.execution_id)
    finish, interval = runner_pb2.ON_DISCONNECT_FINISH, runner_pb2.SCHEDULE_KIND_INTERVAL
    columns = (
        said.execution_id,
        _column(said.job_id, 0, count),
        _column(said.job, "", count),
        _column(said.deployment, "", count),
        _column(said.verb, "", count),
        _column(said.tick_us, 0, count),
        _column(said.run_at_us, 0, count),
        _column(said.claimed_at_us, 0, count),
        _column(said.deadline_us, 0, count),
        _column(said.attempt, 0, count),
        _column(said.trigger, "", count),
        _column([each == finish for each in said.on_disconnect], False, count),
        _column(said.missed, 0, count),
        _column(said.previous_tick_us, 0, count),
        _column(said.previous_success_us, 0, count),
        _column(said.payload_json, "", count),
        _column(said.timezone, "", count),
        _column([each == interval for each in said.schedule_kind], False, count),
        _column(said.memory_limit_bytes, 0, count),
        _column(said.cpu_limit_us, 0, count),
        _column(said.priority, 0, count),
        _column(said.place_epoch, 0, count),
    )
    return list(map(_as_run, zip(*columns, strict=False)))


def _column(column: Sequence[T], nothing: T, count: int) -> Iterable[T]:
    """As long as there are runs, or without end."""
    entries = len(column)
    if entries == count:
        return column[:]
    if entries > 1:
        raise ValueError(f"a column of {entries} entries for {count} runs")
    return repeat(column[0] if entries else nothing)


def beat_message(beat: SendBeat) -> runner_pb2.RunnerMessage:
    return runner_pb2.RunnerMessage(
        beat=runner_pb2.Beat(
            sequence=beat.sequence,
            renew=beat.renew,
            draining=beat.draining,
            running=beat.running,
            out_of_reach=beat.out_of_reach,
        )
    )


def wishes_from(wishes: runner_pb2.Wishes) -> list[LaneDemand]:
    """Those for lanes that this version knows."""
    return [
        LaneDemand(
            wish.deployment,
            kind,
            wish.epoch,
            wish.seen,
            wish.returned,
            wish.count,
            wish.standby,
            wish.rank_us,
            wish.claim_us,
            wish.closed,
        )
        for wish in wishes.wishes
        if (kind := _KINDS.get(wish.lane)) is not None
    ]


def declined_message(execution_ids: Iterable[int]) -> runner_pb2.RunnerMessage:
    return runner_pb2.RunnerMessage(declined=runner_pb2.Declined(execution_ids=execution_ids))


def grants_message(grants: Iterable[Grant]) -> runner_pb2.RunnerMessage:
    return runner_pb2.RunnerMessage(
        grants=runner_pb2.Grants(
            grants=[
                runner_pb2.Grant(
                    deployment=grant.deployment,
                    lane=runner_pb2.Lane.ValueType(grant.kind),
                    epoch=grant.epoch,
                    granted=grant.granted,
                    short=grant.short,
                    keep=grant.keep,
                )
                for grant in grants
            ]
        )
    )


def report_messages(results: Iterable[Result]) -> Iterator[runner_pb2.RunnerMessage]:
    """One message for all results, or several when it would become too large."""
    completed: list[Result] = []
    reports: list[runner_pb2.Report] = []
    size = 0
    for result in results:
        if _is_plain(result):
            completed.append(result)
        else:
            reports.append(_report(result))
            size += 4 * (len(result.output) + len(result.error_message) + len(result.stack)) + len(result.metrics) + 128
        if size >= _MESSAGE_BYTES or len(reports) + len(completed) >= _MESSAGE_REPORTS:
            yield _reports_message(completed, reports)
            completed, reports, size = [], [], 0
    if reports or completed:
        yield _reports_message(completed, reports)


def _is_plain(result: Result) -> bool:
    """`Completed` has columns for all that there is to tell."""
    return (
        result.outcome is Outcome.COMPLETED
        and not (result.output or result.next_in_ms or result.metrics)
        and result.cpu_us is not None
    )


def _reports_message(completed: list[Result], reports: list[runner_pb2.Report]) -> runner_pb2.RunnerMessage:
    if not completed:
        return runner_pb2.RunnerMessage(reports=runner_pb2.Reports(reports=reports))
    columns = dict(zip(Result._fields, zip(*completed, strict=True), strict=True))
    peaks = columns["memory_peak_bytes"]
    said = runner_pb2.Completed(
        execution_id=columns["execution_id"],
        job_id=columns["job_id"],
        claimed_at_us=columns["claimed_at_us"],
        started_at_us=columns["started_at_us"],
        ended_at_us=columns["ended_at_us"],
        cpu_us=columns["cpu_us"],
        memory_peak_bytes=[peak or 0 for peak in peaks],
        memory_shared=columns["memory_shared"],
    )
    return runner_pb2.RunnerMessage(reports=runner_pb2.Reports(reports=reports, completed=said))


def _report(result: Result) -> runner_pb2.Report:
    usage = None
    if result.cpu_us is not None:
        usage = runner_pb2.Usage(
            cpu_us=result.cpu_us,
            memory_peak_bytes=result.memory_peak_bytes or 0,
            memory_shared=bool(result.memory_shared),
        )
    return runner_pb2.Report(
        execution_id=result.execution_id,
        job_id=result.job_id,
        claimed_at_us=result.claimed_at_us,
        outcome=_OUTCOMES[result.outcome],
        started_at_us=result.started_at_us,
        ended_at_us=result.ended_at_us,
        error_type=result.error_type,
        error_message=result.error_message,
        output=result.output,
        next_in_ms=result.next_in_ms,
        error_bases=result.error_bases,
        usage=usage,
        metrics_json=result.metrics,
        stack=result.stack,
    )
