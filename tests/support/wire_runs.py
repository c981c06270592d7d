"""Runs and reports between tests and the wire's columns."""

from collections.abc import Iterable

from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.core.model import Run


def runs_message(runs: Iterable[Run]) -> wire.Runs:
    """With an entry for each run in every column."""
    message = wire.Runs()
    for run in runs:
        message.execution_id.append(run.execution_id)
        message.job_id.append(run.job_id)
        message.job.append(run.job)
        message.deployment.append(run.deployment)
        message.verb.append(run.verb)
        message.tick_us.append(run.tick_us)
        message.run_at_us.append(run.run_at_us)
        message.claimed_at_us.append(run.claimed_at_us)
        message.deadline_us.append(run.deadline_us)
        message.attempt.append(run.attempt)
        message.trigger.append(run.trigger)
        message.on_disconnect.append(wire.ON_DISCONNECT_FINISH if run.finish else wire.ON_DISCONNECT_STOP)
    return message


def all_reports(reports: wire.Reports) -> list[wire.Report]:
    """As one message for each, those that came by columns first."""
    completed = reports.completed
    count = len(completed.execution_id)
    rows = [
        wire.Report(
            execution_id=completed.execution_id[at],
            job_id=completed.job_id[at],
            claimed_at_us=completed.claimed_at_us[at],
            outcome=wire.OUTCOME_COMPLETED,
            started_at_us=completed.started_at_us[at],
            ended_at_us=completed.ended_at_us[at],
            usage=wire.Usage(
                cpu_us=completed.cpu_us[at],
                memory_peak_bytes=completed.memory_peak_bytes[at],
                memory_shared=completed.memory_shared[at],
            ),
        )
        for at in range(count)
    ]
    return [*rows, *reports.reports]
