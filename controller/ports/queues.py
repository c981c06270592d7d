"""Queues of messages: what consumers and operators ask of them. Instants are int microseconds since 1970."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from cronring.controller.ports.reads import Cursor, Namespaces
from cronring.schema.keys import qualified

COUNTED_MAX: Final = 100_000  # of a queue's messages, dead letters and lanes; more are not counted


class QueueName(NamedTuple):
    namespace: str
    queue: str

    def __str__(self) -> str:
        return qualified(self.namespace, self.queue)


BEFORE_ALL: Final = QueueName("", "")


class TakenMessage(NamedTuple):
    """A message that its consumer has until `leased_until`. `delivery`: 1 for the first one. `job`: a key."""

    lease: int
    message_id: int
    workspace: str
    payload: str
    delivery: int
    job_id: int | None
    execution_id: int | None
    tick: int | None
    run_at: int
    attempt: int
    enqueued_at: int
    leased_until: int
    job: str | None


class MessageState(NamedTuple):
    """What became of a message that somebody ended: done, waits, dead, ended, gone, held or refused."""

    message_id: int
    state: str


class QueueSettings(NamedTuple):
    """`on_retry`: `block` or `pass`."""

    max_deliveries: int = 5
    on_retry: str = "block"
    dead_kept_days: int = 30
    note: str = ""


class QueueSeen(NamedTuple):
    """What is set of a queue. `changed_at` None: nobody has set anything."""

    settings: QueueSettings = QueueSettings()
    changed_at: int | None = None


# docs/decisions/0101: an etag is checked under the lock
CheckQueue = Callable[[QueueSeen], None]
"""Gets the present settings, while nobody else can change them; raises to leave them as they are."""


class QueueRow(NamedTuple):
    """Counts up to COUNTED_MAX. `consumers`: who has leases now. `changed_at` None: nobody has set anything."""

    namespace: str
    queue: str
    depth: int
    oldest_at: int | None
    lanes: int
    leased: int
    consumers: int
    dead: int
    max_deliveries: int
    on_retry: str
    dead_kept_days: int
    changed_at: int | None
    changed_by: str
    note: str

    @property
    def seen(self) -> QueueSeen:
        settings = QueueSettings(self.max_deliveries, self.on_retry, self.dead_kept_days, self.note)
        return QueueSeen(settings, self.changed_at)


class QueueFigure(NamedTuple):
    """For metrics. `oldest_ms`: for how long the oldest message is there."""

    namespace: str
    queue: str
    depth: int
    oldest_ms: int
    dead: int


class MessageRow(NamedTuple):
    """One that waits, or is worked on: then `consumer` has it until `leased_until`. The error: of its last delivery."""

    message_id: int
    workspace: str
    payload: str
    job_id: int | None
    job: str | None
    execution_id: int | None
    tick: int | None
    run_at: int
    attempt: int
    enqueued_at: int
    failures: int
    awaited: bool
    error_type: str | None
    error_message: str | None
    consumer: str
    leased_until: int | None


def place_of(row: MessageRow) -> Cursor:
    """The position in a list of messages after this one."""
    return row.run_at, row.message_id


class DeadLetterRow(NamedTuple):
    """`outcome`: how its last delivery ended, failed or lost."""

    message_id: int
    workspace: str
    payload: str
    job_id: int | None
    job: str | None
    execution_id: int | None
    tick: int | None
    attempt: int
    enqueued_at: int
    died_at: int
    failures: int
    outcome: str
    error_type: str
    error_message: str


class QueueLane(NamedTuple):
    """What a queue has of one workspace; None: of all."""

    name: QueueName
    workspace: str | None = None


class Consuming(Protocol):
    """What consumers ask: each is one statement. `namespace`: leases of other namespaces are not found.

    Raises StoreUnavailable and StoreError as controller.ports.store.Store.
    """

    async def take(self, name: QueueName, consumer: str, hold_ms: int, most: int) -> list[TakenMessage]:
        """Messages of the lanes that have waited longest. Empty: nothing is ready."""
        ...

    async def extend(self, namespace: str, lease: int, hold_ms: int) -> list[MessageState]:
        """Held or gone, for each message that the lease has given out and not ended. Empty: there is none left."""
        ...

    async def finish(self, namespace: str, lease: int, ids: Sequence[int], output: str) -> list[MessageState]: ...

    async def retry(
        self,
        namespace: str,
        lease: int,
        ids: Sequence[int],
        error: tuple[str, str],
        delay_ms: int | None,
        *,
        last: bool,
    ) -> list[MessageState]:
        """`error`: type and message. `delay_ms` None: the usual delay. `last`: don't deliver them again."""
        ...

    async def release(self, namespace: str, lease: int, ids: Sequence[int] | None) -> int:
        """Returns how many the lease had. `ids` None: all of the lease."""
        ...

    async def put(self, name: QueueName, workspace: str, payload: str, not_before: int | None) -> int:
        """Put a message into the queue. Returns its id."""
        ...

    async def ready(self, names: Sequence[QueueName]) -> list[QueueName]:
        """The queues of these that may have messages to take."""
        ...


class Queues(Consuming, Protocol):
    """What operators ask, too."""

    async def list_queues(
        self,
        name: QueueName | None = None,
        namespace: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: QueueName = BEFORE_ALL,
        limit: int = 1_000,
    ) -> list[QueueRow]:
        """By namespace and name."""
        ...

    async def count_queues(self, namespace: str | None = None, namespaces: Namespaces = None) -> int:
        """How many list_queues has, on all pages."""
        ...

    async def figures(self, queues: int, most: int) -> list[QueueFigure]:
        """Of so many queues, those that hold most; counted up to `most`."""
        ...

    async def list_messages(self, lane: QueueLane, after: Cursor, limit: int) -> list[MessageRow]:
        """The oldest first; of one workspace, as consumers get them. `after`: a `place_of`, or ()."""
        ...

    async def list_dead_letters(self, lane: QueueLane, after_id: int, limit: int) -> list[DeadLetterRow]:
        """The oldest first."""
        ...

    async def replay_dead_letters(
        self, lane: QueueLane, ids: Sequence[int] | None, limit: int, *, dry_run: bool
    ) -> list[int]:
        """Turn these dead letters, or the oldest ones, into messages again. Returns their ids."""
        ...

    async def remove_dead_letters(
        self, lane: QueueLane, ids: Sequence[int] | None, limit: int, *, dry_run: bool
    ) -> list[int]:
        """Remove these dead letters, or the oldest ones. Returns their ids."""
        ...

    async def set_queue(
        self, name: QueueName, changes: dict[str, object], by: str, check: CheckQueue | None = None
    ) -> QueueRow:
        """`changes`: fields of QueueSettings; the others stay as they are."""
        ...
