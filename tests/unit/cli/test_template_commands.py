"""`cronring template ...`, `jobs create --template` and `--note`, through click, over real gRPC."""

import json

import pytest

from cronring.client import AsyncClient, convert
from cronring.client.errors import Refused
from cronring.client.model import JobEvent, JobEventKind
from cronring.protos.cronring.v1 import jobs_pb2, schema_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, job

NIGHTLY = ("template", "set", "nightly", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin", "--retries", "3")


def test_a_template_is_set_shown_listed_and_deleted(asked: Cronring) -> None:
    done = asked(*NIGHTLY, "--label", "tier=slow", "--timeout", "10m", "--description", "at night", "--note", "new")
    assert done.exit_code == 0, done.stderr
    assert "template nightly is made" in done.stdout
    assert "further attempts at the same tick" in done.stdout
    assert "was so already" in asked("template", "set", "nightly", "--retries", "3").stdout
    shown = asked("template", "show", "nightly").stdout
    for words in ("at night", "0 came from it", "0 3 * * *", "tier=slow", "10m", "on the clocks of Europe/Berlin"):
        assert words in shown
    listed = asked("template", "list").stdout
    assert "schedule, timezone, retries, labels, timeout" in listed
    changed = asked("template", "set", "nightly", "--timezone", "", "--remove-label", "tier")
    assert "is changed; the 0 jobs" in changed.stdout
    told = json.loads(asked("template", "show", "nightly", "-o", "json").stdout)
    assert (told["revision"], told["spec"]["policy"], told["spec"]["labels"]) == (2, {"retries": 3}, {})
    asked("template", "set", "nightly", "--replace", "--every", "5m")
    told = json.loads(asked("template", "list", "-o", "json").stdout)[0]
    assert (told["spec"]["schedule"], told["spec"]["policy"], told["spec"]["timeout_ms"]) == ("every 5m", {}, None)
    assert "is deleted; 0 jobs" in asked("template", "delete", "nightly").stdout
    assert "no templates" in asked("template", "list").stderr


def test_who_set_it_and_why_is_asked_for(asked: Cronring, api: FakeApi) -> None:
    asked(*NIGHTLY, "--as", "ada", "--note", "to begin with")
    asked("template", "delete", "nightly", "--as", "bob", "--note", "enough")
    assert [(each.actor, each.note) for each in api.templates.actions] == [("ada", "to begin with"), ("bob", "enough")]


def test_wrong_values_are_told_by_their_options(asked: Cronring) -> None:
    done = asked("template", "set", "nightly", "--retries", "101", "--overlap", "forbid")
    assert done.exit_code == 1
    assert "--retries: 101 is outside" in done.stderr
    assert "--overlap" in done.stderr
    assert asked("template", "set", "nightly").exit_code == 2
    asked(*NIGHTLY)
    missing = asked("template", "show", "nigthly")
    assert "nightly" in missing.stderr
    assert "cronring template list" in missing.stderr


def test_an_instant_is_read_on_the_templates_clocks(asked: Cronring) -> None:
    asked("template", "set", "launch", "--timezone", "Asia/Tokyo")
    asked("template", "set", "launch", "--at", "2036-03-29T09:00")
    told = json.loads(asked("template", "show", "launch", "-o", "json").stdout)
    assert told["spec"]["schedule"] == "at 2036-03-29T00:00:00Z"


def test_a_job_starts_from_a_template(asked: Cronring, api: FakeApi) -> None:
    asked("template", "set", "launch", "--timezone", "Asia/Tokyo")
    done = asked(
        "jobs", "create", "billing.refresh", "--name", "a", "--template", "launch", "--at", "2036-03-29T09:00",
        "--window", "", "--retries", "0", "--note", "as planned", "--as", "ada",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (request,) = [each for each in api.requests if isinstance(each, jobs_pb2.CreateJobRequest)]
    assert (request.template, request.note, request.requested_by) == ("launch", "as planned", "ada")
    assert request.spec.schedule == "at 2036-03-29T00:00:00Z", "on the template's clocks"
    assert list(request.explicit.paths) == ["schedule", "policy.window", "policy.retries"]
    assert request.spec.policy == schema_pb2.Policy(retries=0), "which is said"
    without = asked("jobs", "create", "billing.refresh", "--name", "a")
    assert without.exit_code == 2
    assert "--template" in without.stderr


def test_every_order_takes_a_note(asked: Cronring, api: FakeApi) -> None:
    for arguments in (
        ("jobs", "update", "billing.refresh", "--retries", "1"),
        ("jobs", "delete", "billing.refresh"),
        ("jobs", "backfill", "billing.refresh", "--from", "-1h"),
        ("jobs", "activations", "billing.refresh", "--cancel", "1"),
        ("jobs", "trigger", "billing.refresh"),
        ("jobs", "cancel", "billing.refresh"),
        ("executions", "cancel", "3"),
        ("executions", "retry", "3"),
    ):
        before = len(api.requests)
        asked(*arguments, "--note", f"why {arguments[1]}", "--as", "ada")
        noted = [each for each in api.requests[before:] if "note" in type(each).DESCRIPTOR.fields_by_name]
        assert [(each.note, each.requested_by) for each in noted] == [(f"why {arguments[1]}", "ada")], arguments


def test_a_job_tells_its_template(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [job("refresh", template="nightly")]
    assert "nightly   (what it said then was copied)" in asked("jobs", "show", "billing.refresh").stdout


def event(
    kind: "jobs_pb2.JobEvent.Kind.ValueType", verb: str = "", token: str = "", **fields: object
) -> jobs_pb2.JobEvent:
    return jobs_pb2.JobEvent(kind=kind, job=job(verb, **fields) if verb else None, resume_token=token)


async def test_a_watch_of_jobs_goes_on_after_it_was_dropped_as_slow(api: FakeApi) -> None:
    present, listed, changed = (
        jobs_pb2.JobEvent.KIND_PRESENT, jobs_pb2.JobEvent.KIND_LISTED, jobs_pb2.JobEvent.KIND_CHANGED,
    )  # fmt: skip
    api.watches = [
        [event(present, "refresh")],  # dropped while it was still listing: anew
        [event(present, "refresh"), event(present, "close_month"), event(listed, token="t1")],
        [event(changed, "refresh", "t2", status="running")],
        [],  # dropped before it was told anything: what is known is held against a new listing
        [event(present, "refresh", status="paused"), event(listed, token="t3")],
    ]
    told: list[JobEvent] = []
    async with AsyncClient([api.address]) as client:
        async for each in client.jobs.watch():
            told.append(each)
            if len(told) == 6:
                break
    kinds = [(each.kind, each.job.verb if each.job else "", each.job.status if each.job else "") for each in told]
    status = convert.job(job("refresh")).status
    assert kinds == [
        (JobEventKind.PRESENT, "refresh", status),
        (JobEventKind.PRESENT, "close_month", status),
        (JobEventKind.LISTED, "", ""),
        (JobEventKind.CHANGED, "refresh", "running"),
        (JobEventKind.CHANGED, "refresh", "paused"),
        (JobEventKind.REMOVED, "close_month", status),
    ]
    assert [each.resume_token for each in api.requests] == ["", "", "t1", "t2", ""]


async def test_a_watch_that_is_dropped_before_it_has_heard_anything_fails(api: FakeApi) -> None:
    api.watches = [[]]
    async with AsyncClient([api.address]) as client:
        with pytest.raises(Refused, match="too slowly"):
            await anext(client.jobs.watch())
