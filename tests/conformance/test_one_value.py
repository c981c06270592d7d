"""How many Python files know of every field of a report, and of every reason to skip a tick.

A copy of the tree gets a new one of each. What `make protos` and `make parameters` write is written by them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("cronring", "controller", "schema", "protos", "sql", "tests")


class Edit(NamedTuple):
    """Wherever `old` stands in a file, `new` comes after it (`before`: before it)."""

    path: str
    old: str
    new: str
    before: bool = False


REPORT: Final = (
    # What knows it first, and what people see: the rest follows by its name.
    Edit("schema/execution.py", '"" for nothing\n', "    read_bytes: int | None = None\n"),
    Edit("cronring/runner/pool.py", "metrics=told.metrics, ", "read_bytes=7, "),
    Edit("controller/ports/reads.py", "    memory_shared: bool | None = None\n", "    read_bytes: int | None = None\n"),
    Edit("cronring/client/model.py", "# what the verb reported\n", "    read_bytes: int\n"),
    # The wire, the table and its statements.
    Edit("protos/runner/v1/runner.proto", "  string metrics_json = 14;", "  int64 read_bytes = 15;\n", before=True),
    Edit("protos/cronring/v1/executions.proto", "  string metrics_json =", "  int64 read_bytes = 37;\n", before=True),
    Edit("sql/migrations/0001_first_release.sql", "    memory_shared  boolean,\n", "    read_bytes bigint,\n"),
    Edit("sql/migrations/0001_first_release.sql", "e.memory_peak_bytes, e.memory_shared", ", e.read_bytes"),
    Edit("sql/queries/cron_jobs.sql", ":metrics[?]::text[], ", ":read_bytes[?]::bigint[], "),
    Edit("sql/queries/cron_jobs.sql", "memory_shared, metrics, ", "read_bytes, "),
    Edit("sql/queries/cron_jobs.sql", "metrics = r.metrics", ", read_bytes = r.read_bytes"),
)
REASON: Final = (
    Edit("schema/execution.py", 'OVERLAP = "overlap"\n', '    HOLIDAY = "holiday"\n'),
    Edit("controller/core/ledger/why.py", "_BY_SOMEBODY = {\n", '    "holiday": "nobody was at work",\n'),
    Edit("sql/migrations/0001_first_release.sql", "reason IN (", "'holiday', "),
)


def apply(tree: Path, edits: tuple[Edit, ...]) -> int:
    """How many Python files that changes."""
    for edit in edits:
        path = tree / edit.path
        text = path.read_text(encoding="utf-8")
        assert edit.old in text, edit
        path.write_text(text.replace(edit.old, edit.new + edit.old if edit.before else edit.old + edit.new))
    return len({edit.path for edit in edits if edit.path.endswith(".py")})


def run(tree: Path, *command: str) -> None:
    """With what is in the tree, and with nothing of this one."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    unused = shutil.ignore_patterns("__pycache__", "corpus", "transcripts")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=unused)
    return tmp_path


def test_a_field_of_a_report_is_named_in_four_files(tree: Path) -> None:
    assert apply(tree, REPORT) <= 4
    run(tree, "protos/generate.py")
    run(tree, "-m", "cronring.sql.generate")
    run(tree, "-m", "tests.conformance.journey", "report", "read_bytes", "7")


def test_a_reason_to_skip_is_named_in_two_files(tree: Path) -> None:
    assert apply(tree, REASON) <= 2
    run(tree, "-m", "tests.conformance.journey", "reason", "holiday", "nobody was at work")
