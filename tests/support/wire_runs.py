"""Reports of the wire's columns, for tests."""

from cronring.protos.runner.v1 import runner_pb2 as wire


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
