"""Two releases beside each other: an earlier one and the next, each as a folder of packages.

A process is of one release throughout, its children too: PYTHONPATH goes before the environment's packages.
"""

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cronring import sql

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("controller", "cronring", "protos", "schema", "sql")
# The tag of the release before this tree. Nothing has been released yet: so this tree is the earlier one of the two,
# and the next is made up.
PREVIOUS: Final[str | None] = None
# What a release may do to the tables under the one before: hot tables get columns, and there is a new table.
EXPANDS: Final = """
ALTER TABLE cron_jobs ADD COLUMN made_up text NOT NULL DEFAULT '';
ALTER TABLE cron_executions ADD COLUMN made_up bigint;
CREATE TABLE cron_made_up (job_id bigint PRIMARY KEY);
"""


def earlier_and_next(folder: Path) -> tuple[Path, Path]:
    if PREVIOUS is None:
        return ROOT, made_up(folder / "next")
    return released(PREVIOUS, folder / "earlier"), ROOT


def made_up(folder: Path, script: str = EXPANDS, works_with: int | None = len(sql.migrations())) -> Path:
    """This tree's packages with one more migration."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    says = "" if works_with is None else f"-- works with: {works_with}\n"
    migration = folder / "sql" / "migrations" / f"{len(sql.migrations()) + 1:04}_made_up.sql"
    migration.write_text(script + says)
    return folder


def released(revision: str, folder: Path) -> Path:
    """The packages of that release, out of the repository's history."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", revision, *FOLDERS], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def missing(revision: str | None = PREVIOUS) -> str:
    """Why that release can't be had here; "" if it can."""
    if revision is None:
        return ""
    done = subprocess.run(["git", "cat-file", "-e", revision], cwd=ROOT, capture_output=True, check=False)
    return "" if done.returncode == 0 else f"the release {revision} is not in this folder's history (git)"


def environment_of(release: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For a process of that release. Its folder must not be ROOT, which `python -m` would put before PYTHONPATH."""
    return {**environment, "PYTHONPATH": str(release)}
