"""Webhooks as the controller's parts speak of them. Instants are int microseconds since 1970."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from cronring.controller.core.notify.delivering import Answer
from cronring.controller.ports.reads import Namespaces


class NewWebhook(NamedTuple):
    """What somebody asks for. `encrypted`: its Endpoint, in an envelope. Empty filters match everything."""

    name: str
    origin: str
    encrypted: str
    events: tuple[str, ...]
    reasons: tuple[str, ...]
    namespace: str
    module: str
    job: str
    labels: Mapping[str, str]
    created_by: str
    outcomes: tuple[str, ...] = ()


class WebhookRow(NamedTuple):
    """`origin`: scheme, host and port of its URL. The counts are of its newest 10,000 deliveries."""

    webhook_id: int
    name: str
    origin: str
    events: tuple[str, ...]
    reasons: tuple[str, ...]
    namespace: str
    module: str
    job: str
    labels: Mapping[str, str]
    created_at: int
    created_by: str
    disabled_at: int | None
    disabled_reason: str
    waiting: int
    delivered: int
    failed: int
    outcomes: tuple[str, ...]


class WebhookSeen(NamedTuple):
    """What there is to change of a webhook."""

    webhook_id: int
    enabled: bool
    disabled_reason: str


CheckWebhook = Callable[[WebhookSeen], None]
"""Is told how it stands, under its row's lock; raises to leave it so."""


class DeliveryRow(NamedTuple):
    """One event for one webhook, and how it went. `state`: waiting, delivered or failed."""

    delivery_id: int
    webhook: str
    event_id: str
    event: str
    job: str
    state: str
    attempts: int
    created_at: int
    last_try_at: int | None
    next_try_at: int | None
    ended_at: int | None
    last_status: int | None
    last_error: str
    body: str
    controller_id: str


class DeliveryFilter(NamedTuple):
    webhook: str = ""
    state: str = ""
    job: str = ""
    namespaces: Namespaces = None  # of the job


class Addressee(NamedTuple):
    """Where a webhook is, `encrypted`, for a letter that is sent at once. `now_ms`: PostgreSQL's clock, since 1970."""

    webhook_id: int
    encrypted: str
    now_ms: int
    cluster: str


class DeliveryBatch(NamedTuple):
    """A delivery that this controller is to try. `attempt` counts from 1; `age_ms`: since its first try was due."""

    delivery_id: int
    webhook_id: int
    event_id: str
    body: str
    attempt: int
    name: str
    encrypted: str
    now_ms: int
    age_ms: int


class Tried(NamedTuple):
    """How a try ended. `state` waiting: again in `wait_ms`."""

    delivery_id: int
    attempt: int
    state: str
    wait_ms: int
    status: int | None
    error: str


class BooksReading(NamedTuple):
    """What a look at the books has come to. `ours` False: another controller's turn. `more`: there is more at once.

    `wanted` False: there is no enabled webhook.
    """

    ours: bool
    added: int = 0
    more: bool = False
    wanted: bool = True


class Waiting(NamedTuple):
    """How many deliveries wait, and how many of them have failed at least once."""

    waiting: int
    retrying: int


class Webhooks(Protocol):
    """What the API asks. Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def add(self, webhook: NewWebhook) -> WebhookRow:
        """Raises cronring.controller.errors.Conflict when the name is taken."""
        ...

    async def list(self, name: str = "", *, after: str = "", limit: int | None = None) -> Sequence[WebhookRow]:
        """By name, those after one; of these the first ones."""
        ...

    async def count(self) -> int:
        """How many list has, on all pages."""
        ...

    async def get(self, name: str) -> WebhookRow:
        """Raises cronring.controller.errors.NotFound, as all below do."""
        ...

    async def remove(self, name: str, check: CheckWebhook | None = None) -> None: ...
    async def set_enabled(
        self, name: str, *, enabled: bool, reason: str, check: CheckWebhook | None = None
    ) -> WebhookRow: ...
    async def addressee(self, name: str) -> Addressee: ...
    async def deliveries(self, where: DeliveryFilter, before_id: int, limit: int) -> Sequence[DeliveryRow]: ...
    async def redeliver(self, name: str, delivery_id: int) -> int:
        """How many are tried again: one, or, for 0, all that have failed for good."""
        ...


class Outbox(Protocol):
    """What a deliverer asks. Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def claim(self, busy: Mapping[int, int], each: int, most: int) -> Sequence[DeliveryBatch]:
        """At most `most` deliveries. `busy`: how many more for these webhooks, by id; `each`: for any other one."""
        ...

    async def finish(self, tried: Sequence[Tried]) -> None: ...
    async def disable(self, webhook_id: int, reason: str) -> None: ...
    async def forget(self) -> int: ...
    async def waiting(self) -> Waiting: ...


class Sent(NamedTuple):
    """An answer, of which only the status is kept, as it may be an internal service's; and how long it took."""

    answer: Answer
    took_ms: int


class Posting(Protocol):
    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Sent:
        """Errors of the receiver, or of the network, are in the answer; it does not raise for them."""
        ...
