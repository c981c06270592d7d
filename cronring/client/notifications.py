"""Calls about webhooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import notifications_pb2 as pb2
from cronring.protos.cronring.v1.notifications_pb2_grpc import NotificationsStub

_LIST: Final = "`cronring webhook list`"
_ANSWER_S = 15.0  # a test waits for its receiver


@dataclass(frozen=True, slots=True)
class Webhook:
    """`origin`: scheme, host and port of its URL. Empty filters match everything.

    The counts are of its newest 10,000 deliveries.
    """

    name: str
    origin: str
    events: tuple[str, ...]
    reasons: tuple[str, ...]
    namespace: str
    module: str
    job: str
    labels: dict[str, str]
    created_at: datetime | None
    created_by: str
    disabled_at: datetime | None
    disabled_reason: str
    waiting: int
    delivered: int
    failed: int
    outcomes: tuple[str, ...]
    etag: str = ""  # of what it is, and whether it is enabled: for `remove` and `set_enabled`


@dataclass(frozen=True, slots=True)
class Added:
    """`secret` is never told again, and `repr` doesn't show it."""

    webhook: Webhook
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tested:
    """What came of an event "test". `status` 0: there was no answer, and `error` says why."""

    delivered: bool
    status: int
    error: str
    took_ms: int
    event_id: str
    sent: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one webhook. `state`: waiting, delivered or failed."""

    id: int
    webhook: str
    event_id: str
    event: str
    job: str
    state: str
    attempts: int
    created_at: datetime | None
    last_try_at: datetime | None
    next_try_at: datetime | None
    ended_at: datetime | None
    last_status: int
    last_error: str
    body: str
    controller: str


Webhooks = list[Webhook]
Deliveries = list[Delivery]


class NotificationCalls:
    """Add, list, get, remove, enable, disable, test, deliveries, redeliver."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def add(
        self,
        name: str,
        url: str,
        *,
        secret: str = "",
        events: Sequence[str] = (),
        reasons: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        namespace: str = "",
        module: str = "",
        job: str = "",
        labels: Mapping[str, str] | None = None,
        by: str = "",
    ) -> Added:
        """Not idempotent: a second one of the same name is refused (Conflict). Raises Invalid, OutcomeUnknown."""
        request = pb2.AddWebhookRequest(
            name=name, url=url, secret=secret, events=events, reasons=reasons, outcomes=outcomes,
            namespace=namespace, module=module, job=job, labels=labels, requested_by=by,
        )  # fmt: skip
        timeout = self._failover.timeout_s
        answer = await self._failover.change(
            lambda channel: NotificationsStub(channel).AddWebhook(request, timeout=timeout),
            f"`cronring webhook list`; if {name!r} is there, its secret is lost: remove it, and add it again",
            secret=True,
        )
        return Added(_webhook(answer.webhook), answer.secret)

    async def list(self) -> Webhooks:
        """By name."""
        timeout = self._failover.timeout_s

        async def fetch(page_size: int, token: str) -> tuple[Webhooks, str]:
            request = pb2.ListWebhooksRequest(page_size=page_size, page_token=token)
            answer = await self._failover.unary(
                lambda channel: NotificationsStub(channel).ListWebhooks(request, timeout=timeout)
            )
            return [_webhook(each) for each in answer.webhooks], answer.next_page_token

        return await follow(fetch, None)

    async def get(self, name: str) -> Webhook:
        """Raises NotFound, as all below do."""
        timeout, request = self._failover.timeout_s, pb2.GetWebhookRequest(name=name)
        return _webhook(
            await self._failover.unary(lambda channel: NotificationsStub(channel).GetWebhook(request, timeout=timeout))
        )

    async def remove(self, name: str, *, etag: str = "") -> None:
        """With its log. `etag`: only if it still has this one, else EtagMismatch is raised."""
        timeout, request = self._failover.timeout_s, pb2.RemoveWebhookRequest(name=name, etag=etag)
        await self._failover.change(
            lambda channel: NotificationsStub(channel).RemoveWebhook(request, timeout=timeout), _LIST
        )

    async def set_enabled(self, name: str, *, enabled: bool, reason: str = "", by: str = "", etag: str = "") -> Webhook:
        """Idempotent. `etag`: as of `remove`."""
        timeout = self._failover.timeout_s
        request = pb2.SetWebhookEnabledRequest(name=name, enabled=enabled, reason=reason, requested_by=by, etag=etag)
        return _webhook(
            await self._failover.change(
                lambda channel: NotificationsStub(channel).SetWebhookEnabled(request, timeout=timeout),
                _LIST,
                repeatable=not etag,
            )
        )

    async def test(self, name: str) -> Tested:
        """Sends one now, and waits for the answer."""
        request = pb2.TestWebhookRequest(name=name)
        answer = await self._failover.change(
            lambda channel: NotificationsStub(channel).TestWebhook(request, timeout=_ANSWER_S), "its receiver"
        )
        return Tested(answer.delivered, answer.status, answer.error, answer.took_ms, answer.event_id, answer.sent)

    async def deliveries(
        self, webhook: str = "", state: str = "", job: str = "", limit: int | None = None
    ) -> Deliveries:
        """The newest first."""

        async def fetch(page_size: int, token: str) -> tuple[Deliveries, str]:
            request = pb2.ListDeliveriesRequest(
                page_size=page_size, page_token=token, webhook=webhook, state=state, job=job
            )
            answer = await self._failover.unary(
                lambda channel: NotificationsStub(channel).ListDeliveries(request, timeout=self._failover.timeout_s)
            )
            return [_delivery(each) for each in answer.deliveries], answer.next_page_token

        return await follow(fetch, limit)

    async def redeliver(self, webhook: str, delivery_id: int | None = None) -> int:
        """How many are tried again: this one, or, for None, all that have failed for good."""
        timeout = self._failover.timeout_s
        request = pb2.RedeliverRequest(webhook=webhook, delivery_id=delivery_id)
        answer = await self._failover.change(
            lambda channel: NotificationsStub(channel).Redeliver(request, timeout=timeout),
            f"`cronring webhook deliveries {webhook}`",
        )
        return answer.deliveries


def _webhook(message: pb2.Webhook) -> Webhook:
    return Webhook(
        message.name, message.origin, tuple(message.events), tuple(message.reasons), message.namespace, message.module,
        message.job, dict(sorted(message.labels.items())), convert.instant(message.created_at), message.created_by,
        convert.instant(message.disabled_at), message.disabled_reason, message.waiting, message.delivered,
        message.failed, tuple(message.outcomes), message.etag,
    )  # fmt: skip


def _delivery(message: pb2.Delivery) -> Delivery:
    return Delivery(
        message.id, message.webhook, message.event_id, message.event, message.job, message.state, message.attempts,
        convert.instant(message.created_at), convert.instant(message.last_try_at), convert.instant(message.next_try_at),
        convert.instant(message.ended_at), message.last_status, message.last_error, message.body, message.controller,
    )  # fmt: skip
