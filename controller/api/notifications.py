"""cronring.v1.Notifications: webhooks, a test of one, and the log of what was delivered."""

import re
import secrets
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from cronring.controller.api.etags import check_etag, webhook_etag
from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, labels, name, note, one_of, required
from cronring.controller.api.scope import namespaces
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.notify.delivering import SECRET_BYTES, SecretError, headers, make_secret, secret_key
from cronring.controller.core.notify.endpoint import Endpoint, origin
from cronring.controller.core.notify.notices import EVENTS, trial_letter
from cronring.controller.ports.webhooks import (
    CheckWebhook,
    DeliveryFilter,
    DeliveryRow,
    NewWebhook,
    Posting,
    WebhookRow,
    Webhooks,
    WebhookSeen,
)
from cronring.controller.services.vault import Vault, encrypt_endpoint, open_endpoint
from cronring.protos.cronring.v1 import notifications_pb2 as pb2
from cronring.protos.cronring.v1 import notifications_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.execution import FAILURES, SkipReason
from cronring.schema.identity import Permission
from cronring.schema.nearest import nearest

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})", re.ASCII)
_URL_LENGTH_MAX: Final = 2_000
_STATES: Final = ("waiting", "delivered", "failed")
_REASONS: Final = tuple(reason.value for reason in SkipReason)
_WEBHOOK: Final = "a webhook's name"
_ALL_FAILED: Final = 0  # in place of a delivery's id, among ourselves


class NotificationsService(notifications_pb2_grpc.NotificationsServicer):
    """Any controller answers; any may deliver."""

    def __init__(self, webhooks: Webhooks, posting: Posting, box: TokenBox, vault: Vault) -> None:
        self._webhooks = webhooks
        self._vault = vault
        self._box = box
        self._posting = posting

    async def AddWebhook(self, request: pb2.AddWebhookRequest, context: Context) -> pb2.AddWebhookResponse:
        secret = request.secret or make_secret(secrets.token_bytes(SECRET_BYTES))
        if faults := _faults(request, secret):
            raise InvalidRequest(faults)
        row = await self._webhooks.add(
            NewWebhook(
                request.name,
                origin(request.url),
                await encrypt_endpoint(self._vault, request.name, Endpoint(request.url, secret)),
                tuple(dict.fromkeys(request.events)),
                tuple(dict.fromkeys(request.reasons)),
                name("namespace", request.namespace),
                name("module", request.module),
                name("job", request.job),
                labels("labels", request.labels),
                actor(request.requested_by, context),
                tuple(dict.fromkeys(request.outcomes)),
            )
        )
        return pb2.AddWebhookResponse(webhook=self._told(row), secret=secret)

    async def ListWebhooks(self, request: pb2.ListWebhooksRequest, context: Context) -> pb2.ListWebhooksResponse:
        size, pages = page_size(request), Pages(self._box, "ListWebhooks")
        rows = await self._webhooks.list(after=pages.text_cursor(request.page_token), limit=size + 1)
        token = pages.token(rows[size - 1].name) if len(rows) > size else ""
        return pb2.ListWebhooksResponse(
            webhooks=map(self._told, rows[:size]),
            next_page_token=token,
            total=await total(request, self._webhooks.count),
        )

    async def GetWebhook(self, request: pb2.GetWebhookRequest, context: Context) -> pb2.Webhook:
        return self._told(await self._webhooks.get(required("name", request.name, _WEBHOOK)))

    async def RemoveWebhook(self, request: pb2.RemoveWebhookRequest, context: Context) -> pb2.RemoveWebhookResponse:
        await self._webhooks.remove(required("name", request.name, _WEBHOOK), self._check(request.etag, request.name))
        return pb2.RemoveWebhookResponse()

    async def SetWebhookEnabled(self, request: pb2.SetWebhookEnabledRequest, context: Context) -> pb2.Webhook:
        by = actor(request.requested_by, context)
        why = note("reason", request.reason)
        row = await self._webhooks.set_enabled(
            required("name", request.name, _WEBHOOK),
            enabled=request.enabled,
            reason=f"by {by}: {why}" if why else f"by {by}",
            check=self._check(request.etag, request.name),
        )
        return self._told(row)

    async def TestWebhook(self, request: pb2.TestWebhookRequest, context: Context) -> pb2.TestWebhookResponse:
        to = await self._webhooks.addressee(required("name", request.name, _WEBHOOK))
        at = await open_endpoint(self._vault, request.name, to.encrypted)
        letter = trial_letter(to.cluster, request.name, to.now_ms * 1_000)
        body = letter.body.encode()
        sent = await self._posting.post(at.url, body, headers(at.secret, letter.event_id, to.now_ms // 1_000, body))
        status = sent.answer.status or 0
        return pb2.TestWebhookResponse(
            delivered=200 <= status < 300,
            status=status,
            error=sent.answer.error,
            took_ms=sent.took_ms,
            event_id=letter.event_id,
            sent=letter.body,
        )

    async def ListDeliveries(self, request: pb2.ListDeliveriesRequest, context: Context) -> pb2.ListDeliveriesResponse:
        where = DeliveryFilter(
            name("webhook", request.webhook), one_of("state", request.state, _STATES), name("job", request.job)
        )
        size = page_size(request)
        pages = Pages(self._box, "ListDeliveries", where)
        where = where._replace(namespaces=namespaces(Permission.OUTPUTS))
        rows = await self._webhooks.deliveries(where, pages.number_cursor(request.page_token), size + 1)
        token = pages.token(rows[size - 1].delivery_id) if len(rows) > size else ""
        return pb2.ListDeliveriesResponse(deliveries=map(_delivery, rows[:size]), next_page_token=token)

    async def Redeliver(self, request: pb2.RedeliverRequest, context: Context) -> pb2.RedeliverResponse:
        webhook = required("webhook", request.webhook, _WEBHOOK)
        delivery_id = _ALL_FAILED
        if request.HasField("delivery_id"):
            delivery_id = request.delivery_id
            if delivery_id < 1:
                words = f"is {delivery_id}; it must be a delivery's id; leave it out for all that have failed for good"
                raise InvalidRequest([("delivery_id", words)])
        count = await self._webhooks.redeliver(webhook, delivery_id)
        return pb2.RedeliverResponse(deliveries=count)

    def _told(self, row: WebhookRow) -> pb2.Webhook:
        message = _webhook(row)
        message.etag = webhook_etag(
            self._box, WebhookSeen(row.webhook_id, row.disabled_at is None, row.disabled_reason)
        )
        return message

    def _check(self, etag: str, webhook: str) -> CheckWebhook:
        def check(seen: WebhookSeen) -> None:
            check_etag(etag, webhook_etag(self._box, seen), f"webhook {webhook!r}")

        return check


def _faults(request: pb2.AddWebhookRequest, secret: str) -> Violations:
    faults: Violations = []
    if not _NAME.fullmatch(request.name):
        faults.append(("name", f"is {request.name[:100]!r}; it may have letters, digits, '.', '_' and '-', 63 at most"))
    if fault := _url_fault(request.url):
        faults.append(("url", fault))
    try:
        secret_key(secret)
    except SecretError as error:
        faults.append(("secret", str(error)))
    faults += _words("events", request.events, EVENTS)
    faults += _words("reasons", request.reasons, _REASONS)
    faults += _words("outcomes", request.outcomes, FAILURES)
    if request.outcomes and request.events and "failed" not in request.events:
        faults.append(("outcomes", "are those of what failed, which is not among the events; add failed, or leave it"))
    if request.reasons and request.events and "skipped" not in request.events:
        faults.append(
            ("reasons", "are those of skipped ticks, which are not among the events; add skipped, or leave it")
        )
    return faults


def _url_fault(url: str) -> str:
    """ "" for a URL that can be posted to."""
    example = "like https://example.com/hooks/cronring"
    if not url or len(url) > _URL_LENGTH_MAX or not url.isascii() or not url.isprintable() or " " in url:
        return f"must be a URL of {_URL_LENGTH_MAX} printable ASCII characters at most, {example}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"is no URL: {error}; write one {example}"
    if parts.scheme not in {"http", "https"}:
        return f"has the scheme {parts.scheme!r}; it must be https or http, {example}"
    if not host or port == 0:
        return f"names no host, or the port 0; write one {example}"
    if parts.username is not None or parts.password is not None:
        return "has a user or a password in it, which lists of webhooks would show; the signature says who sends"
    if parts.fragment:
        return "has a part after #, which is never sent; leave it out"
    return ""


def _words(field: str, words: Sequence[str], known: Sequence[str]) -> Violations:
    faults: Violations = []
    for word in words:
        if word not in known:
            close = nearest(word.lower(), known)
            hint = f"; did you mean {close!r}?" if close else ""
            faults.append((field, f"{word[:100]!r} is none of {', '.join(known)}{hint}"))
    return faults


def _webhook(row: WebhookRow) -> pb2.Webhook:
    return pb2.Webhook(
        name=row.name,
        origin=row.origin,
        events=row.events,
        reasons=row.reasons,
        namespace=row.namespace,
        module=row.module,
        job=row.job,
        labels=dict(row.labels),
        created_at=timestamp(row.created_at),
        created_by=row.created_by,
        disabled_at=timestamp(row.disabled_at),
        disabled_reason=row.disabled_reason,
        waiting=row.waiting,
        delivered=row.delivered,
        failed=row.failed,
        outcomes=row.outcomes,
    )


def _delivery(row: DeliveryRow) -> pb2.Delivery:
    return pb2.Delivery(
        id=row.delivery_id,
        webhook=row.webhook,
        event_id=row.event_id,
        event=row.event,
        job=row.job,
        state=row.state,
        attempts=row.attempts,
        created_at=timestamp(row.created_at),
        last_try_at=timestamp(row.last_try_at),
        next_try_at=timestamp(row.next_try_at),
        ended_at=timestamp(row.ended_at),
        last_status=row.last_status or 0,
        last_error=row.last_error,
        body=row.body,
        controller=row.controller_id,
    )
