"""The sync client's face: the same as AsyncClient's, for scripts, threads, notebooks and workers."""

import copy
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from cronring.client.channel import checked
from cronring.client.client import AsyncClient
from cronring.client.environment import found
from cronring.client.events import Event, EventPage
from cronring.client.model import JobEvent
from cronring.client.patience import unheard
from cronring.client.queues import HOLD
from cronring.client.sync.audit_log import AuditLogCalls
from cronring.client.sync.cluster import ClusterCalls
from cronring.client.sync.defaults import DefaultsCalls
from cronring.client.sync.deployments import DeploymentCalls
from cronring.client.sync.doctor import DoctorCalls
from cronring.client.sync.drills import DrillCalls
from cronring.client.sync.executions import ExecutionCalls
from cronring.client.sync.forecast import ForecastCalls
from cronring.client.sync.history import HistoryCalls
from cronring.client.sync.identities import IdentityCalls
from cronring.client.sync.jobs import JobCalls
from cronring.client.sync.ledger import LedgerCalls
from cronring.client.sync.limits import LimitCalls
from cronring.client.sync.notifications import NotificationCalls
from cronring.client.sync.queues import QueueCalls
from cronring.client.sync.schedules import ScheduleCalls
from cronring.client.sync.scheduling import Scheduling
from cronring.client.sync.sets import SetCalls
from cronring.client.sync.statistics import StatisticsCalls
from cronring.client.sync.templates import TemplateCalls
from cronring.client.sync.workspaces import WorkspaceCalls
from cronring.client.sync_consuming import SyncConsumer
from cronring.client.wire import KeyedWire, Wire


class Client(Scheduling):
    """AsyncClient without `await`: `with Client.from_env() as client: client.jobs.list()`.

    Parameters and errors are AsyncClient's. It has a thread of its own. So it may be used where an event
    loop runs, as in a notebook, and by several threads at once. `waiting` is called in that thread.

    Where a process forks, both can use it, if no call was under way. Else a RuntimeWarning says that the new process
    can't: its calls raise ForkedError, or gRPC hangs there. Raises ValueError for what doesn't go together.
    """

    def __init__(
        self, addresses: Sequence[str], timeout_s: float = 5.0, *, token: str = "", ca: Path | None = None,
        server_name: str = "", insecure: bool | None = None, waiting: Callable[[str], None] = unheard,
    ) -> None:  # fmt: skip
        make = partial(
            AsyncClient, addresses, timeout_s, token=token, ca=ca, server_name=server_name, insecure=insecure,
            waiting=waiting,
        )  # fmt: skip
        make()  # what doesn't go together is told now; nothing of gRPC begins before the first call
        self._speak_by(Wire(make))

    def _speak_by(self, wire: Wire) -> None:
        Scheduling.__init__(self, wire)
        self.audit_log = AuditLogCalls(self._wire)
        self.cluster = ClusterCalls(self._wire)
        self.defaults = DefaultsCalls(self._wire)
        self.deployments = DeploymentCalls(self._wire)
        self.doctor = DoctorCalls(self._wire)
        self.drills = DrillCalls(self._wire)
        self.executions = ExecutionCalls(self._wire)
        self.forecast = ForecastCalls(self._wire)
        self.history = HistoryCalls(self._wire)
        self.identities = IdentityCalls(self._wire)
        self.jobs = JobCalls(self._wire)
        self.ledger = LedgerCalls(self._wire)
        self.limits = LimitCalls(self._wire)
        self.notifications = NotificationCalls(self._wire)
        self.queues = QueueCalls(self._wire)
        self.schedules = ScheduleCalls(self._wire)
        self.sets = SetCalls(self._wire)
        self.statistics = StatisticsCalls(self._wire)
        self.templates = TemplateCalls(self._wire)
        self.workspaces = WorkspaceCalls(self._wire)

    @classmethod
    def from_env(cls, timeout_s: float = 5.0, *, waiting: Callable[[str], None] = unheard) -> Self:
        """As AsyncClient.from_env."""
        where, token, ca, insecure = found()
        return cls(where, timeout_s, token=token, ca=ca, insecure=insecure, waiting=waiting)

    def with_key(self, key: str) -> Self:
        """As AsyncClient.with_key."""
        checked(key)
        other = copy.copy(self)
        other._speak_by(KeyedWire(self._wire, key))  # noqa: SLF001 - of the same class
        return other

    def events(self, after: str = "", namespace: str = "") -> Iterator[Event]:
        """As AsyncClient.events."""
        return self._wire.each(lambda client: client.events(after, namespace))

    def poll_events(self, after: str = "", namespace: str = "") -> EventPage:
        """As AsyncClient.poll_events."""
        return self._wire.run(lambda client: client.poll_events(after, namespace))

    def watch_jobs(self, namespace: str = "", module: str = "", verb: str = "", status: str = "") -> Iterator[JobEvent]:
        """As AsyncClient.watch_jobs."""
        return self._wire.each(lambda client: client.watch_jobs(namespace, module, verb, status))

    def consume(
        self, queue: str, *, consumer: str, namespace: str = "default", most: int = 10, hold: timedelta = HOLD,
        until_empty: bool = False,
    ) -> SyncConsumer:  # fmt: skip
        """Messages of the queue, for `for`: each is done when its `with` is. See SyncConsumer."""
        self._wire.takes_no_key("consume", "a lease makes sure of each")
        return SyncConsumer(self._wire, queue, consumer, namespace, most=most, hold=hold, until_empty=until_empty)

    @property
    def current_address(self) -> str:
        """The controller that the next call tries first."""
        return self._wire.run(_current_address)

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _current_address(client: AsyncClient) -> str:
    return client.current_address
