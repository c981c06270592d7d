"""The client's face: `client.jobs`, and its other groups of calls, each named as a service is."""

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from cronring.client.audit_log import AuditLogCalls
from cronring.client.channel import Failover
from cronring.client.cluster import ClusterCalls
from cronring.client.consuming import Consumer
from cronring.client.defaults import DefaultsCalls
from cronring.client.deployments import DeploymentCalls
from cronring.client.doctor import DoctorCalls
from cronring.client.drills import DrillCalls
from cronring.client.environment import found
from cronring.client.events import Event, EventCalls, EventPage
from cronring.client.executions import ExecutionCalls
from cronring.client.forecast import ForecastCalls
from cronring.client.history import HistoryCalls
from cronring.client.identities import IdentityCalls
from cronring.client.jobs import JobCalls
from cronring.client.ledger import LedgerCalls
from cronring.client.limits import LimitCalls
from cronring.client.model import JobEvent
from cronring.client.notifications import NotificationCalls
from cronring.client.patience import unheard
from cronring.client.queues import HOLD, QueueCalls
from cronring.client.schedules import ScheduleCalls
from cronring.client.scheduling import Scheduling
from cronring.client.sets import SetCalls
from cronring.client.statistics import StatisticsCalls
from cronring.client.templates import TemplateCalls
from cronring.client.workspaces import WorkspaceCalls
from cronring.trust.dialing import client_tls


class AsyncClient(Scheduling):
    """Speaks to whichever of the controllers answers. Use it as an async context manager, in one event loop.

    `addresses`: HOST:PORT of each. `timeout_s` bounds one try at one controller. `token`: a bearer token, which every
    call carries. `ca`: a file with the certificates of the cluster's CA (else CRONRING_CA; else the CAs of the
    operating system count). `server_name`: what a controller's certificate must be for. `insecure`: plaintext, on this
    machine alone (else CRONRING_INSECURE).

    A change is done once. It has a key, by which the next controller knows it again, should the answer be lost; then it
    is asked for during 20 s. Whoever makes too many calls is told so by the controllers: those calls are made again for
    up to a minute. `waiting` is told why a call waits, after 2 s of that.

    Raises ValueError for what doesn't go together. Every method may raise Unreachable, Unavailable, NotFound, Invalid,
    Conflict, Unauthenticated, PermissionDenied or Refused; what changes something OutcomeUnknown as well. All of them
    are ClientError.
    """

    def __init__(
        self, addresses: Sequence[str], timeout_s: float = 5.0, *, token: str = "", ca: Path | None = None,
        server_name: str = "", insecure: bool | None = None, waiting: Callable[[str], None] = unheard,
    ) -> None:  # fmt: skip
        tls = client_tls(addresses, ca, server_name, insecure=insecure)
        self._speak_by(Failover(addresses, timeout_s, tls, token, waiting))

    def _speak_by(self, failover: Failover) -> None:
        self._failover = failover
        self.audit_log = AuditLogCalls(self._failover)
        self.cluster = ClusterCalls(self._failover)
        self.defaults = DefaultsCalls(self._failover)
        self.deployments = DeploymentCalls(self._failover)
        self.doctor = DoctorCalls(self._failover)
        self.drills = DrillCalls(self._failover)
        self._events = EventCalls(self._failover)
        self.executions = ExecutionCalls(self._failover)
        self.forecast = ForecastCalls(self._failover)
        self.history = HistoryCalls(self._failover)
        self.identities = IdentityCalls(self._failover)
        self.jobs = JobCalls(self._failover)
        self.ledger = LedgerCalls(self._failover)
        self.limits = LimitCalls(self._failover)
        self.notifications = NotificationCalls(self._failover)
        self.queues = QueueCalls(self._failover)
        self.schedules = ScheduleCalls(self._failover)
        self.sets = SetCalls(self._failover)
        self.statistics = StatisticsCalls(self._failover)
        self.templates = TemplateCalls(self._failover)
        self.workspaces = WorkspaceCalls(self._failover)

    @classmethod
    def from_env(cls, timeout_s: float = 5.0, *, waiting: Callable[[str], None] = unheard) -> Self:
        """Of the controllers that the command line would ask from here, and as whom it would ask them.

        By CRONRING_CONTROLLERS, CRONRING_TOKEN or CRONRING_TOKEN_FILE, CRONRING_CA, CRONRING_SERVER_NAME and
        CRONRING_INSECURE. What they leave open comes from this user's running `cronring dev`, and from the login that
        `cronring login` keeps. Raises ValueError for what can't be; Unauthenticated for a login that has expired.
        """
        where, token, ca, insecure = found()
        return cls(where, timeout_s, token=token, ca=ca, insecure=insecure, waiting=waiting)

    def with_key(self, key: str) -> Self:
        """This client for one change that has an idempotency key of yours: `client.with_key(k).jobs.trigger(...)`.

        Whoever makes the same change with the same key again, here or in another process, is answered as before:
        within 24 hours it is done once. With another request KeyReused is raised. Calls that take no key raise Invalid.
        It has this client's connections. What only reads has no key. Raises Invalid for what is no key.
        """
        other = copy.copy(self)
        other._speak_by(self._failover.with_key(key))  # noqa: SLF001 - of the same class
        return other

    def events(self, after: str = "", namespace: str = "") -> AsyncIterator[Event]:
        """What happens to jobs, executions and the cluster, from now on, or after a position: for ever.

        When its controller goes, another goes on: nothing is left out, and nothing told twice. An event of the kind
        RESYNC says that something may be left out before it. `namespace`: only of that one. Raises Unreachable or
        Unavailable once nobody has answered for a minute.
        """
        return self._events.watch(after, namespace)

    async def poll_events(self, after: str = "", namespace: str = "") -> EventPage:
        """What has happened since a position. Without one there are no events: it only gives one."""
        return await self._events.poll(after, namespace)

    def watch_jobs(
        self, namespace: str = "", module: str = "", verb: str = "", status: str = ""
    ) -> AsyncIterator[JobEvent]:
        """As `jobs.watch`: every job that matches, then each change, for ever."""
        return self.jobs.watch(namespace, module, verb, status)

    def consume(
        self, queue: str, *, consumer: str, namespace: str = "default", most: int = 10, hold: timedelta = HOLD,
        until_empty: bool = False,
    ) -> Consumer:  # fmt: skip
        """Messages of the queue, for `async for`: each is done when its `async with` is. See Consumer."""
        self._failover.takes_no_key("consume", "a lease makes sure of each")
        return Consumer(self.queues, queue, consumer, namespace, most=most, hold=hold, until_empty=until_empty)

    @property
    def current_address(self) -> str:
        """The controller that the next call tries first."""
        return self._failover.current_address

    async def close(self) -> None:
        await self._failover.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
