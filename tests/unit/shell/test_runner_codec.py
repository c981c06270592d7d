"""From a controller's execution to a runner's run, and from its result to a controller's report."""

import pytest

from controller.core.model import Execution, Job, Report
from controller.core.model import Outcome as Ended
from controller.runners.codec import decode_reports, encode_run
from cronring.runner.codec import report_messages, runs_from_dispatch
from cronring.runner.core.model import Outcome, Result, Run
from protos.runner.v1 import runner_pb2 as wire
from schema.duration import DURATION_LIMIT_MS

T = 1_767_247_200_000_000
JOB = Job(3, "m.v", 5, "m@1", "v", "*/5 * * * *", 0, 1, 60_000, "stop", True, None, None)
PLAIN = Execution(7, JOB, T, T + 1, T + 2, 1, "schedule", "m@1", "r")


def sent(execution: Execution) -> Run:
    dispatch = wire.Dispatch.FromString(wire.Dispatch(runs=[encode_run(execution)]).SerializeToString())
    [run] = runs_from_dispatch(dispatch)
    return run


def test_a_plain_run() -> None:
    assert sent(PLAIN) == Run(7, 3, "m.v", "m@1", "v", T, T + 1, T + 2, T + 60_000_002, 1, "schedule", False)


def test_what_a_handler_is_told() -> None:
    job = JOB._replace(policy='{"timezone":"Europe/Berlin","retries":3}', payload='{"a":1}', schedule="every 5m")
    execution = PLAIN._replace(job=job, missed=4, previous_tick=T - 9, previous_success=T - 8)
    told = sent(execution)
    assert (told.missed, told.previous_tick_us, told.previous_success_us) == (4, T - 9, T - 8)
    assert (told.timezone, told.interval, told.payload_json) == ("Europe/Berlin", True, '{"a":1}')
    assert sent(execution._replace(payload="[]")).payload_json == "[]"  # in place of the job's own


def test_limits_are_those_of_the_policy() -> None:
    limited = sent(PLAIN._replace(job=JOB._replace(policy='{"memory_limit":"256MiB","cpu_limit":"1m30s"}')))
    assert (limited.memory_limit, limited.cpu_limit_us, limited.limited) == (256 << 20, 90_000_000, True)
    assert (sent(PLAIN).memory_limit, sent(PLAIN).cpu_limit_us, sent(PLAIN).limited) == (0, 0, False)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_of_a_runner_is_a_controllers(outcome: Outcome) -> None:
    assert reported(Result(7, 3, T, outcome, T + 1, T + 2)).outcome.value == outcome.value


@pytest.mark.parametrize(
    ("schedule", "kind"),
    [
        ("5m", "SCHEDULE_KIND_CRON"),
        ("0 6 1 * *", "SCHEDULE_KIND_CRON"),
        ("every 5m", "SCHEDULE_KIND_INTERVAL"),
        ("at 2026-03-01T08:00:00Z", "SCHEDULE_KIND_ONCE"),
        ("manual", "SCHEDULE_KIND_MANUAL"),
    ],
)
def test_kinds_of_schedules(schedule: str, kind: str) -> None:
    run = encode_run(PLAIN._replace(job=JOB._replace(schedule=schedule)))
    assert wire.ScheduleKind.Name(run.schedule_kind) == kind


def reported(result: Result) -> Report:
    [message] = report_messages([result])
    [report] = decode_reports(wire.RunnerMessage.FromString(message.SerializeToString()).reports)
    return report


def test_a_result_as_a_report() -> None:
    completed = Result(7, 3, T, Outcome.COMPLETED, T + 1, T + 2, next_in_ms=300_000)
    assert reported(completed) == Report(7, 3, T, Ended.COMPLETED, T + 1, T + 2, "", "", "", 300_000)
    failed = Result(7, 3, T, Outcome.FAILED, T + 1, T + 2, "a.B", "no", "out", 1, ("OSError", "Exception"))
    assert reported(failed) == Report(
        7, 3, T, Ended.FAILED, T + 1, T + 2, "a.B", "no", "out", 1, ("OSError", "Exception")
    )


def test_a_runner_that_exaggerates() -> None:
    bases = tuple(f"E{n}" for n in range(100))
    report = reported(Result(7, 3, T, Outcome.FAILED, T, T, "E", next_in_ms=2**62, error_bases=bases))
    assert (report.next_in_ms, len(report.error_bases)) == (DURATION_LIMIT_MS, 20)
    assert reported(Result(7, 3, T, Outcome.COMPLETED, T, T, next_in_ms=-5)).next_in_ms == 0


def test_metrics_nested_deeper_than_any_stack_are_left_out() -> None:
    """The report was refused, and with it the whole stream."""
    said = wire.Report(execution_id=1, outcome=wire.OUTCOME_COMPLETED, metrics_json='{"a":' + "[" * 4_000)
    assert decode_reports(wire.Reports(reports=[said]))[0].metrics == ""


def test_the_names_of_bases_are_cut_and_clean() -> None:
    said = wire.Report(execution_id=1, outcome=wire.OUTCOME_FAILED, error_bases=["a\0b", "x" * 500])
    assert decode_reports(wire.Reports(reports=[said]))[0].error_bases == ("a\ufffdb", "x" * 200)
