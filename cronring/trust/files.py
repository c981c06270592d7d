"""Files that hold certificates, keys and secrets."""

import os
from pathlib import Path


def write_file(file: Path, content: bytes, mode: int) -> None:
    """Whole or not at all: who reads it meanwhile has the old one. Raises OSError."""
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as opened:
        opened.write(content)
    beside.replace(file)
