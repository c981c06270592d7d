"""This release's database, and the next one's program; then the next one's database, and this release's program."""

import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from cronring import sql
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import SchemaVersionError
from cronring.controller.store.connect import connect
from cronring.controller.store.doctor import examine
from cronring.controller.store.migrate import check_version, migrate
from tests.support.releases import EXPANDS, environment_of, made_up, missing, released

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
NEXT = len(sql.migrations()) + 1


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up(tmp_path_factory.mktemp("next"))


def migrated_by(release: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cronring.cli.main", "migrate", "--database-url", url],
        cwd=release, env=environment_of(release), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


async def look_at(url: str) -> tuple[list[int], bool]:
    """Its versions, and whether the next one's table is there."""
    connection = await asyncpg.connect(url)
    try:
        versions = await connection.fetch("SELECT version FROM cronring.cronring_migrations ORDER BY version")
        table = await connection.fetchval("SELECT to_regclass('cronring.cron_made_up') IS NOT NULL")
    finally:
        await connection.close()
    return [version for (version,) in versions], table


async def test_this_program_goes_on_where_the_next_one_has_migrated(later: Path, database_url: str) -> None:
    done = migrated_by(later, database_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"applied {NEXT:04} made_up" in done.stdout
    assert await look_at(database_url) == ([*range(1, NEXT + 1)], True)
    assert await migrate(database_url) == 0
    connection = await connect(database_url, "test")
    try:
        await check_version(connection)
        for statement in sql.statements().values():
            await connection.prepare(statement)
    finally:
        await connection.close()
    findings = {finding.check: finding for finding in (await examine(database_url, ClusterSettings())).findings}
    assert f"version {NEXT}, newer than this program's {NEXT - 1}" in findings["schema"].seen
    assert migrated_by(later, database_url).returncode == 0


async def test_a_next_one_that_does_not_say_so_leaves_this_program_behind(tmp_path: Path, database_url: str) -> None:
    assert migrated_by(made_up(tmp_path, works_with=None), database_url).returncode == 0
    with pytest.raises(SchemaVersionError, match=f"at version {NEXT}, this program only knows {NEXT - 1}: upgrade it"):
        await migrate(database_url)


async def test_a_migration_that_was_changed_once_applied_is_refused(
    later: Path, tmp_path: Path, database_url: str
) -> None:
    assert migrated_by(later, database_url).returncode == 0
    done = migrated_by(made_up(tmp_path, EXPANDS + "-- changed\n"), database_url)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert f"migration {NEXT} (made_up) of this database is not the one of this program" in said


async def test_a_next_migration_that_fails_leaves_this_program_its_database(tmp_path: Path, database_url: str) -> None:
    done = migrated_by(made_up(tmp_path, EXPANDS + "SELECT 1 / 0;\n"), database_url)
    assert done.returncode == 1
    assert "division by zero" in done.stderr
    assert await look_at(database_url) == ([*range(1, NEXT)], False)
    assert await migrate(database_url) == 0


@pytest.mark.skipif(bool(missing("HEAD")), reason=missing("HEAD"))
def test_a_release_comes_from_history(tmp_path: Path, postgres_name: str) -> None:
    """As the one before this will, once there is one."""
    told = "import cronring; from cronring import sql; print(cronring.__file__, sql.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", told], cwd=tmp_path, env=environment_of(released("HEAD", tmp_path)),
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert [Path(file).is_relative_to(tmp_path) for file in where] == [True, True]
