"""From a controller's execution to a runner's run, and from its result to a controller's report."""

from collections.abc import Iterable
from itertools import starmap
from typing import Any

import pytest

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.runs import run_of
from cronring.controller.runners.codec import PLACES_MAX, decode_hello
from cronring.protos.executions import MalformedError, decode_reports, decode_runs, encode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.codec import report_messages
from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.execution import OF_A_RUNNER, Outcome, Report, Run

T = 1_767_247_200_000_000
JOB = Job(3, "m.v", 5, "m@1", "v", "*/5 * * * *", 0, 1, 60_000, "stop", True, None, None)
PLAIN = Execution(7, JOB, T, T + 1, T + 2, 1, "schedule", "m@1", "r")


def sent(execution: Execution) -> Run:
    dispatch = wire.Dispatch.FromString(wire.Dispatch(runs=encode_runs([run_of(execution)])).SerializeToString())
    [run] = decode_runs(dispatch.runs)
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


@pytest.mark.parametrize(("told", "kept"), [(0, 0), (8, 8), (2**32 - 1, PLACES_MAX)])
def test_a_runner_tells_its_places(told: int, kept: int) -> None:
    runner = decode_hello(wire.Hello(runner_id="r", sync_places=told, async_places=told), ())
    assert (runner.sync_places, runner.async_places) == (kept, kept)


def test_limits_are_those_of_the_policy() -> None:
    limited = sent(PLAIN._replace(job=JOB._replace(policy='{"memory_limit":"256MiB","cpu_limit":"1m30s"}')))
    assert (limited.memory_limit, limited.cpu_limit_us, limited.has_quota) == (256 << 20, 90_000_000, True)
    assert (sent(PLAIN).memory_limit, sent(PLAIN).cpu_limit_us, sent(PLAIN).has_quota) == (0, 0, False)


@pytest.mark.parametrize("outcome", sorted(OF_A_RUNNER))
def test_every_outcome_of_a_runner_is_a_controllers(outcome: Outcome) -> None:
    assert reported(Report(7, 3, T, outcome, T + 1, T + 2)).outcome.value == outcome.value


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
    runs = encode_runs([run_of(PLAIN._replace(job=JOB._replace(schedule=schedule)))])
    assert [wire.ScheduleKind.Name(each) for each in runs.schedule_kind] == [kind]


def reported(result: Report) -> Report:
    [message] = report_messages([result])
    [report] = decode_reports(wire.RunnerMessage.FromString(message.SerializeToString()).reports)
    return report


def test_a_result_as_a_report() -> None:
    completed = Report(7, 3, T, Outcome.COMPLETED, T + 1, T + 2, next_in_ms=300_000)
    assert reported(completed) == Report(7, 3, T, Outcome.COMPLETED, T + 1, T + 2, "", "", "", 300_000)
    failed = Report(7, 3, T, Outcome.FAILED, T + 1, T + 2, "a.B", "no", "out", 1, ("OSError", "Exception"))
    assert reported(failed) == Report(
        7, 3, T, Outcome.FAILED, T + 1, T + 2, "a.B", "no", "out", 1, ("OSError", "Exception")
    )


def test_a_runner_that_exaggerates() -> None:
    bases = tuple(f"E{n}" for n in range(100))
    report = reported(Report(7, 3, T, Outcome.FAILED, T, T, "E", next_in_ms=2**62, error_bases=bases))
    assert (report.next_in_ms, len(report.error_bases)) == (DURATION_LIMIT_MS, 20)
    assert reported(Report(7, 3, T, Outcome.COMPLETED, T, T, next_in_ms=-5)).next_in_ms == 0


def test_metrics_nested_deeper_than_any_stack_are_left_out() -> None:
    """The report was refused, and with it the whole stream."""
    said = wire.Report(execution_id=1, outcome=wire.OUTCOME_COMPLETED, metrics_json='{"a":' + "[" * 4_000)
    assert decode_reports(wire.Reports(reports=[said]))[0].metrics == ""


def test_the_names_of_bases_are_cut_and_clean() -> None:
    said = wire.Report(execution_id=1, outcome=wire.OUTCOME_FAILED, error_bases=["a\0b", "x" * 500])
    assert decode_reports(wire.Reports(reports=[said]))[0].error_bases == ("a\ufffdb", "x" * 200)


def test_runs_of_one_message_keep_what_each_has() -> None:
    """Columns that are the same for all are sent once; a run that has what the others lack has it alone."""
    payload = PLAIN._replace(execution_id=8, payload="[1]", trigger="manual", tick=T - 5)
    pairs = [(PLAIN, 4), (payload, 0), (PLAIN._replace(execution_id=9), 4)]
    said = wire.Dispatch.FromString(wire.Dispatch(runs=encode_runs(starmap(run_of, pairs))).SerializeToString())
    assert decode_runs(said.runs) == [sent(execution)._replace(place_epoch=epoch) for execution, epoch in pairs]
    assert (list(said.runs.deployment), len(said.runs.payload_json), len(said.runs.timezone)) == (
        ["m@1"],
        3,
        0,
    )


def test_columns_of_runs_that_do_not_belong_together_are_refused() -> None:
    runs = encode_runs([run_of(PLAIN._replace(execution_id=number)) for number in range(3)])
    runs.job_id[:] = [1, 2]
    with pytest.raises(ValueError, match="2 entries for 3 runs"):
        decode_runs(runs)


def test_results_with_and_without_more_to_tell_come_in_one_message() -> None:
    used: dict[str, Any] = {"cpu_us": 12, "memory_peak_bytes": 3 << 20, "memory_shared": True}
    plain = [Report(number, 3, T, Outcome.COMPLETED, T + number, T + 9, **used) for number in range(2)]
    unknown_peak = plain[0]._replace(execution_id=5, memory_peak_bytes=None)
    told = [
        plain[0]._replace(execution_id=6, output="printed"),
        plain[0]._replace(execution_id=7, metrics='{"n":1}'),
        plain[0]._replace(execution_id=8, next_in_ms=9),
        plain[0]._replace(execution_id=9, cpu_us=None, memory_peak_bytes=None, memory_shared=None),
        plain[0]._replace(execution_id=10, outcome=Outcome.FAILED, error_type="E"),
    ]
    [message] = report_messages([told[0], *plain, unknown_peak, *told[1:]])
    assert list(message.reports.completed.execution_id) == [0, 1, 5]
    decoded = decode_reports(wire.RunnerMessage.FromString(message.SerializeToString()).reports)
    assert {report.execution_id: report for report in decoded} == {
        result.execution_id: reported(result) for result in (*plain, unknown_peak, *told)
    }
    assert [(report.cpu_us, report.memory_peak_bytes, report.memory_shared) for report in decoded[1:3]] == [
        (12, 3 << 20, True),
        (12, None, True),
    ]


def test_times_of_completed_runs_are_put_in_order() -> None:
    said = completed(claimed_at_us=[T], started_at_us=[T - 5, T + 1], ended_at_us=[T - 9], cpu_us=[-4])
    assert [(each.claimed_at, each.started_at, each.ended_at, each.cpu_us) for each in decode_reports(said)] == [
        (T, T, T, 0),
        (T, T + 1, T + 1, 0),
    ]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"execution_id": []}, "0 completed"),
        ({"execution_id": range(10_001)}, "10001 completed"),
        ({"job_id": []}, "0 entries for 2"),
        ({"cpu_us": [1, 2, 3]}, "3 entries for 2"),
        ({"claimed_at_us": [-1]}, "1970 to 2199"),
        ({"ended_at_us": [2**62, 1]}, "1970 to 2199"),
    ],
)
def test_columns_of_completed_runs_that_can_be_none_are_refused(columns: dict[str, list[int]], says: str) -> None:
    with pytest.raises(MalformedError, match=says):
        decode_reports(completed(**columns))


def completed(**columns: Iterable[int]) -> wire.Reports:
    """Of two runs, but for these columns."""
    known: dict[str, Any] = {name: [1] for name in ("job_id", "claimed_at_us", "started_at_us", "ended_at_us")}
    known |= {"execution_id": [1, 2], "cpu_us": [1], "memory_peak_bytes": [0], "memory_shared": [True], **columns}
    return wire.Reports(completed=wire.Completed(**known))
