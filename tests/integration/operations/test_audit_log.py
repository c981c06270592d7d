"""`cronring audit-log list|export|verify`, as an auditor uses them: over gRPC, on PostgreSQL itself, and on files."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cronring.cli.root import cli
from cronring.controller.store.audit_chain import PostgresAuditLog
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from tests.support.audit_rows import tamper, write
from tests.support.identified import Identified, identified

Cronring = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[3]
NOBODY = ("--controllers", "127.0.0.1:1")


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in list(os.environ):
        if name.startswith("CRONRING_") and name != "CRONRING_INSECURE":
            monkeypatch.delenv(name)


@pytest.fixture
def api(database_url: str) -> Iterator[Identified]:
    with identified(database_url) as served:
        yield served


@pytest.fixture
def cronring(api: Identified) -> Cronring:
    def call(*arguments: str, **environment: str) -> Result:
        here = {"CRONRING_CONTROLLERS": api.address, "COLUMNS": "80"}
        return CliRunner().invoke(cli, ["audit-log", *arguments], env=here | environment, catch_exceptions=False)

    return call


def on(url: str, rows: int = 0, *statements: str) -> None:
    """Rows are written and sealed; then statements of the tables' owner."""

    async def do() -> None:
        database, connection = await Database.open(url, "cronring test"), await connect(url, "cronring test scene")
        for number in range(1, rows + 1):
            refused = "PERMISSION_DENIED" if number == 3 else None
            await write(connection, number, "" if refused else "billing", refused=refused)
        if rows:
            await PostgresAuditLog(database).seal()
        await tamper(connection, *statements)
        await connection.close()
        await database.close()

    asyncio.run(do())


def test_the_list_fits_a_terminal_and_json_has_all(cronring: Cronring, api: Identified, database_url: str) -> None:
    on(database_url, 3)
    unsealed = "INSERT INTO cron_audit_log (principal, method, subject) VALUES ('token:ci', '/a/B', 'token x')"
    on(database_url, 0, unsealed)
    shown = cronring("list")
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["SEQ", "AT", "WHO", "WHAT"]
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert [re.sub(r"20\S+ \S+Z", "T", line).split() for line in lines] == [
        ["unsealed", "T", "token:ci", "B", "token", "x"],
        ["3", "T", "token:ci", "REFUSED", "PauseJob"],
        ["2", "T", "token:ci", "PauseJob", "job", "billing/m.v2"],
        ["1", "T", "token:ci", "PauseJob", "job", "billing/m.v1"],
    ]
    rows = json.loads(cronring("list", "-o", "json", "-n", "2", "--changes", "--since", "-1h").stdout)
    assert [(row["seq"], row["after"], row["refused"]) for row in rows] == [
        (0, None, None),
        (2, '{"paused": 2, "note": "ä\U0001f600"}', None),
    ]
    assert [row["seq"] for row in json.loads(cronring("list", "--refused", "-o", "json").stdout)] == [3]
    nothing = cronring("list", "--subject", "token y")
    assert (nothing.exit_code, nothing.stderr.strip()) == (0, "of 4 rows none matches --subject token y")
    assert cronring("list", "--refused", "--changes").exit_code == 2
    api.anybody = Principal(Kind.USER, "ann", (RoleGrant(Role.ADMIN, "billing"),))
    assert [row["seq"] for row in json.loads(cronring("list", "-o", "json").stdout)] == [2, 1]


def test_an_export_goes_on_where_it_ended_and_is_checked_without_anybody(
    cronring: Cronring, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "log.ndjson"
    on(database_url, 3)
    first = cronring("export", "--file", str(file))
    assert (first.exit_code, first.stdout) == (0, "")
    assert re.fullmatch(r"up to 3:[0-9a-f]{64}; go on by --after 3\n", first.stderr)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "--after SEQ" in cronring("export", "--file", str(file)).stderr
    on(database_url, 2)
    assert cronring("export", "--file", str(file), "--after", "3").exit_code == 0
    lines = file.read_text().splitlines()
    assert lines == cronring("export").stdout.splitlines()
    assert lines == cronring("export", "--database-url", database_url).stdout.splitlines()
    whole = cronring("verify", "--file", str(file), "--expect", first.stderr.split()[2].rstrip(";"))
    assert re.search(r"^rows checked +5$", whole.stdout, re.MULTILINE), whole.output
    assert whole.exit_code == 0
    assert json.loads(cronring("verify", "--file", str(file), "-o", "json").stdout)["rows"] == 5
    assert "another" in cronring("export", "--after", "9").stderr
    file.write_text("\n".join([*lines[:2], lines[2].replace("billing", "killing").replace("token:ci", "token:eve")]))
    broken = cronring("verify", "--file", str(file))
    assert (broken.exit_code, "changed: row 3 (token:eve" in broken.stdout) == (1, True)
    file.write_text("\n".join([lines[0], lines[2]]))
    assert "missing: row 2 is missing" in cronring("verify", "--file", str(file)).stdout
    (tmp_path / "half.ndjson").write_text("\n".join(lines[3:]))
    file.write_text("\n".join(lines[:3]))
    pieces = ("verify", "--file", str(file), "--file", str(tmp_path / "half.ndjson"))
    assert cronring(*pieces).exit_code == 0
    file.write_text(f"{lines[0][:-40]}\n")
    assert "line 1: this is no row of an export" in cronring("verify", "--file", str(file)).stderr


def test_what_was_done_to_the_log_is_said_with_exit_code_1(cronring: Cronring, database_url: str) -> None:
    on(database_url, 5)
    whole = cronring("verify")
    assert (whole.exit_code, "whole: each row is what was sealed" in whole.stdout) == (0, True)
    head = re.search(r"^head +(5:[0-9a-f]{64})$", whole.stdout, re.MULTILINE)
    assert head is not None
    assert cronring("verify", "--database-url", database_url, "--expect", head[1]).exit_code == 0
    on(database_url, 0, "UPDATE cron_audit_log SET subject = 'job x.y' WHERE seq = 2",
       "DELETE FROM cron_audit_log WHERE seq = 4")  # fmt: skip
    broken = cronring("verify", "--expect", head[1])
    assert broken.exit_code == 1
    assert "changed: row 2 (token:ci, /cronring.v1.Jobs/PauseJob, 2" in broken.stdout
    assert "missing: row 4 is missing" in broken.stdout
    assert "NOT WHOLE" in broken.stdout
    faults = json.loads(cronring("verify", "-o", "json").stdout)["faults"]
    assert [(fault["kind"], fault["seq"]) for fault in faults] == [("changed", 2), ("missing", 4)]
    assert cronring("verify", "--expect", f"5:{'0' * 64}").stdout.count("rewritten: row 5") == 1
    assert "missing: row 9 was there" in cronring("verify", "--expect", f"9:{'0' * 64}").stdout
    assert cronring("verify", "--expect", "5").exit_code == 2
    assert cronring("verify", "--database-url", database_url, *NOBODY).exit_code == 2
    assert cronring("verify", "--file", str(ROOT / "README.md"), *NOBODY).exit_code == 2


def test_the_verifier_of_the_page_finds_the_same(cronring: Cronring, database_url: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "audit-log.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(program.splitlines()) <= 20
    (tmp_path / "verifier.py").write_text(program)
    on(database_url, 5)
    exported = cronring("export").stdout

    def checks(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "verifier.py")]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    assert (checks(exported).returncode, checks(exported).stdout) == (0, "5 rows are whole\n")
    lines = exported.splitlines()
    for broken, seq in (
        ([lines[0], lines[1].replace("m.v2", "m.v9"), *lines[2:]], 2),
        ([*lines[:2], *lines[3:]], 4),
        ([lines[1], lines[0], *lines[2:]], 1),
    ):
        found = checks("\n".join(broken))
        assert (found.returncode, found.stderr) == (1, f"row {seq} does not fit\n")
