"""`cronring jobs pause|resume|skip-next|cancel|restore|actions`, for one job and for many; `cronring rollback`."""

import json
from datetime import timedelta

import grpc
import pytest

from cronring.cli.clock import wall_now
from cronring.protos.cronring.v1 import deployments_pb2, jobs_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, job
from tests.unit.cli.fake_orders import TICK
from tests.unit.cli.fake_times import stamp


def test_a_pause_has_a_note_an_end_and_a_name(asked: Cronring, api: FakeApi) -> None:
    done = asked("jobs", "pause", "billing.refresh", "--note", "bank", "--until", "2026-11-22T06:00", "--as", "ada")
    assert done.exit_code == 0, done.stderr
    request = api.requests[-1]
    assert (request.note, request.requested_by) == ("bank", "ada")
    assert request.until.ToJsonString() == "2026-11-22T05:00:00Z", "on the clocks of the job's zone"
    assert "billing.refresh is paused" in done.stdout
    assert "until      2026-11-22 05:00:00Z" in done.stdout
    before = wall_now()
    assert asked("jobs", "pause", "billing.refresh", "--until", "2h").exit_code == 0
    until = api.requests[-1].until.ToDatetime(before.tzinfo)
    assert timedelta(0) <= until - (before + timedelta(hours=2)) < timedelta(minutes=1)
    assert "@" in api.requests[-1].requested_by


def test_what_was_so_already_is_said(asked: Cronring, api: FakeApi) -> None:
    api.unchanged = True
    for command in ("pause", "resume", "restore"):
        done = asked("jobs", command, "billing.refresh")
        assert (done.exit_code, "was so already; nothing changed" in done.stdout) == (0, True), command


def test_one_that_follows_another_job_is_not_told_to_be_run_by_hand(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [
        job("report", schedule="manual", next_tick=None, next_execution=None, policy={"after": "billing.close"})
    ]
    done = asked("jobs", "resume", "billing.report")
    assert "  runs after billing.close\n" in done.stdout
    assert "trigger" not in done.stdout


def test_skip_next_names_the_tick_that_it_has_looked_up(asked: Cronring, api: FakeApi) -> None:
    done = asked("jobs", "skip-next", "billing.refresh", "--note", "by hand")
    assert done.exit_code == 0, done.stderr
    looked, skipped = api.requests
    assert (looked.dry_run, looked.HasField("tick")) == (True, False)
    assert (skipped.dry_run, skipped.tick, skipped.note) == (False, TICK, "by hand")
    assert "skips its tick 2026-11-21 08:05:00Z" in done.stdout
    api.skipped_before = True
    again = asked("jobs", "skip-next", "billing.refresh", "--tick", "2026-11-21T08:05:00Z")
    assert (again.exit_code, "nothing changed" in again.stdout) == (0, True)
    assert api.requests[-1].tick == TICK


def test_a_tick_that_has_begun_is_told(asked: Cronring, api: FakeApi) -> None:
    api.failure = grpc.StatusCode.FAILED_PRECONDITION, "tick 2026-11-21T08:05:00Z has begun as execution 7"
    done = asked("jobs", "skip-next", "billing.refresh", "--tick", "2026-11-21T08:05:00Z")
    assert (done.exit_code, "has begun as execution 7" in done.stderr) == (1, True)


def test_cancel_tells_what_stops_and_the_way_back(asked: Cronring, api: FakeApi) -> None:
    done = asked("jobs", "cancel", "billing.refresh", "--note", "they asked")
    assert done.exit_code == 0
    assert api.requests[-1].note == "they asked"
    assert "executions told to stop: 2" in done.stdout
    assert "cronring jobs restore billing.refresh" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pause"], "which job?"),
        (["pause", "a.b", "--module", "a"], "not both"),
        (["cancel", "a.b", "--yes"], "for many jobs"),
        (["pause", "a.b", "--dry-run"], "--dry-run: for many jobs alone"),
        (["trigger", "a.b", "--dry-run"], "--dry-run: for many jobs alone"),
        (["trigger", "a.b", "--yes"], "for many jobs"),
        (["activations", "a.b", "--idempotency-key", "k"], "give it with --cancel"),
        (["activations", "a.b", "--note", "n"], "give it with --cancel"),
        (["import", "--stream", "-", "--position", "here"], "nothing is kept of standard input"),
        (["skip-next", "--module", "a", "--tick", "2026-11-21T08:05:00Z"], "--tick is of one job"),
        (["trigger", "--module", "a", "--wait"], "are of one job"),
        (["trigger"], "which job?"),
        (["delete"], "which job?"),
        (["delete", "a.b", "--label", "a=b"], "not both"),
        (["delete", "a.b", "--expect", "1"], "for many jobs"),
        (["update", "--retries", "3"], "which job?"),
        (["update", "a.b", "--retries", "3", "--label", "a=b"], "not both"),
        (["update", "a.b", "--retries", "3", "--expect", "1"], "for many jobs"),
        (["update", "--label", "a=b"], "nothing to change"),
        (["update", "--label", "a=b", "--at", "2027-01-01T08:00"], "write its offset, like 2027-01-01T08:00Z"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: Cronring, api: FakeApi, arguments: list[str], says: str) -> None:
    done = asked("jobs", *arguments)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert not api.requests


def test_many_are_shown_first_and_done_only_on_yes(asked: Cronring, api: FakeApi) -> None:
    api.fate = {"billing.a": "", "billing.b": "unchanged", "billing.c": "can't pause 'billing.c': it is cancelled"}
    which = ["--label", "team=x", "--module", "billing", "--namespace", "prod", "--status", "scheduled"]
    shown = asked("jobs", "pause", *which, "--dry-run", "--until", "2h")
    assert shown.exit_code == 0
    (request,) = api.requests
    assert (request.dry_run, request.action) == (True, jobs_pb2.ControlJobsRequest.ACTION_PAUSE)
    assert request.filter == jobs_pb2.JobFilter(
        namespace="prod", module="billing", statuses=["scheduled"], labels={"team": "x"}
    )
    assert request.HasField("until")
    assert "paused (ticks 3)" in shown.stdout
    assert "refused: can't pause" in shown.stdout
    assert "1 of 3 jobs would be paused, 1 stay as they are, 1 would fail" in shown.stderr
    asked_first = asked("jobs", "pause", *which)
    assert (asked_first.exit_code, "do it with --yes" in asked_first.stderr) == (2, True)
    assert all(each.dry_run for each in api.requests)
    done = asked("jobs", "pause", *which, "--yes")
    assert (done.exit_code, api.requests[-1].dry_run) == (1, False)
    assert "billing.c: can't pause" in done.stderr
    assert "1 of 3 jobs are paused, 1 stay as they are, 1 failed" in done.stdout
    told = json.loads(asked("jobs", "pause", *which, "--yes", "-o", "json").stdout)
    assert (told["done"], told["unchanged"], [each["key"] for each in told["failed"]]) == (1, 1, ["billing.c"])


@pytest.mark.parametrize(
    ("command", "action"),
    [("resume", 2), ("skip-next", 3), ("trigger", 4), ("cancel", 5), ("restore", 6), ("delete", 7)],
)
def test_every_order_is_for_many_too(asked: Cronring, api: FakeApi, command: str, action: int) -> None:
    api.fate = {"billing.a": ""}
    assert asked("jobs", command, "--verb", "a", "--yes", "--as", "ada").exit_code == 0
    assert (api.requests[-1].action, api.requests[-1].requested_by) == (action, "ada")


def test_what_matches_is_deleted_if_it_is_as_many_as_expected(asked: Cronring, api: FakeApi) -> None:
    api.fate = {"billing.a:x": "", "billing.a:y": ""}
    shown = asked("jobs", "delete", "--label", "batch=7", "--dry-run")
    assert (shown.exit_code, "2 of 2 jobs would be deleted" in shown.stderr) == (0, True)
    assert not api.requests[-1].HasField("expected")
    done = asked("jobs", "delete", "--label", "batch=7", "--expect", "2", "--yes")
    assert (done.exit_code, "2 of 2 jobs are deleted" in done.stdout) == (0, True)
    assert (api.requests[-1].expected, api.requests[-1].dry_run) == (2, False)
    api.failure = grpc.StatusCode.FAILED_PRECONDITION, "3 jobs match, and 2 are expected; nothing was done"
    other = asked("jobs", "delete", "--label", "batch=7", "--expect", "2", "--yes")
    assert (other.exit_code, "3 jobs match, and 2 are expected" in other.stderr) == (1, True)


def test_what_matches_is_changed_if_it_is_as_many_as_expected(asked: Cronring, api: FakeApi) -> None:
    api.fate = {"billing.a:x": "", "billing.a:y": "unchanged"}
    change = ["--label", "batch=7", "--retries", "3", "--set-label", "tier=slow", "--at", "+1h"]
    shown = asked("jobs", "update", *change, "--dry-run")
    assert (shown.exit_code, "1 of 2 jobs would be changed, 1 stay as they are" in shown.stderr) == (0, True)
    done = asked("jobs", "update", *change, "--expect", "2", "--yes")
    assert (done.exit_code, "1 of 2 jobs are changed" in done.stdout) == (0, True)
    (rehearsed, request) = api.requests
    assert (rehearsed.dry_run, request.dry_run, request.expected, request.action) == (True, False, 2, 8)
    assert request.filter == jobs_pb2.JobFilter(labels={"batch": "7"})
    assert (request.spec.policy.retries, dict(request.spec.labels)) == (3, {"tier": "slow"})
    assert list(request.update_mask.paths) == ["schedule", "labels.tier", "policy.retries"]


def test_no_job_is_an_error(asked: Cronring) -> None:
    done = asked("jobs", "cancel", "--module", "nobody", "--dry-run")
    assert (done.exit_code, "no job matches" in done.stderr) == (1, True)


def test_actions_are_listed(asked: Cronring, api: FakeApi) -> None:
    api.actions = [
        jobs_pb2.Action(id=2, at=stamp(1), job="billing.refresh", action="skip_next", actor="ada", note="by hand",
                        details='{"tick": "2026-11-21T08:05:00Z"}'),
        jobs_pb2.Action(id=1, at=stamp(0), execution_id=7, action="cancel_execution", actor="bob"),
    ]  # fmt: skip
    done = asked("jobs", "actions", "billing.refresh")
    assert done.exit_code == 0
    assert "2026-11-21 08:00:01Z  ada  skip_next" in done.stdout
    assert "execution 7" in done.stdout
    rows = json.loads(asked("jobs", "actions", "-o", "json").stdout)
    assert rows[0]["details"] == {"tick": "2026-11-21T08:05:00Z"}


def test_of_a_payload_what_the_caller_is_told_is_shown(asked: Cronring, api: FakeApi) -> None:
    """Of several jobs at once, and for who may see no payload, there is no text."""
    told = {"bytes": 8, "sha256": "0a1b2c3d4e5f" + "0" * 52}
    api.actions = [
        jobs_pb2.Action(id=number, at=stamp(0), job="billing.refresh", action="update", actor="ada",
                        details=json.dumps({"payload": {"old": None, "new": told | text}}))
        for number, text in ((2, {"text": '{"n": 1}'}), (1, {}))
    ]  # fmt: skip
    shown, hidden = asked("jobs", "actions", "billing.refresh").stdout.splitlines()[-2:]
    assert r'{"payload": {"old": "", "new": "{\"n\": 1}"}}' in shown
    assert '"new": "8 bytes, sha256 0a1b2c3d4e5f…"' in hidden


def test_where_nothing_was_done_to_a_job_it_says_where_else_to_look(asked: Cronring) -> None:
    done = asked("jobs", "actions", "billing.refresh")
    assert "cronring jobs actions --deployment KEY" in done.stdout + done.stderr
    done = asked("jobs", "actions")
    assert "nobody has done anything yet" in done.stdout + done.stderr


def version(number: int, **fields: object) -> deployments_pb2.Deployment:
    return deployments_pb2.Deployment(key=f"billing@{number}", module="billing", namespace="default", **fields)  # type: ignore[arg-type]  # its fields' values


def test_rollback_goes_back_to_the_version_before(asked: Cronring, api: FakeApi) -> None:
    api.versions = [
        version(3, active=True), version(2, deactivated_at=stamp(-10)), version(1, deactivated_at=stamp(-99)),
        version(0),
    ]  # fmt: skip
    api.activated = deployments_pb2.ActivateDeploymentResponse(
        deployment=version(2, active=True), activated=True, previous=version(3), previous_running=2,
        jobs_added=["billing.old"], jobs_removed=["billing.new"],
    )  # fmt: skip
    done = asked("rollback", "billing", "--yes", "--note", "wrong totals", "--as", "ada")
    assert done.exit_code == 0, done.stderr
    request = api.requests[-1]
    assert (request.key, request.note, request.requested_by) == ("billing@2", "wrong totals", "ada")
    for words in ("billing@2 is active in place of billing@3", "added: billing.old", "removed: billing.new",
                  "go on to their end: 2", "no runner hosts it"):  # fmt: skip
        assert words in done.stdout
    assert asked("rollback", "billing", "--yes", "--to", "billing@1").exit_code == 0
    assert api.requests[-1].key == "billing@1"
    unknown = asked("rollback", "billing", "--to", "billing@7")
    assert (unknown.exit_code, "no version 'billing@7'" in unknown.stderr) == (1, True)
