"""Where the runner's protobuf messages meet its plain values; for runs and reports see protos/executions.py."""

from collections.abc import Iterable, Iterator

from cronring.protos.executions import encode_reports
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.core.effects import SendBeat
from cronring.schema.execution import Report
from cronring.schema.lanes import Grant, LaneDemand, LaneKind

_KINDS = {int(kind): kind for kind in LaneKind}


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


def demands_from(demands: runner_pb2.LaneDemands) -> list[LaneDemand]:
    """Those for lanes that this version knows."""
    return [
        LaneDemand(
            demand.deployment,
            kind,
            demand.epoch,
            demand.seen,
            demand.returned,
            demand.wanted,
            demand.standby,
            demand.rank_us,
            demand.claim_us,
            demand.closed,
        )
        for demand in demands.demands
        if (kind := _KINDS.get(demand.lane)) is not None
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


def report_messages(reports: Iterable[Report]) -> Iterator[runner_pb2.RunnerMessage]:
    """One message for all, or several when it would become too large."""
    return (runner_pb2.RunnerMessage(reports=said) for said in encode_reports(reports))


def call_message(request: bytes) -> runner_pb2.RunnerMessage:
    """Of a VerbCall that is serialized already."""
    return runner_pb2.RunnerMessage(verb_call=runner_pb2.VerbCall.FromString(request))
