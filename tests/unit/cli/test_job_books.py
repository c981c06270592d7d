"""`cronring jobs books`, `cronring jobs policies` and `cronring queues put`: what is asked for, and what is shown."""

import json
from datetime import UTC, datetime
from pathlib import Path

from cronring.protos.cronring.v1 import ledger_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi
from tests.unit.cli.fake_times import stamp

JOB = "billing.refresh"
RUN = ledger_pb2.BookEntry(
    tick=stamp(300), last_tick=stamp(300), ticks=1, execution_id=5, outcome="failed", trigger="schedule", attempt=2,
    duration_ms=1_500, lateness_ms=3, error_type="ValueError",
)  # fmt: skip
RUNNING = ledger_pb2.BookEntry(tick=stamp(600), execution_id=6, trigger="schedule", attempt=1)
SKIPPED = ledger_pb2.BookEntry(tick=stamp(0), last_tick=stamp(240), ticks=5, reason="overlap")


def test_runs_and_skipped_ticks_are_listed(asked: Cronring, api: FakeApi) -> None:
    api.books = [RUNNING, RUN, SKIPPED]
    done = asked("jobs", "books", JOB, "-n", "3")
    assert done.exit_code == 0, done.stderr
    running, run, skipped = done.stdout.splitlines()[1:]
    assert "running" in running
    assert [word in run for word in ("failed: ValueError", "1.5s", "schedule")] == [True] * 3
    assert run.split()[-1] == "5"
    assert "skipped: overlap" in skipped
    assert ["08:00:00" in skipped, "08:04:00" in skipped, " 5 " in skipped] == [True] * 3
    request = api.requests[-1]
    assert (list(request.keys), request.last, request.HasField("before")) == ([JOB], 3, False)


def test_before_is_on_the_jobs_clocks(asked: Cronring, api: FakeApi) -> None:
    done = asked("jobs", "books", JOB, "--before", "2026-11-21T09:00")
    assert done.exit_code == 0
    assert api.requests[-1].before.ToDatetime(UTC) == datetime(2026, 11, 21, 8, tzinfo=UTC), "Europe/Berlin"
    assert f"no tick of {JOB} is in the books before 2026-11-21T09:00" in done.stdout + done.stderr


def test_entries_are_json_for_programs(asked: Cronring, api: FakeApi) -> None:
    api.books = [RUN, SKIPPED]
    run, skipped = json.loads(asked("jobs", "books", JOB, "-o", "json").stdout)
    assert (run["execution_id"], run["outcome"], run["skipped"]) == (5, "failed", "")
    assert (skipped["execution_id"], skipped["ticks"], skipped["skipped"]) == (None, 5, "overlap")
    assert json.loads(asked("jobs", "books", "billing.close_month", "-o", "json").stdout) != []
    api.books = []
    assert json.loads(asked("jobs", "books", JOB, "-o", "json").stdout) == []


def test_a_job_that_is_not_there_is_told_with_the_nearest(asked: Cronring) -> None:
    done = asked("jobs", "books", "billing.refrsh")
    assert done.exit_code == 1
    assert f"there is no job 'billing.refrsh'. Did you mean {JOB!r}?" in done.stderr


def test_policies_are_those_of_the_controllers(asked: Cronring) -> None:
    done = asked("jobs", "policies")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split(maxsplit=1) == ["retries", "further attempts after a failure"]
    assert json.loads(asked("jobs", "policies", "-o", "json").stdout) == {"retries": "further attempts after a failure"}


def test_a_message_is_put_into_its_queue(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    letter = tmp_path / "letter.json"
    letter.write_text('"hello"')
    done = asked("queues", "put", "prod/mail", f"@{letter}", "--workspace", "ws", "--not-before", "2035-01-01")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "prod/mail has message 4711")
    request = api.requests[-1]
    assert (request.namespace, request.queue, request.workspace, request.payload) == ("prod", "mail", "ws", '"hello"')
    assert request.not_before.ToDatetime(UTC) == datetime(2035, 1, 1, tzinfo=UTC)
    assert json.loads(asked("queues", "put", "mail", "1", "-o", "json").stdout) == {"id": 4_711}
    assert not api.requests[-1].HasField("not_before")


def test_a_message_needs_a_queue_and_a_payload(asked: Cronring, tmp_path: Path) -> None:
    assert "Missing argument 'PAYLOAD'" in asked("queues", "put", "reports").stderr
    assert "names no queue" in asked("queues", "put", "/reports", "1").stderr
    missing = tmp_path / "letter.json"
    assert f"{missing}: No such file" in asked("queues", "put", "reports", f"@{missing}").stderr
