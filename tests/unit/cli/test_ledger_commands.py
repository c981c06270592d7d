"""`cronring audit` and `cronring why`, against canned answers."""

import json

from click.testing import CliRunner, Result

from cronring.cli.root import cli
from cronring.protos.cronring.v1 import ledger_pb2
from tests.unit.cli.fake_api import FakeApi
from tests.unit.cli.fake_times import EPOCH, stamp


def run(api: FakeApi, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--controllers", api.address])


def test_a_clean_audit_counts_and_succeeds(api: FakeApi) -> None:
    result = run(api, "audit", "--since", "2026-11-21T08:00:00Z", "--late-after", "30s")
    assert result.exit_code == 0
    assert "ticks due    87" in result.output
    assert "executed     81 (on time 80, late 1)" in result.output
    assert "skipped      6 (overlap 6)" in result.output
    assert "clean: 2 jobs, up to 2026-11-21 08:01:00Z" in result.output
    request = api.requests[-1]
    assert (request.since, request.late_after_ms, request.thorough) == (stamp(0), 30_000, False)
    assert not request.HasField("until")


def test_one_job_is_walked(api: FakeApi) -> None:
    assert run(api, "audit", "--job", "billing.refresh").exit_code == 0
    assert (api.requests[-1].job, api.requests[-1].thorough) == ("billing.refresh", True)


def test_a_date_alone_means_its_end(api: FakeApi) -> None:
    assert run(api, "audit", "--until", "2026-11-21").exit_code == 0
    assert api.requests[-1].until.ToDatetime().isoformat() == "2026-11-21T23:59:59"


def test_what_is_wrong_is_listed_and_fails(api: FakeApi) -> None:
    finding = ledger_pb2.Finding(
        kind="unaccounted", job="billing.refresh", tick=stamp(0), ticks=2, text="was due: neither executed nor skipped",
        look="cronring why billing.refresh --at 2026-11-21T08:00:00Z",
    )  # fmt: skip
    api.audit.MergeFrom(ledger_pb2.AuditResponse(unaccounted=2, findings=[finding], summarised_until=stamp(-60)))
    result = run(api, "audit")
    assert result.exit_code == 1
    assert "unaccounted: billing.refresh 2026-11-21 08:00:00Z (2 ticks)" in result.output
    assert "look: cronring why billing.refresh --at 2026-11-21T08:00:00Z" in result.output
    assert "NOT CLEAN" in result.output
    assert "only counts of some ticks up to 2026-11-21 07:59:00Z" in result.output


def test_json_has_the_counts_in_their_order(api: FakeApi) -> None:
    result = run(api, "audit", "-o", "json")
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert list(found)[:7] == ["ticks", "executed", "skipped", "late", "unaccounted", "duplicates", "early"]
    assert found["skipped"] == {"overlap": 6}
    api.audit.early = 1
    assert run(api, "audit", "-o", "json").exit_code == 1


def test_why_is_told_in_sentences(api: FakeApi) -> None:
    result = run(api, "why", "billing.refresh")
    assert (result.exit_code, result.output) == (
        0, "A tick of billing.refresh was due at 8.\nExecution 3 completed.\n"
    )  # fmt: skip


def test_an_instant_without_offset_is_on_the_jobs_clocks(api: FakeApi) -> None:
    result = run(api, "why", "billing.refresh", "--at", "2026-11-21T09:00", "-o", "json")
    assert result.exit_code == 0
    asked = [each for each in api.requests if isinstance(each, ledger_pb2.WhyRequest)]
    assert asked[-1].at == stamp(0), "Europe/Berlin"
    answer = json.loads(result.output)
    assert (answer["verdict"], answer["skip"]["reason"], answer["waiting"][0]["trigger"]) == (
        "executed", "overlap", "retry"
    )  # fmt: skip
    assert answer["attempts"][0]["id"] == 5
    assert answer["tick"] == EPOCH.isoformat().replace("+00:00", "Z")


def test_an_unknown_job_has_a_nearest_one(api: FakeApi) -> None:
    for arguments in (("why", "billing.refrsh"), ("audit", "--job", "billing.refrsh")):
        result = run(api, *arguments)
        assert result.exit_code == 1
        assert "Did you mean 'billing.refresh'?" in result.output


def test_help_teaches() -> None:
    told = CliRunner().invoke(cli, ["audit", "--help"]).output
    assert all(word in told for word in ("unaccounted", "duplicates", "early", "undue", "Exit codes", "Examples"))
    told = CliRunner().invoke(cli, ["why", "--help"]).output
    assert "cronring why billing.close_month --at" in told
