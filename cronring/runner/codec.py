"""The only place where the runner's protobuf messages meet its plain values."""

from collections.abc import Iterable, Iterator

from cronring.runner.core.effects import SendBeat
from cronring.runner.core.model import Outcome, Result, Run
from protos.runner.v1 import runner_pb2
from schema.lanes import Grant, LaneKind, Wish

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


def runs_from_dispatch(dispatch: runner_pb2.Dispatch) -> list[Run]:
    """The runs of a Dispatch."""
    finish = runner_pb2.ON_DISCONNECT_FINISH
    interval = runner_pb2.SCHEDULE_KIND_INTERVAL
    return [
        Run(
            run.execution_id,
            run.job_id,
            run.job,
            run.deployment,
            run.verb,
            run.tick_us,
            run.run_at_us,
            run.claimed_at_us,
            run.deadline_us,
            run.attempt,
            run.trigger,
            run.on_disconnect == finish,
            run.missed,
            run.previous_tick_us,
            run.previous_success_us,
            run.payload_json,
            run.timezone,
            run.schedule_kind == interval,
            run.memory_limit_bytes,
            run.cpu_limit_us,
            run.priority,
            run.place_epoch,
        )
        for run in dispatch.runs
    ]


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


def wishes_from(wishes: runner_pb2.Wishes) -> list[Wish]:
    """Those for lanes that this version knows."""
    return [
        Wish(
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
    reports: list[runner_pb2.Report] = []
    size = 0
    for result in results:
        reports.append(_report(result))
        size += 4 * (len(result.output) + len(result.error_message) + len(result.stack)) + len(result.metrics) + 128
        if size >= _MESSAGE_BYTES or len(reports) >= _MESSAGE_REPORTS:
            yield runner_pb2.RunnerMessage(reports=runner_pb2.Reports(reports=reports))
            reports, size = [], 0
    if reports:
        yield runner_pb2.RunnerMessage(reports=runner_pb2.Reports(reports=reports))


def _report(result: Result) -> runner_pb2.Report:
    usage = None
    if result.cpu_us is not None:
        usage = runner_pb2.Usage(
            cpu_us=result.cpu_us,
            memory_peak_bytes=result.memory_peak_bytes or 0,
            memory_shared=bool(result.memory_shared),
        )
    if result.outcome is Outcome.COMPLETED and not result.output:
        return runner_pb2.Report(
            execution_id=result.execution_id,
            job_id=result.job_id,
            claimed_at_us=result.claimed_at_us,
            outcome=runner_pb2.OUTCOME_COMPLETED,
            started_at_us=result.started_at_us,
            ended_at_us=result.ended_at_us,
            next_in_ms=result.next_in_ms,
            usage=usage,
            metrics_json=result.metrics,
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
