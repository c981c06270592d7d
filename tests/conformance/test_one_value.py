"""How many Python files know of every field of a report or of a job's spec, and of every reason to skip a tick.

A copy of the tree gets a new one of each. What `make protos` and `make parameters` write is written by them.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cronring.schema.job import JobSpec
from tests.tidy.test_tidy import sources

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
    Edit("cronring/runner/pool.py", "return result._replace(metrics=told.metrics", ", read_bytes=7"),
    Edit("controller/ports/reads.py", "    memory_shared: bool | None = None\n", "    read_bytes: int | None = None\n"),
    Edit("cronring/client/model.py", "# what the verb reported\n", "    read_bytes: int\n"),
    # The wire, the table and its statements.
    Edit("protos/runner/v1/runner.proto", "  string metrics_json = 14;", "  int64 read_bytes = 15;\n", before=True),
    Edit("protos/cronring/v1/executions.proto", "  string metrics_json =", "  int64 read_bytes = 137;\n", before=True),
    Edit("sql/migrations/0001_first_release.sql", "    memory_shared  boolean,\n", "    read_bytes bigint,\n"),
    Edit("sql/migrations/0001_first_release.sql", "e.memory_peak_bytes, e.memory_shared", ", e.read_bytes"),
    Edit("sql/queries/cron_jobs.sql", ":memory_shared[?]::boolean[], ", ":read_bytes[?]::bigint[], "),
    Edit("sql/queries/cron_jobs.sql", "cpu_us, memory_peak_bytes, memory_shared, ", "read_bytes, "),
    Edit("sql/queries/cron_jobs.sql", "              r.memory_shared, ", "r.read_bytes, "),
    Edit("sql/queries/cron_jobs.sql", "memory_shared = f.memory_shared", ", read_bytes = f.read_bytes"),
    Edit("sql/queries/ends.sql", ":metrics[?]::text[], ", ":read_bytes[?]::bigint[], "),
    Edit("sql/queries/ends.sql", "              metrics, ", "read_bytes, "),
    Edit("sql/queries/ends.sql", "metrics = h.metrics", ", read_bytes = h.read_bytes"),
)
REASON: Final = (
    Edit("schema/execution.py", 'OVERLAP = "overlap"\n', '    HOLIDAY = "holiday"\n'),
    Edit(
        "controller/core/ledger/why.py",
        "_PLAIN = {  # of reasons whose sentence needs no facts\n",
        '    "holiday": "nobody was at work",\n',
    ),
    Edit("sql/migrations/0001_first_release.sql", "reason IN (", "'holiday', "),
)

MIGRATION: Final = "sql/migrations/0001_first_release.sql"
SPEC: Final = (
    # What knows it first, what a claim tells of it, and what people see.
    Edit("schema/job.py", "labels: Mapping[str, str] = MappingProxyType({})\n", '    memo: str = ""\n'),
    Edit(
        "controller/core/model.py",
        'payload: str = ""  # JSON for the verb\'s parameter; "" for none\n',
        '    memo: str = ""\n',
    ),
    Edit("controller/store/memory/rows.py", "spec.policy, spec.payload,", " spec.memo,"),
    Edit(
        "cronring/client/model.py", "labels: Mapping[str, str] = field(default_factory=dict)\n", '    memo: str = ""\n'
    ),
    # The wire, the tables, their views and statements.
    Edit(
        "protos/cronring/v1/jobs.proto", '  string on_disconnect = 7; // "stop"', "  string memo = 108;\n", before=True
    ),
    Edit("protos/cronring/v1/jobs.proto", "  string template = 42;", "  string memo = 144;\n", before=True),
    Edit(MIGRATION, "    timeout_ms     bigint NOT NULL,\n", "    memo text NOT NULL DEFAULT '',\n"),
    Edit(
        MIGRATION,
        "    timeout_ms     bigint NOT NULL DEFAULT 0 CHECK (timeout_ms >= 0),\n",
        "    memo text NOT NULL DEFAULT '',\n",
    ),
    Edit(MIGRATION, "       j.policy, j.payload, ", "j.memo, "),
    Edit(MIGRATION, "j.on_disconnect, j.policy, j.labels", ", j.memo"),
    Edit("sql/queries/job_control.sql", "timeout_ms, on_disconnect, policy, labels, ", "memo, "),
    Edit("sql/queries/job_control.sql", "policy, concurrency, pause_after, payload, labels,", " memo,"),
    Edit("sql/queries/job_control.sql", "a.labels::jsonb, ", "a.memo, "),
    Edit("sql/queries/job_control.sql", ":labels::text[], ", ":memos::text[], "),
    Edit(
        "sql/queries/cron_jobs.sql", "payload = coalesce(c.payload, j.payload),\n", "memo = coalesce(c.memo, j.memo),\n"
    ),
    Edit("sql/queries/cron_jobs.sql", ":payloads[?]::text[],\n", ":memos[?]::text[],\n"),
    Edit("sql/queries/cron_jobs.sql", "AS c (job_id, timeout_ms, on_disconnect, payload, ", "memo, "),
    Edit("sql/queries/templates.sql", "t.labels, ", "t.memo, "),
    Edit("sql/queries/templates.sql", "anchor, policy, payload, labels, ", "memo, "),
    Edit("sql/queries/templates.sql", ":payload, :labels::text::jsonb, ", ":memo, "),
    Edit("sql/queries/templates.sql", "    labels = :labels::text::jsonb, ", "memo = :memo, "),
)
# What lists five fields or more of what is wanted of a job, and of what it is wanted for. Others hold one of these.
NAMES: Final = {*JobSpec._fields, "key", "namespace", "module", "verb"}
LISTING: Final = {
    "schema/job.py": "JobSpec",
    "schema/module.py": "Verb",  # as authors write it: nothing is judged yet
    "controller/core/model.py": "Job",  # flat, as claims read tens of thousands a second
    "controller/core/orders/redeploy.py": "Existing",  # a row, as what plans lock it
    "controller/core/notify/notices.py": "NoticeJob",  # whose job it is
    "cronring/client/model.py": "JobSpec",  # in the user's types
}


def listing(path: Path) -> list[str]:
    """Classes of a file that list them."""
    text = path.read_text(encoding="utf-8")
    if len(NAMES.intersection(re.findall(r"(\w+)\s*:", text))) < 5:  # to walk through all trees takes seconds
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            fields = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            found += [node.name] if len(fields & NAMES) >= 5 else []
    return found


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


def test_a_field_of_a_spec_is_named_in_four_files(tree: Path) -> None:
    """It was in nineteen."""
    assert apply(tree, SPEC) <= 4
    run(tree, "protos/generate.py")
    run(tree, "-m", "cronring.sql.generate")
    run(tree, "-m", "tests.conformance.journey", "spec", "memo", "hear, hear")


def test_a_jobs_fields_are_listed_once_for_each_purpose() -> None:
    """There were seventeen of them."""
    written = [path for path in sources() if not path.is_relative_to(ROOT / "tests")]
    assert {str(path.relative_to(ROOT)): name for path in written for name in listing(path)} == LISTING


def test_a_reason_to_skip_is_named_in_two_files(tree: Path) -> None:
    assert apply(tree, REASON) <= 2
    run(tree, "-m", "tests.conformance.journey", "reason", "holiday", "nobody was at work")
