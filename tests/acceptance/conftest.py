"""Folders for servers that run as another user."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    """Like tmp_path, but beside pytest's own.

    Started by root, the embedded PostgreSQL runs as another user, who must reach its folder. And pytest closes its own
    to others whenever a session starts, such as one beside this.
    """
    made = Path(tempfile.mkdtemp(prefix="test-of-dev-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    with fresh_folder() as made:
        yield made
