"""`cronring plan`: what is deployed, against a file."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cronring.protos.cronring.v1 import deployments_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, job, serving
from tests.unit.cli.fake_times import stamp

DEPLOYED = """module billing {
  verb close_month(Unit) Unit
    +cron "0 6 1 * *"

  verb refresh(Unit) Unit
    +every "30m"

  verb old(Unit) Unit
    +cron "* * * * * *"

  verb report(Unit) Unit
    +cron "0 6 * * *"
}
"""
CHANGED = """module billing {
  verb refresh(Unit) Unit
    +every "30m"
    +retries 2

  verb report(Unit) Unit
    +cron "30 7 * * *"
    +timeout "1m"

  verb close_month(Unit) Unit
    +cron "0 6 1 * *"

  verb fresh(Unit) Unit
    +cron "0 * * * *"
}
"""


class Deploying(FakeApi):
    def deployment(self):
        row = super().deployment()
        row.schema_text = DEPLOYED
        return row


class Empty(FakeApi):
    async def ListDeployments(self, request, context):  # noqa: N802, ARG002 - gRPC's
        return deployments_pb2.ListDeploymentsResponse()


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch):
    """Between 06:00 and 07:30, the first tick of the one schedule is tomorrow, and of the other today."""
    monkeypatch.setattr("cronring.cli.commands.plan.wall_now", lambda: datetime(2026, 11, 22, 12, tzinfo=UTC))


@pytest.fixture
def api():
    with serving(Deploying()) as served:
        served.jobs = [job("refresh", schedule="every 30m", anchor=stamp(-600), source="annotation")]
        yield served


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    file = tmp_path / "billing.schema"
    file.write_text(CHANGED)
    return file


def test_plan(asked: Cronring, changed: Path) -> None:
    done = asked("plan", str(changed))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"from billing-1, to {changed}: ticks until ")
    assert "  refresh: the same 336 ticks; changed: retries" in done.stdout
    moved = "~ report: 0 6 * * * -> 30 7 * * *, 7 ticks -> 7: 7 move, each 1h30m later; changed: timeout_ms"
    assert moved in done.stdout
    assert "+ fresh: 0 * * * *, 168 ticks" in done.stdout
    assert "- old: * * * * * *, 604,800 ticks gone" in done.stdout
    assert ", and 604,795 more" in done.stdout
    assert "close_month" not in done.stdout


def test_jobs_made_through_the_api_are_told_what_becomes_of_them(asked: Cronring, api: FakeApi, changed: Path) -> None:
    key = "billing.fresh:acme"
    api.orphaned, api.back = ["billing.old:acme"], ["billing.report:acme", key]
    api.misfits = [deployments_pb2.Misfit(job=key, faults=["fresh takes no payload"])]
    done = asked("plan", str(changed))
    assert "- billing.old:acme: made through the API, and its verb is gone: it would be orphaned;" in done.stdout
    assert "! billing.fresh:acme: made through the API, and its payload would no longer fit" in done.stdout
    assert "    fresh takes no payload" in done.stdout
    assert "+ billing.report:acme: orphaned, and its verb is back" in done.stdout
    assert [request.dry_run for request in api.requests if hasattr(request, "dry_run")] == [True]
    assert json.loads(asked("plan", str(changed), "-o", "json").stdout)["api_jobs"] == [
        {"key": "billing.old:acme", "change": "orphaned", "faults": []},
        {"key": "billing.report:acme", "change": "back", "faults": []},
        {"key": key, "change": "payload", "faults": ["fresh takes no payload"]},
    ]


def test_plan_json(asked: Cronring, changed: Path) -> None:
    found = json.loads(asked("plan", str(changed), "--days", "30", "-o", "json").stdout)
    assert found["deployed"] == "billing-1"
    jobs = {each["verb"]: each for each in found["jobs"]}
    assert {verb: each["change"] for verb, each in jobs.items()} == {
        "refresh": "same", "report": "changed", "close_month": "same", "fresh": "added", "old": "removed",
    }  # fmt: skip
    assert jobs["report"]["shift_s"] == 5400
    assert jobs["refresh"]["changed_fields"] == ["retries"]
    assert (jobs["report"]["gone"], jobs["report"]["new"], len(jobs["report"]["first_new"])) == (30, 30, 5)


def test_nothing_changes(asked: Cronring, tmp_path: Path) -> None:
    same = tmp_path / "billing.schema"
    same.write_text(DEPLOYED)
    done = asked("plan", str(same), "--days", "1")
    assert "nothing changes: the 4 jobs keep their 86," in done.stdout


def test_nothing_is_deployed(cronring: Cronring, changed: Path) -> None:
    with serving(Empty()) as served:
        done = cronring("plan", str(changed), CRONRING_CONTROLLERS=served.address)
    assert "from nothing, as billing has no active deployment" in done.stdout
    assert done.stdout.count("\n+ ") == 4
