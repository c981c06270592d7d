"""What `cronring dev` leaves on a disk is its user's alone: payloads and output stand in its logs and its database."""

import os
from pathlib import Path
from typing import IO


def make_private(folder: Path) -> Path:
    """The folder, and what leads to it where that isn't there; nobody else may look into it. Raises OSError."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    return folder


def append_privately(file: Path) -> IO[bytes]:
    """Opened to be written to at its end; one that was there before is closed to others. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")
