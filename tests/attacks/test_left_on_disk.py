"""What `cronring dev` makes is its user's alone; as root, too, whose server runs as somebody else."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronring.cli.dev.database import EmbeddedDatabase
from cronring.cli.dev.private import append_privately, make_private

OTHERS = stat.S_IRWXO | stat.S_IRWXG


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """Not pytest's: each session of that closes what leads to it anew, and root's server is another user."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("long", [False, True])
async def test_nobody_else_may_look_or_connect(own_folder: Path, long: bool) -> None:
    """A path too long for a socket has its sockets elsewhere."""
    home = make_private(own_folder / "home")
    folder = make_private(home / ("d" * (100 if long else 1)))
    database = await EmbeddedDatabase.start(folder, remove=False)
    try:
        look_around(home, folder, Path(database._runtime))
    finally:
        await database.stop(keep_folder=True, grace_s=20)


def look_around(home: Path, folder: Path, runtime: Path) -> None:
    listable = [path for path in (home, folder, runtime) if mode(path) & stat.S_IRWXO & ~stat.S_IXOTH]
    open_ones = [path for path in runtime.rglob("*") if path.is_dir() and mode(path) & stat.S_IWOTH]
    sockets = [path for place in (folder, runtime) for path in place.rglob(".s.PGSQL.*") if path.is_socket()]
    assert (listable, open_ones) == ([], [])
    assert [mode(path.parent) & OTHERS for path in sockets] == [0]
    assert {mode(folder / name) for name in ("keeper.log", "keeper.lock")} == {0o600}


def test_a_log_that_others_could_read_is_closed(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "old.log").write_text("old")
        for name in ("old.log", "new.log"):
            with append_privately(tmp_path / name) as log:
                log.write(b"new")
            assert mode(tmp_path / name) == 0o600
        made = make_private(tmp_path / "a" / "b")
        assert [mode(made), mode(made.parent)] == [0o700, 0o700]
    finally:
        os.umask(before)
    assert (tmp_path / "old.log").read_text() == "oldnew"
