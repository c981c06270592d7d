"""`deploy`, `undeploy` and `rollback` say what would go, ask before it goes, and tell what went."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cronring.cli import consent
from cronring.cli.root import cli
from cronring.protos.cronring.v1 import deployments_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

MADE = [f"billing.refresh:made{number:03}" for number in range(893)]


@pytest.fixture
def lossy(api: FakeApi) -> FakeApi:
    """What it is asked to end or replace has seven declared jobs, and 893 made by hand."""
    api.removed, api.orphaned = [f"billing.v{number}" for number in range(7)], MADE
    return api


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "billing.py"
    file.write_text("from cronring import every\n\n\n@every('30m')\ndef new():\n    pass\n")
    return file


def answered(api: FakeApi, monkeypatch: pytest.MonkeyPatch, answer: str, *arguments: str) -> Result:
    """On a terminal."""
    monkeypatch.setattr(consent, "is_terminal", lambda: True)
    return CliRunner().invoke(cli, list(arguments), input=answer, env={"CRONRING_CONTROLLERS": api.address})


def test_a_dry_run_names_what_would_go_and_asks_nobody(asked: Cronring, lossy: FakeApi) -> None:
    done = asked("undeploy", "billing", "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "billing-1 would no longer be active" in done.stdout
    assert "  removed: billing.v0\n" in done.stdout
    assert "  orphaned: billing.refresh:made009\n  orphaned: and 883 more; -o json names all" in done.stdout
    assert "nothing was changed" in done.stderr
    assert [request.dry_run for request in lossy.requests if hasattr(request, "dry_run")] == [True]
    rows = json.loads(asked("undeploy", "billing", "--dry-run", "-o", "json").stdout)
    assert (len(rows["jobs_removed"]), len(rows["jobs_orphaned"]), rows["dry_run"]) == (7, 893, True)


def test_a_dry_run_names_whose_payload_no_longer_fits(asked: Cronring, api: FakeApi, good: Path) -> None:
    api.misfits = [deployments_pb2.Misfit(job=MADE[0], faults=["new takes no payload"])]
    done = asked("deploy", str(good), "--dry-run")
    assert f"  payload no longer fits: {MADE[0]}: new takes no payload\n" in done.stdout


def test_without_a_terminal_it_wants_a_word(asked: Cronring, lossy: FakeApi, good: Path) -> None:
    for arguments in (("undeploy", "billing"), ("deploy", str(good))):
        done = asked(*arguments)
        assert done.exit_code == 2
        assert "made by hand would be orphaned" in done.stderr
        assert "See which with --dry-run; do it with --yes" in done.stderr
    assert all(request.dry_run for request in lossy.requests if hasattr(request, "dry_run"))
    done = asked("undeploy", "billing", "--yes", "--note", "retired", "--as", "ada")
    assert (done.exit_code, "billing-1 is no longer active" in done.stdout) == (0, True)
    sent = lossy.requests[-1]
    assert (sent.dry_run, sent.note, sent.requested_by) == (False, "retired", "ada")


def test_on_a_terminal_it_asks(lossy: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = answered(lossy, monkeypatch, "n\n", "undeploy", "billing")
    assert refused.exit_code == 1
    assert "7 declared jobs would be removed (billing.v0, billing.v1, billing.v2, ...)" in refused.stderr
    assert "893 jobs made by hand would be orphaned" in refused.stderr
    assert all(request.dry_run for request in lossy.requests if hasattr(request, "dry_run"))
    agreed = answered(lossy, monkeypatch, "y\n", "undeploy", "billing")
    assert (agreed.exit_code, lossy.requests[-1].dry_run) == (0, False)


def test_where_nothing_goes_nobody_is_asked(asked: Cronring, api: FakeApi, good: Path) -> None:
    done = asked("deploy", str(good))
    assert done.exit_code == 0, done.stderr
    assert [request.dry_run for request in api.requests if hasattr(request, "dry_run")] == [True, False]
