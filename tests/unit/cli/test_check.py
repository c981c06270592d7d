"""`cronring check`, `cronring schema diff` and `cronring deploy` on real files."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

GOOD = """
from cronring import Context, cron, every

@cron("0 6 1 * *")
async def close_month(ctx: Context) -> None: ...

@every("30m", timeout="5m")
def refresh() -> None: ...
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "billing.py"
    file.write_text(GOOD)
    return file


def test_check_prints_a_text_that_checks(cronring: Cronring, good: Path, tmp_path: Path) -> None:
    printed = cronring("check", str(good))
    assert printed.exit_code == 0, printed.stderr
    assert "verb close_month(Unit) Unit" in printed.stdout
    text = tmp_path / "billing.schema"
    text.write_text(printed.stdout)
    assert cronring("check", str(text)).stdout == printed.stdout
    assert cronring("schema", "diff", str(good), str(text)).exit_code == 0


def test_check_names_file_line_verb_and_remedy(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text('from cronring import every\n\n@every("3 s")\ndef refresh() -> int: ...\n')
    done = cronring("check", str(file))
    assert (done.exit_code, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert all(line.startswith(f"{file}:3: verb refresh: ") for line in lines)
    assert 'write @every("3s")' in done.stderr


def test_check_of_a_text_points(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "bad.schema"
    file.write_text('module billing {\n  verb x(Unit) Unit\n    +corn "* * * * *"\n}\n')
    done = cronring("check", str(file))
    assert done.exit_code == 1
    assert done.stderr.startswith(f"{file}:3:5: ")
    assert "+cron" in done.stderr


def test_diff(cronring: Cronring, good: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed" / "billing.py"
    changed.parent.mkdir()
    changed.write_text(GOOD.replace("30m", "20m").replace("close_month", "close_year"))
    done = cronring("schema", "diff", str(good), str(changed))
    assert done.exit_code == 1
    assert [line[0] for line in done.stdout.splitlines()] == ["-", "+", "~"]
    assert "every 30m -> every 20m" in done.stdout


def test_deploy(asked: Cronring, api: FakeApi, good: Path) -> None:
    done = asked("deploy", str(good))
    assert done.exit_code == 0, done.stderr
    assert "added: billing.close_month" in done.stdout
    sent = api.requests[-1]
    assert [verb.name for verb in sent.schema.verbs] == ["close_month", "refresh"]
    assert (sent.schema.verbs[1].timeout_ms, len(sent.digest), sent.min_replicas) == (300_000, 64, 1)


PAST = """from cronring import once


@once(run_at="2020-01-01T00:00:00Z")
def migrate():
    pass
"""


@pytest.mark.parametrize("command", ["check", "deploy"])
def test_a_one_shot_that_has_passed_is_said_and_no_error(asked: Cronring, tmp_path: Path, command: str) -> None:
    file = tmp_path / "old.py"
    file.write_text(PAST)
    done = asked(command, str(file))
    assert done.exit_code == 0, done.stderr
    assert f"{file}:4: warning: verb migrate: its last tick was 2020-01-01T00:00:00Z" in done.stderr
    assert "write a later time, or remove it" in done.stderr


def test_deploy_prints_violations(asked: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "refused.py"
    file.write_text(GOOD)
    done = asked("deploy", str(file))
    assert done.exit_code == 1
    assert "schema.verbs[0].schedule: it can never fire" in done.stderr


def test_dev_says_what_is_wrong_before_anything_starts(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("import nothing_of_that_name\n")
    done = cronring("dev", str(file), "--data", str(tmp_path / "data"))
    assert done.exit_code == 1
    assert f"{file}:1:" in done.stderr
    assert not (tmp_path / "data").exists()


def test_check_warns_of_what_follows_nobody_and_refuses_a_circle(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "reports.py"
    text = (
        "from cronring import Context, cron\n\n"
        '@cron(after="reports.clsoe")\ndef month(ctx: Context) -> None: ...\n\n'
        '@cron(after="billing.close")\ndef year(ctx: Context) -> None: ...\n'
    )
    file.write_text(text)
    done = cronring("check", str(file))
    assert done.exit_code == 0
    assert f"{file}:3: warning: verb month: it runs after reports.clsoe, and the module has no such job" in done.stderr
    assert "billing.close" not in done.stderr
    assert '    +manual\n    +after "billing.close"\n' in done.stdout
    file.write_text(text.replace("reports.clsoe", "reports.year").replace("billing.close", "reports.month"))
    done = cronring("check", str(file))
    assert done.exit_code == 1
    assert "reports.month runs after reports.year, which runs after reports.month" in done.stderr
