"""A runner's configuration. The CLI builds it from flags and `CRONRING_…` variables."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cronring.schema.keys import DEFAULT_NAMESPACE


def default_sync_children() -> int:
    """How many sync verbs of one module run at once when nothing is said: the CPUs, at least 4."""
    return max(4, os.cpu_count() or 1)


# How many async verbs of one module run at once when nothing is said. Half of what fits in the child that they share
# (cronring.child.board.SLOTS), so that a second one takes over all that waits behind a blocked loop.
ASYNC_RUNS: Final = 4_096
ASYNC_RUNS_MAX: Final = 8_192
SYNC_CHILDREN_MAX: Final = 1_024  # processes, of each module
DRAIN_TIMEOUT_MAX: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class RunnerConfig:
    """`files`: one module each. `controllers`: HOST:PORT; one that answers names the others.

    Raises ValueError, with the flag in its message.
    """

    files: tuple[Path, ...]
    controllers: tuple[str, ...]
    python: str | None = None  # the interpreter that authors' code runs under; None: this one
    namespace: str = DEFAULT_NAMESPACE
    sync_children: int = field(default_factory=default_sync_children)
    async_runs: int = ASYNC_RUNS
    drain_timeout: float = 30.0  # seconds; how long SIGTERM lets runs go on before they are cancelled

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("FILE: name at least one module's file")
        if not self.controllers:
            raise ValueError("--controllers: name at least one HOST:PORT")
        for address in self.controllers:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65_536:
                raise ValueError(f"--controllers: {address!r} is no HOST:PORT")
        if not 1 <= self.sync_children <= SYNC_CHILDREN_MAX:
            raise ValueError(f"--sync-children: {self.sync_children} is outside 1 to {SYNC_CHILDREN_MAX}")
        if not 1 <= self.async_runs <= ASYNC_RUNS_MAX:
            raise ValueError(f"--async-runs: {self.async_runs} is outside 1 to {ASYNC_RUNS_MAX}")
        if not 0 <= self.drain_timeout <= DRAIN_TIMEOUT_MAX:
            raise ValueError(f"--drain-timeout: {self.drain_timeout:g} is outside 0 to {DRAIN_TIMEOUT_MAX:g} seconds")

    @property
    def interpreter(self) -> str:
        """What children are started with."""
        return self.python or sys.executable
