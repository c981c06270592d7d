"""A runner's configuration. The CLI builds it from flags and `CRONRING_…` variables."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cronring.runner.run_as import RunAs
from cronring.schema.address import is_loopback
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.spiffe import DEFAULT_CLUSTER, check_cluster


def default_sync_children() -> int:
    """How many sync verbs of one module run at once when nothing is said: the CPUs, at least 4."""
    return max(4, os.cpu_count() or 1)


# How many async verbs of one module run at once when nothing is said. Half of what fits in the child that they share
# (cronring.child.board.SLOTS), so that a second one takes over all that waits behind a blocked loop.
ASYNC_RUNS: Final = 4_096
ASYNC_RUNS_MAX: Final = 8_192
SYNC_CHILDREN_MAX: Final = 1_024  # processes, of each module
DRAIN_TIMEOUT_MAX: Final = 86_400.0
STDIN: Final = Path("-")  # in place of a file


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
    certs: Path | None = None  # a folder with ca.crt, tls.crt and tls.key; `controllers` are --peer addresses then
    join_token_file: Path | None = None  # a secret, "-" for stdin; `controllers` are --grpc addresses then
    ca: Path | None = None  # the cluster's CA, to enroll
    insecure: bool = False  # plaintext, to this machine alone
    cluster: str = DEFAULT_CLUSTER
    run_as: RunAs | None = None  # whom verbs run as; None: the runner's own user

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("FILE: name at least one module's file")
        if not self.controllers:
            raise ValueError("--controllers: name at least one HOST:PORT")
        for address in self.controllers:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65_536:
                raise ValueError(f"--controllers: {address!r} is no HOST:PORT")
        self._check_trust()
        if not 1 <= self.sync_children <= SYNC_CHILDREN_MAX:
            raise ValueError(f"--sync-children: {self.sync_children} is outside 1 to {SYNC_CHILDREN_MAX}")
        if not 1 <= self.async_runs <= ASYNC_RUNS_MAX:
            raise ValueError(f"--async-runs: {self.async_runs} is outside 1 to {ASYNC_RUNS_MAX}")
        if not 0 <= self.drain_timeout <= DRAIN_TIMEOUT_MAX:
            raise ValueError(f"--drain-timeout: {self.drain_timeout:g} is outside 0 to {DRAIN_TIMEOUT_MAX:g} seconds")

    def _check_trust(self) -> None:
        check_cluster(self.cluster)
        ways = [self.certs is not None, self.join_token_file is not None, self.insecure]
        if sum(ways) != 1:
            raise ValueError(
                "--certs, --join-token-file, --insecure: give one of them. `cronring runner-grant create` makes a join"
                " token; with it, give --ca FILE as well. --insecure is for controllers on this machine"
            )
        if self.join_token_file is not None and self.ca is None:
            raise ValueError("--ca: give it beside --join-token-file; a secret is sent to nobody who isn't known")
        far = next((each for each in self.controllers if not is_loopback(each.rpartition(":")[0])), None)
        if self.insecure and far is not None:
            raise ValueError(f"--insecure: {far} is another machine; give --certs DIR or --join-token-file FILE")

    @property
    def interpreter(self) -> str:
        """What children are started with."""
        return self.python or sys.executable
