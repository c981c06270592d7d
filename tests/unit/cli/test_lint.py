"""`cronring lint` on real files, and with what a cluster has measured."""

import json
from pathlib import Path

import pytest

from cronring.cli.commands.lint import quantile
from cronring.protos.cronring.v1.executions_pb2 import ListExecutionsRequest
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, execution, job
from tests.unit.cli.fake_times import stamp

ODD = """
from cronring import cron, every


@cron("0 0 31 * *")
def month_end() -> None: ...


@cron("*/5 * * * *", timeout="10m")
def refresh() -> None: ...
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    file = tmp_path / "billing.py"
    file.write_text(ODD)
    return file


def test_findings_have_line_rule_and_remedy(cronring: Cronring, odd: Path) -> None:
    done = cronring("lint", str(odd))
    assert done.exit_code == 1
    first, remedy, second, _ = done.stdout.splitlines()
    assert first.startswith(f"{odd}:5: warning: verb month_end: day 31 is missing in February")
    assert first.endswith("[skips-months]")
    assert "day 28" in remedy
    assert second.startswith(f"{odd}:9: note: verb refresh: a run may take 10m")


def test_ignored_rules_and_notes_alone(cronring: Cronring, odd: Path) -> None:
    notes = cronring("lint", str(odd), "--ignore", "skips-months")
    assert (notes.exit_code, "[timeout]" in notes.stdout) == (0, True)
    nothing = cronring("lint", str(odd), "--ignore", "skips-months", "--ignore", "timeout")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "nothing found" in nothing.stderr
    assert cronring("lint", str(odd), "--ignore", "skip-months").exit_code == 2


def test_json(cronring: Cronring, odd: Path) -> None:
    rows = json.loads(cronring("lint", str(odd), "-o", "json").stdout)
    assert [(row["rule"], row["level"], row["verb"], row["line"]) for row in rows] == [
        ("skips-months", "warning", "month_end", 5),
        ("timeout", "note", "refresh", 9),
    ]
    assert all(row["file"] == str(odd) and row["message"] and row["remedy"] for row in rows)


def test_text_forms_have_lines_too(cronring: Cronring, odd: Path, tmp_path: Path) -> None:
    text = tmp_path / "billing.schema"
    text.write_text(f"// Before verb month_end(Unit).\n{cronring('check', str(odd)).stdout}")
    found = json.loads(cronring("lint", str(text), "-o", "json").stdout)
    lines = text.read_text().splitlines()
    assert [lines[row["line"] - 1].split("(")[0].strip() for row in found] == ["verb month_end", "verb refresh"]


def test_several_files(cronring: Cronring, odd: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(ODD.replace("31", "30"))
    rows = json.loads(cronring("lint", str(odd), str(other), "-o", "json").stdout)
    assert [row["file"] for row in rows if row["rule"] == "skips-months"] == [str(odd), str(other)]


def test_a_file_that_is_wrong_is_said_so(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("import nothing_of_that_name\n")
    done = cronring("lint", str(file))
    assert (done.exit_code, f"{file}:1:" in done.stderr) == (1, True)


def test_measured_durations(asked: Cronring, api: FakeApi, odd: Path) -> None:
    long = {"job": "billing.refresh"}
    api.jobs = [job(verb, source="annotation") for verb in ("month_end", "refresh")]
    api.executions = [execution(number, **long, ended_at=None) for number in range(30, 25, -1)]
    api.executions += [execution(number, started_at=None, **long) for number in range(25, 20, -1)]
    few = asked("lint", str(odd), "--controllers", api.address)
    assert "[slow]" not in few.stdout
    api.executions = [execution(number, **long, ended_at=stamp(number + 400)) for number in range(30, 0, -1)]
    slow = asked("lint", str(odd), "--controllers", api.address, "--ignore", "skips-months")
    assert slow.exit_code == 1
    assert "verb refresh: 5 % of its runs took 6m39s" in slow.stdout
    assert {request.filter.job for request in api.requests if isinstance(request, ListExecutionsRequest)} >= {
        "billing.refresh"
    }


def test_jobs_made_through_the_api_are_measured_by_their_own_schedule(asked: Cronring, api: FakeApi, odd: Path) -> None:
    name = "billing.refresh:acme"
    api.jobs = [job("refresh", key=name, source="api", schedule="*/5 * * * *", policy={"overlap": "buffer_one"})]
    api.executions = [execution(number, job=name, ended_at=stamp(number + 400)) for number in range(30, 0, -1)]
    done = asked("lint", str(odd), "--controllers", api.address, "--ignore", "skips-months")
    assert f"job {name}: 5 % of its runs took 6m39s" in done.stdout
    assert "all but the latest of them are skipped" in done.stdout
    assert "verb refresh: 5 %" not in done.stdout


def test_nobody_is_asked_unless_told_to(asked: Cronring, api: FakeApi, odd: Path) -> None:
    asked("lint", str(odd))
    assert api.requests == []


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (20, 19), (100, 95), (101, 96)])
def test_quantile(count: int, expected: int) -> None:
    assert quantile([float(value) for value in range(count, 0, -1)], 0.95) == expected
