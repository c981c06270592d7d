"""Webhooks, their outbox and their log, in PostgreSQL."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import asyncpg

from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.webhooks import (
    Addressee,
    CheckWebhook,
    DeliveryBatch,
    DeliveryFilter,
    DeliveryRow,
    NewWebhook,
    Tried,
    Waiting,
    WebhookRow,
    WebhookSeen,
)
from cronring.controller.services.audit_changes import of_webhook, webhook_fields
from cronring.controller.store.notices import begin
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.sql.parameters import (
    AddWebhook,
    ClaimDeliveries,
    CountWaiting,
    CountWebhooks,
    DisableWebhook,
    EnableWebhook,
    FinishDeliveries,
    ForgetDeliveries,
    ForgetRemovedJobs,
    GetAddressee,
    ListDeliveries,
    ListWebhooks,
    LockWebhook,
    Redeliver,
    RemoveWebhook,
)

HELD_MS: Final = 30_000  # far longer than a try may take: after that, another controller tries
LOG_KEPT_MS: Final = 30 * 86_400_000
_FORGOTTEN_AT_ONCE: Final = 5_000
_HIGHEST: Final = 2**63 - 1


class PostgresWebhooks:
    """cronring.controller.ports.webhooks.Webhooks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, webhook: NewWebhook) -> WebhookRow:
        """Add a webhook, which is told of what happens from now on. Raises Conflict if the name is taken."""
        async with self._database.transaction("adding a webhook") as transaction:
            await begin(transaction)
            added = await transaction.fetch(
                AddWebhook(
                    name=webhook.name,
                    origin=webhook.origin,
                    encrypted=webhook.encrypted,
                    events=webhook.events,
                    reasons=webhook.reasons,
                    outcomes=webhook.outcomes,
                    namespace=webhook.namespace,
                    module=webhook.module,
                    job=webhook.job,
                    labels=json.dumps(dict(webhook.labels)),
                    actor=webhook.created_by,
                )
            )
            if not added:
                raise Conflict(
                    f"there is a webhook {webhook.name!r} already; take another name, or remove it: "
                    f"cronring webhook remove {webhook.name}"
                )
            await record(transaction, of_webhook(webhook.name, None, webhook_fields(webhook)))
        return await self.get(webhook.name)

    async def list(self, name: str = "", *, after: str = "", limit: int | None = None) -> Sequence[WebhookRow]:
        """Webhooks in order of names, at most `limit` after the name `after`. `name`: only that one."""
        wanted = ListWebhooks(name=name, after=after, limit=limit)
        return [_webhook(record) for record in await self._database.fetch(wanted)]

    async def count(self) -> int:
        ((count,),) = await self._database.fetch(CountWebhooks())
        return int(count)

    async def get(self, name: str) -> WebhookRow:
        """Raises NotFound."""
        rows = await self.list(name)
        if not name or not rows:
            raise _unknown(name)
        return rows[0]

    async def remove(self, name: str, check: CheckWebhook | None = None) -> None:
        """Remove it with its log and its waiting deliveries. Raises NotFound."""
        async with self._database.transaction("removing a webhook") as transaction:
            locked = await _lock(transaction, name, check)
            await transaction.fetch(RemoveWebhook(name=name))
            await record(transaction, of_webhook(name, webhook_fields(locked.webhook), None))

    async def set_enabled(
        self, name: str, *, enabled: bool, reason: str, check: CheckWebhook | None = None
    ) -> WebhookRow:
        """Idempotent. Raises NotFound."""
        async with self._database.transaction("enabling a webhook" if enabled else "disabling one") as transaction:
            if enabled:
                await begin(transaction)
            locked = await _lock(transaction, name, check)
            if enabled:
                changed = await transaction.fetch(EnableWebhook(name=name))
            else:
                changed = await transaction.fetch(DisableWebhook(webhook_id=locked.webhook_id, reason=reason))
            transaction.unchanged = not (changed or enabled)
            if changed:
                before = {"enabled": locked.enabled, "disabled_reason": locked.disabled_reason}
                after = {"enabled": enabled, "disabled_reason": "" if enabled else reason}
                await record(transaction, of_webhook(name, before, after))
        return await self.get(name)

    async def addressee(self, name: str) -> Addressee:
        """Raises NotFound."""
        records = await self._database.fetch(GetAddressee(name=name))
        if not records:
            raise _unknown(name)
        return Addressee._make(records[0])

    async def deliveries(self, where: DeliveryFilter, before_id: int, limit: int) -> Sequence[DeliveryRow]:
        """The newest first, from before `before_id` on (0: from the newest). Raises NotFound."""
        if where.webhook:
            await self.get(where.webhook)
        records = await self._database.fetch(
            ListDeliveries(
                webhook=where.webhook,
                before_id=before_id or _HIGHEST,
                state=where.state,
                job=where.job,
                namespaces=where.namespaces,
                limit=limit,
            )
        )
        return list(map(DeliveryRow._make, records))

    async def redeliver(self, name: str, delivery_id: int) -> int:
        """How many are tried again. Raises NotFound for a delivery that isn't the webhook's."""
        await self.get(name)
        async with self._database.transaction("delivering again") as transaction:
            found = await transaction.fetch(Redeliver(name=name, delivery_id=delivery_id))
            if delivery_id and not found:
                raise NotFound(f"webhook {name!r} has no delivery {delivery_id}; `cronring webhook deliveries {name}`")
            transaction.unchanged = not found
            if found:
                ids = sorted(each[0] for each in found)
                await record(transaction, of_webhook(name, None, {"redelivered": ids}))
            return len(found)


class PostgresOutbox:
    """cronring.controller.ports.webhooks.Outbox."""

    def __init__(self, database: Database, controller_id: str) -> None:
        self._database = database
        self._controller_id = controller_id

    async def claim(self, busy: Mapping[int, int], each: int, most: int) -> Sequence[DeliveryBatch]:
        """Claim deliveries to try, for HELD_MS."""
        records = await self._database.fetch(
            ClaimDeliveries(
                held_ms=HELD_MS,
                controller_id=self._controller_id,
                busy_ids=list(busy),
                busy_limits=list(busy.values()),
                each_limit=each,
                limit=most,
            )
        )
        return list(map(DeliveryBatch._make, records))

    async def finish(self, tried: Sequence[Tried]) -> None:
        """Record what became of tries. A delivery that another controller has taken over stays with that one."""
        if tried:
            await self._database.fetch(
                FinishDeliveries(
                    delivery_ids=[each.delivery_id for each in tried],
                    attempts=[each.attempt for each in tried],
                    states=[each.state for each in tried],
                    waits_ms=[each.wait_ms for each in tried],
                    statuses=[each.status for each in tried],
                    errors=[each.error for each in tried],
                )
            )

    async def disable(self, webhook_id: int, reason: str) -> None:
        await self._database.fetch(DisableWebhook(webhook_id=webhook_id, reason=reason))

    async def forget(self) -> int:
        """Delete a batch of deliveries that are too old. Returns how many."""
        await self._database.fetch(ForgetRemovedJobs())
        ((count,),) = await self._database.fetch(ForgetDeliveries(kept_ms=LOG_KEPT_MS, limit=_FORGOTTEN_AT_ONCE))
        return int(count)

    async def waiting(self) -> Waiting:
        """Counts up to 100,000."""
        return Waiting._make((await self._database.fetch(CountWaiting()))[0])


class _Locked(NamedTuple):
    """A webhook whose row is locked while its transaction lasts. `webhook`: without its secret."""

    webhook_id: int
    enabled: bool
    disabled_reason: str
    webhook: NewWebhook


async def _lock(transaction: Transaction, name: str, check: CheckWebhook | None) -> _Locked:
    """Raises NotFound."""
    records = await transaction.fetch(LockWebhook(name=name))
    if not records:
        raise _unknown(name)
    webhook_id, enabled, disabled_reason, origin, events, reasons, namespace, module, job, labels, outcomes = records[0]
    if check is not None:
        check(WebhookSeen(webhook_id, enabled, disabled_reason))
    webhook = NewWebhook(
        name, origin, "", tuple(events), tuple(reasons), namespace, module, job, json.loads(labels), created_by="",
        outcomes=tuple(outcomes),
    )  # fmt: skip
    return _Locked(webhook_id, enabled, disabled_reason, webhook)


def _webhook(record: asyncpg.Record) -> WebhookRow:
    row = WebhookRow._make(record)
    return row._replace(
        events=tuple(row.events),
        reasons=tuple(row.reasons),
        outcomes=tuple(row.outcomes),
        labels=json.loads(record["labels"]),
    )


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no webhook {name!r}; `cronring webhook list` shows them")
