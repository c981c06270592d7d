"""Two distributions from one tree, installed beside packages and modules that are named as our folders are."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.tidy.test_tidy import ROOT

SDK: Final = frozenset({
    "cronring/__init__.py", "cronring/context.py", "cronring/declare.py", "cronring/jobs.py", "cronring/py.typed",
    "cronring/trace.py", "cronring/webhooks.py",
})  # fmt: skip
LINKS: Final = ("controller", "protos", "schema", "sql")

# An author's modules, named as badly as can be.
MODULE: Final = """
import controller, sql
import schema as pypis
from cronring import Context, cron

@cron("0 6 1 * *")
async def close(ctx: Context) -> None:
    pypis.Schema("my controller, my sql").validate(f"{controller.MINE}, {sql.MINE}")
"""
TEST: Final = """
import cronring.controller.main
import cronring.schema.pattern, schema

def test_the_authors_own_names(cronring_cluster):
    assert schema.Schema(int).validate(3) == 3
    cluster = cronring_cluster("closing.py", start="2026-01-01")
    cluster.run_until("2027-01-01")
    assert [each.outcome for each in cluster.executions("close")] == ["completed"] * 12
"""


class Wheels(NamedTuple):
    whole: Path
    sdk: Path

    def names(self, wheel: Path) -> set[str]:
        with zipfile.ZipFile(wheel) as archive:
            return {name for name in archive.namelist() if ".dist-info/" not in name}


def build(folder: Path, kind: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    before = set(into.iterdir()) if into.exists() else set()
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    (made,) = set(into.iterdir()) - before
    return made


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    into = tmp_path_factory.mktemp("dist")
    return Wheels(build(ROOT, "wheel", into), build(ROOT / "sdk", "wheel", into))


def in_the_tree() -> set[str]:
    """Every file that is to be installed, by the name under which it is."""
    listed = ["git", "ls-files", "cronring", *LINKS]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name if name.startswith("cronring/") else f"cronring/{name}" for name in names if (ROOT / name).is_file()}


def test_together_they_hold_the_whole_tree_and_share_no_file(wheels: Wheels) -> None:
    whole, sdk = wheels.names(wheels.whole), wheels.names(wheels.sdk)
    assert sdk == {name for name in sdk if name in SDK or name.startswith("cronring/child/")}
    assert sdk >= SDK
    assert not whole & sdk
    assert whole | sdk == in_the_tree()


def test_one_depends_on_exactly_the_other() -> None:
    whole, sdk = (
        tomllib.loads((ROOT / name).read_text())["project"] for name in ("pyproject.toml", "sdk/pyproject.toml")
    )
    assert sdk["dependencies"] == []
    assert whole["version"] == sdk["version"]
    assert f"cronring-sdk=={sdk['version']}" in whole["dependencies"]
    assert (ROOT / "sdk/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("folder", [".", "sdk"])
def test_a_wheel_of_the_sdist_is_the_trees(wheels: Wheels, folder: str, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT / folder, "sdist", tmp_path / "dist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.name.startswith("cronring"))
    again = build(unpacked, "wheel", tmp_path / "again")
    assert wheels.names(again) == wheels.names(wheels.sdk if folder == "sdk" else wheels.whole)


def installed(folder: Path, *which: Path, with_libraries: bool) -> Path:
    """The interpreter of a new venv with those wheels. Libraries are this environment's, without its cronring."""
    # With this environment's pip: one of its own would be two thirds of the time of such a test.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    options = ["-q", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, *options, *map(str, which)], check=True)
    if with_libraries:
        (site,) = folder.glob("lib/python3*/site-packages")
        # A folder that a .pth names is searched, and its own .pth files are not read: so no editable install is seen.
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def ran(python: Path, *words: str, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    done = subprocess.run(
        [str(python), *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_authors_names_and_ours_are_strangers(wheels: Wheels, tmp_path: Path) -> None:
    assert metadata.version("schema"), "PyPI's package of that name belongs to the tests' extra"
    python = installed(tmp_path / "venv", wheels.whole, wheels.sdk, with_libraries=True)
    project = tmp_path / "project"
    project.mkdir()
    for name in ("controller", "sql"):
        (project / f"{name}.py").write_text(f'MINE = "my {name}"\n')
    (project / "closing.py").write_text(MODULE)
    (project / "test_closing.py").write_text(TEST)
    where = ran(python, "-c", "import cronring.controller as ours; print(ours.__file__)", cwd=project)
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")
    assert "1 passed" in ran(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert "close" in ran(python, "-m", "cronring.cli.main", "check", "closing.py", cwd=project)
    assert "CREATE" in ran(python, "-c", "from cronring import sql; print(sql.migrations()[0].script)", cwd=tmp_path)


def test_the_sdk_alone_is_enough_for_verbs_and_webhooks(wheels: Wheels, tmp_path: Path) -> None:
    python = installed(tmp_path / "venv", wheels.sdk, with_libraries=False)
    program = """
import importlib.util
import cronring, cronring.child, cronring.webhooks
from cronring import Context, cron, every, verb
print([name for name in ("cronring.controller", "cronring.cli", "grpc", "schema") if importlib.util.find_spec(name)])
"""
    assert ran(python, "-c", program, cwd=tmp_path) == "[]\n"
