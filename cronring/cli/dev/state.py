"""What dev knows: its own processes, and what the controllers say. Fed by feed.py, drawn by display.py."""

import time
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cronring.cli.clock import wall_now
from cronring.cli.dev.happenings import Happening, OutputLine
from cronring.cli.dev.processes import DevProcess
from cronring.client.model import Audit, Cluster, Execution, Job, Member

RECENT_EXECUTIONS: Final = 60
RECENT_HAPPENINGS: Final = 30
RECENT_PRINTED: Final = 60  # lines, of all verbs


@dataclass(slots=True)
class DevState:
    """One `cronring dev`. `controllers` and `runners` are in the order they were started."""

    controllers: list[DevProcess] = field(default_factory=list)
    runners: list[DevProcess] = field(default_factory=list)
    cluster: Cluster | None = None
    jobs: list[Job] = field(default_factory=list)
    executions: dict[int, Execution] = field(default_factory=dict)  # the newest ones, by id
    books: Audit | None = None
    worst_lateness_ms: float = 0.0
    happenings: deque[tuple[datetime, Happening]] = field(default_factory=lambda: deque(maxlen=RECENT_HAPPENINGS))
    # Members are forgotten once they are dead for long; the names of what they ran are not.
    names: dict[str, str] = field(default_factory=dict)
    clock: tuple[datetime, int] | None = None  # PostgreSQL's time, and monotonic ns when it was told
    answering: bool = True
    found_by_commands: bool = False  # on other terminals, without --controllers
    console_link: str = ""  # into the console, once, while it is new
    printed: deque[OutputLine] = field(default_factory=lambda: deque(maxlen=RECENT_PRINTED))

    def now(self) -> datetime:
        """PostgreSQL's time; the own wall clock before a controller has told it."""
        if self.clock is None:
            return wall_now()
        told, at_ns = self.clock
        return told + timedelta(microseconds=(time.monotonic_ns() - at_ns) // 1000)

    def member_of(self, child: DevProcess) -> Member | None:
        """The member that this process is."""
        if self.cluster is None:
            return None
        return next((member for member in self.cluster.members if member.grpc_address == child.grpc_address), None)

    def name_of(self, identity: str) -> str:
        """The short name of a controller or runner that dev started; anybody else's id."""
        return self.names.get(identity, identity)

    def learn(self, cluster: Cluster) -> None:
        """Take over a controller's view."""
        self.cluster = cluster
        if cluster.database_time is not None:
            self.clock = (cluster.database_time, time.monotonic_ns())
        by_address = {child.grpc_address: child.name for child in self.controllers}
        for member in cluster.members:
            if member.grpc_address in by_address:
                self.names[member.id] = by_address[member.grpc_address]
        by_pid = {child.pid: child.name for child in self.runners}
        for runner in cluster.runners:
            if runner.pid in by_pid and runner.id not in self.names:
                self.names[runner.id] = by_pid[runner.pid]

    def keep(self, execution: Execution) -> None:
        """Among the newest; the oldest finished ones go."""
        self.executions[execution.id] = execution
        finished = [each for each in self.executions.values() if each.outcome is not None]
        for old in sorted(finished, key=lambda each: each.id)[:-RECENT_EXECUTIONS]:
            del self.executions[old.id]
