"""A file system of one's own that can be full: a tmpfs whose size is set while it is mounted. Needs root.

What PostgreSQL gets from it is a true ENOSPC, in the middle of whatever it does.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KIB: Final = 1024


@dataclass(frozen=True)
class Disk:
    """Mounted at `path`. `size_kib` is what it holds while it is not full."""

    path: Path
    size_kib: int

    def used_kib(self) -> int:
        found = os.statvfs(self.path)
        return (found.f_blocks - found.f_bfree) * found.f_frsize // KIB

    def fill(self, left_kib: int = 0) -> None:
        """From now on there is only so much room, which whoever writes uses up."""
        self._resize(self.used_kib() + left_kib)

    def relieve(self) -> None:
        self._resize(self.size_kib)

    def _resize(self, kib: int) -> None:
        _run("mount", "-o", f"remount,size={kib}k", str(self.path))


def can_mount() -> bool:
    """Whether this process may mount file systems."""
    with contextlib.suppress(AssertionError, OSError), mounted_disk(1):
        return True
    return False


@contextlib.contextmanager
def mounted_disk(size_mib: int) -> Iterator[Disk]:
    """Unmounted at the end, also from under whoever still uses it."""
    path = Path(tempfile.mkdtemp(prefix="cronring-disk-"))
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "cronring-test", str(path))
        try:
            yield Disk(path, size_mib * KIB)
        finally:
            _run("umount", "--lazy", str(path))
    finally:
        shutil.rmtree(path, ignore_errors=True)


def move_folder(folder: Path, disk: Path) -> None:
    """Of a stopped server: that folder lives on the disk from now on, behind a link. Owners and modes stay."""
    moved = disk / folder.name
    _run("cp", "-a", str(folder), str(moved))
    shutil.rmtree(folder)
    folder.symlink_to(moved)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
