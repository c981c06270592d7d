"""The client's face: `client.jobs`, and its other groups of calls, each named as a service is."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from cronring.client.audit_log import AuditLogCalls
from cronring.client.channel import Failover
from cronring.client.cluster import ClusterCalls
from cronring.client.consuming import Consumer
from cronring.client.deployments import DeploymentCalls
from cronring.client.doctor import DoctorCalls
from cronring.client.drills import DrillCalls
from cronring.client.executions import ExecutionCalls
from cronring.client.identities import IdentityCalls
from cronring.client.jobs import JobCalls
from cronring.client.ledger import LedgerCalls
from cronring.client.limits import LimitCalls
from cronring.client.notifications import NotificationCalls
from cronring.client.queues import HOLD, QueueCalls
from cronring.client.statistics import StatisticsCalls
from cronring.client.templates import TemplateCalls
from cronring.trust.dialing import client_tls


class Client:
    """Speaks to whichever of the controllers answers. Use it as an async context manager, in one event loop.

    `timeout_s` bounds one try at one controller. `token`: a bearer token, which every call carries. `ca`: a file with
    the certificates of the cluster's CA (else CRONRING_CA; else the CAs of the operating system count). `server_name`:
    what a controller's certificate must be for. `insecure`: plaintext, on this machine alone (else CRONRING_INSECURE).

    Whoever makes too many calls is told so by the controllers. Then reads, and what was never begun, are tried again
    for up to a minute; `waiting` is told why, after 2 s of that.

    Raises ValueError for what doesn't go together. Every method may raise Unreachable, Unavailable, NotFound, Invalid,
    Unauthenticated, PermissionDenied or Refused, all of them ClientError.
    """

    def __init__(
        self, addresses: Sequence[str], timeout_s: float = 5.0, *, token: str = "", ca: Path | None = None,
        server_name: str = "", insecure: bool | None = None, waiting: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        tls = client_tls(addresses, ca, server_name, insecure=insecure)
        self._failover = Failover(addresses, timeout_s, tls, token, waiting)
        self.audit_log = AuditLogCalls(self._failover)
        self.cluster = ClusterCalls(self._failover)
        self.deployments = DeploymentCalls(self._failover)
        self.doctor = DoctorCalls(self._failover)
        self.drills = DrillCalls(self._failover)
        self.executions = ExecutionCalls(self._failover)
        self.identities = IdentityCalls(self._failover)
        self.jobs = JobCalls(self._failover)
        self.ledger = LedgerCalls(self._failover)
        self.limits = LimitCalls(self._failover)
        self.notifications = NotificationCalls(self._failover)
        self.queues = QueueCalls(self._failover)
        self.statistics = StatisticsCalls(self._failover)
        self.templates = TemplateCalls(self._failover)

    def consume(
        self, queue: str, *, consumer: str, namespace: str = "default", most: int = 10, hold: timedelta = HOLD,
        until_empty: bool = False,
    ) -> Consumer:  # fmt: skip
        """Messages of the queue, for `async for`: each is done when its `async with` is. See Consumer."""
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
