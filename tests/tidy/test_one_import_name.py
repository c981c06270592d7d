"""What is installed is imported as `cronring`, and as nothing else: our folders' names are our users' as well."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.tidy.test_tidy import ROOT, sources, tracked

LINKS = ("controller", "protos", "schema", "sql")
_BARE = re.compile(rf"^\s*(from|import) ({'|'.join(LINKS)})\b", re.MULTILINE)


def test_folders_of_the_tree_are_linked_from_the_package() -> None:
    for name in LINKS:
        link = ROOT / "cronring" / name
        assert link.is_symlink(), f"{link} is a copy: where is the other one?"
        assert link.readlink() == Path("..", name)
    assert (ROOT / "sdk/cronring").readlink() == Path("../cronring")


def test_nothing_is_imported_by_a_bare_name() -> None:
    users = ROOT / "tests/acceptance/test_distributions.py"  # writes an author's modules of these names
    found = [str(path.relative_to(ROOT)) for path in sources() if path != users and _BARE.search(path.read_text())]
    found += [
        str(path.relative_to(ROOT)) for path in tracked() if path.suffix == ".pyi" and _BARE.search(path.read_text())
    ]
    assert not found, f"import cronring.{'/'.join(LINKS)}: {found}"


def test_an_editable_install_gives_no_bare_name_away(tmp_path: Path) -> None:
    """A user's own `controller.py` would get ours, or ours the user's."""
    program = f"""
import importlib.util
print([name for name in {LINKS} if name != "schema" and importlib.util.find_spec(name)])
import cronring.controller.main, cronring.sql
print(cronring.controller.main.__name__)
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "cronring.controller.main"]
