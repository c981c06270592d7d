"""The notifier: reads what is new in the books, and writes into the outbox what webhooks want to know.

One transaction reads, writes and moves the position. So a controller that dies in between has done nothing, and the
next one does all of it. Executions and skips are followed by their ids, as watches follow them
(controller/store/changes.py).
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

import asyncpg

from cronring.controller.core.notify.notices import (
    NEAR_PERCENT,
    Failing,
    GivenUp,
    Letter,
    Notice,
    NoticeJob,
    NoticeRun,
    Orphaning,
    OverdueTick,
    Passed,
    Paused,
    Subscription,
    addressed,
    decide,
    orphaning_notice,
    overdue,
    paused,
    skipped,
    timeout_near,
)
from cronring.controller.ports.webhooks import BooksReading
from cronring.controller.store.changes import SeenRow, Stream, beginning, pack, unpack
from cronring.controller.store.pool import Database, Transaction
from cronring.schema.keys import SLOTS
from cronring.schema.policy_read import LATE_AFTER_LEAST_MS
from cronring.sql.parameters import (
    AddDeliveries,
    AddRetrying,
    ClearFailing,
    FindOverdue,
    FindOverdueByDefault,
    FollowExecutions,
    FollowSkips,
    ForgetNotices,
    GetFailing,
    GetLastIds,
    GetNotifierTurn,
    GetRetriesGivenUp,
    GetSubscriptions,
    GetUnfinishedIds,
    LeaveNotifier,
    LockNotifier,
    NotifyWebhooks,
    SaveNotifier,
    SeedFailing,
    SetFailing,
    SetLate,
    SetPosition,
    TakeNotifier,
    TakeOrphanings,
    TakePauses,
)

LEASE_MS: Final = 3_000
_AT_ONCE: Final = 5_000  # the same limit as in the Follow... statements, so that a look ends long before any timeout
_ADDED_AT_ONCE: Final = 2_000
_OVERDUE_AT_ONCE: Final = 5_000
# For the cluster's default `late_after`, each look takes so many slots, and all slots within four seconds.
_SLOTS_AT_ONCE: Final = SLOTS // 8
_RUN_FIELDS: Final = NoticeRun._fields[1:]
_ORPHANING_FIELDS: Final = Orphaning._fields[1:]
_SUBJECT_FIELDS: Final = ("job_id", "key", "namespace", "module", "verb", "labels", "policy")


class NotifierPosition(NamedTuple):
    """How far the books have been read. `oldest`: no execution that is known to run has a tick before it.

    `looked_at`: when, by PostgreSQL's clock. Executions that came near their timeouts until then have been told.
    """

    executions: Stream
    oldest: int
    skips: Stream
    looked_at: int

    def text(self) -> str:
        # Without the streams' ticks: the statement asks by `oldest`.
        parts = [pack(self.executions)[:3], self.oldest, pack(self.skips)[:3], self.looked_at]
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> "NotifierPosition":
        """What `text` gave."""
        executions, oldest, skips, looked_at = json.loads(text)
        return cls(unpack(executions), oldest, unpack(skips), looked_at)


async def begin(transaction: Transaction) -> None:
    """Begin to read the books, if nobody reads them yet. Part of adding or enabling a webhook."""
    ((position, _, now),) = await transaction.fetch(LockNotifier())
    if position:
        return
    # The highest ids come first: executions that begin between the two statements lie above them, and are read as new.
    execution_id, skip_id, _ = (await transaction.fetch(GetLastIds()))[0]
    unfinished = [record[0] for record in await transaction.fetch(GetUnfinishedIds())]
    position = NotifierPosition(beginning(execution_id, unfinished), 0, beginning(skip_id, []), now)
    await transaction.fetch(SeedFailing())
    await transaction.fetch(SetPosition(position=position.text()))
    await transaction.fetch(NotifyWebhooks())


class Look(NamedTuple):
    """The parameters of one look. `late_after_ms`: the cluster's default, 0 for none. `slots`: where to look for ticks
    late by it.
    """

    now: int
    hard_grace_ms: int
    late_after_ms: int
    slots: Sequence[int]


class PostgresNotifier:
    """Reads the books when it is this controller's turn. Both methods raise StoreUnavailable or StoreError.

    `hard_grace_ms`: from an execution's timeout to its hard timeout; its row has only the latter. `console_url`: where
    browsers find the console, for links.
    """

    def __init__(self, database: Database, controller_id: str, hard_grace_ms: int, console_url: str) -> None:
        self._database = database
        self._console_url = console_url
        self._controller_id = controller_id
        self._hard_grace_ms = hard_grace_ms
        self._slot = 0  # where the next look for what is late by default begins
        self._ours = False

    async def read(self) -> BooksReading:
        """One look. A controller whose turn it isn't asks by one statement, without a transaction or a lock."""
        if not self._ours:
            ((wanted, ours),) = await self._database.fetch(GetNotifierTurn(controller_id=self._controller_id))
            if not ours:
                return BooksReading(ours=False, wanted=wanted)
        reading = await self._read()
        self._ours = reading.ours and reading.wanted
        return reading

    async def _read(self) -> BooksReading:
        async with self._database.transaction("reading the books for webhooks") as transaction:
            # The row's lease decides whose turn it is: this controller may not know yet that another has taken over.
            taken = await transaction.fetch(TakeNotifier(controller_id=self._controller_id))
            if not taken:
                return BooksReading(ours=False)
            position, cluster, now, late_after_ms = taken[0]
            subscriptions = {record[0]: _subscription(record) for record in await transaction.fetch(GetSubscriptions())}
            if not subscriptions:
                await transaction.fetch(ForgetNotices())
                return BooksReading(ours=True, wanted=False)
            # What is found, what is to be sent, and how far was read, are one transaction. If it is lost, the next look
            # finds all of it again under the same event ids: nothing is left out, and nothing is told twice.
            before = NotifierPosition.of(position)
            slots = range(self._slot, self._slot + _SLOTS_AT_ONCE)
            look = Look(now, self._hard_grace_ms, late_after_ms, slots)
            position, notices, more = await _follow(transaction, before, look)
            added = await _add(transaction, addressed(cluster, subscriptions, notices, self._console_url))
            await transaction.fetch(
                SaveNotifier(controller_id=self._controller_id, lease_ms=LEASE_MS, position=position.text())
            )
        self._slot = slots.stop % SLOTS
        return BooksReading(True, added, more)

    async def leave(self) -> None:
        """Another controller goes on at once."""
        await self._database.fetch(LeaveNotifier(controller_id=self._controller_id))


async def _follow(
    transaction: Transaction, position: NotifierPosition, look: Look
) -> tuple[NotifierPosition, list[Notice], bool]:
    executions, oldest, notices, more = await _executions(transaction, position, look)
    skips, passed, more_skips = await _skips(transaction, position.skips, look.now)
    notices += passed
    notices += [paused(Paused(_subject(row), row["paused_at"], row["failures"], row["note"]))
                for row in await transaction.fetch(TakePauses())]  # fmt: skip
    orphanings = await transaction.fetch(TakeOrphanings())
    changes = (Orphaning(_subject(row), *(row[name] for name in _ORPHANING_FIELDS)) for row in orphanings)
    notices += [orphaning_notice(each) for each in changes]
    notices += await _overdue(transaction, look)
    more = more or more_skips or len(orphanings) >= _AT_ONCE
    return NotifierPosition(executions, oldest, skips, look.now), notices, more


async def _executions(
    transaction: Transaction, position: NotifierPosition, look: Look
) -> tuple[Stream, int, list[Notice], bool]:
    before = position.executions
    # Before new executions are read: retries that this look adds are asked about in the next look.
    given_up = [GivenUp(_run(row), row["last_success"]) for row in await transaction.fetch(GetRetriesGivenUp())]
    firsts, lasts = before.gaps()
    head, *rows = await transaction.fetch(
        FollowExecutions(
            after_execution_id=before.highest,
            execution_ids=sorted(before.unfinished),
            from_tick=position.oldest,
            first_execution_ids=firsts,
            last_execution_ids=lasts,
            looked_at=position.looked_at,
            near_percent=NEAR_PERCENT,
            hard_grace_ms=look.hard_grace_ms,
            late_after_ms=look.late_after_ms,
        )
    )
    # docs/decisions/0053: gaps stay open, as an id is drawn long before its row can be seen.
    ids, ended = head["ids"] or [], frozenset(head["ended"] or [])
    after, told = before.after((SeenRow(row_id, row_id, row_id in ended) for row_id in ids), head["database_now"])
    news = frozenset(told)
    runs = [_run(row) for row in rows if row["execution_id"] in news]
    job_ids = sorted({run.job.job_id for run in runs} | {run.job.job_id for run, _ in given_up})
    failing = {}
    if job_ids:
        failing = {row[0]: Failing(row[1], row[2]) for row in await transaction.fetch(GetFailing(job_ids=job_ids))}
    decided = decide(runs, given_up, failing, look.late_after_ms * 1_000)
    await _remember(transaction, decided.failing, decided.retrying)
    oldest: int = position.oldest if head["oldest"] is None else head["oldest"]
    near = [timeout_near(_run(row), row["near_timeout_ms"]) for row in rows if row["near_timeout_ms"] is not None]
    more = after.highest - before.highest >= _AT_ONCE
    return after, oldest, near + decided.notices, more


async def _remember(
    transaction: Transaction, failing: dict[int, Failing | None], retrying: Sequence[NoticeRun]
) -> None:
    fails = {job_id: state for job_id, state in failing.items() if state is not None}
    if fails:
        await transaction.fetch(
            SetFailing(
                job_ids=list(fails),
                execution_ids=[state.execution_id for state in fails.values()],
                ticks=[state.tick for state in fails.values()],
            )
        )
    well = [job_id for job_id, state in failing.items() if state is None]
    if well:
        await transaction.fetch(ClearFailing(job_ids=well))
    if retrying:
        await transaction.fetch(
            AddRetrying(
                job_ids=[run.job.job_id for run in retrying],
                ticks=[run.tick for run in retrying],
                attempts=[run.attempt for run in retrying],
            )
        )


async def _skips(transaction: Transaction, before: Stream, now: int) -> tuple[Stream, list[Notice], bool]:
    firsts, lasts = before.gaps()
    rows = await transaction.fetch(
        FollowSkips(after_skip_id=before.highest, first_skip_ids=firsts, last_skip_ids=lasts)
    )
    after, _ = before.after((SeenRow(row["id"], row["id"], True) for row in rows), now)
    notices = [
        skipped(Passed(_subject(row), row["reason"], row["first_tick"], row["last_tick"], row["ticks"],
                       row["decided_at"]))
        for row in rows
    ]  # fmt: skip
    return after, notices, len(rows) >= _AT_ONCE


async def _overdue(transaction: Transaction, look: Look) -> list[Notice]:
    late_after_ms = look.late_after_ms
    rows = await transaction.fetch(FindOverdue(overdue_ms=LATE_AFTER_LEAST_MS, limit=_OVERDUE_AT_ONCE))
    if late_after_ms:
        asked = FindOverdueByDefault(slots=look.slots, late_after_ms=late_after_ms, limit=_OVERDUE_AT_ONCE)
        rows = [*rows, *await transaction.fetch(asked)]
    ticks = [(row, OverdueTick(_subject(row), row["tick"], row["run_at"])) for row in rows]
    found = [(row, overdue(tick, row["database_now"], late_after_ms * 1_000)) for row, tick in ticks]
    late = [(row, notice) for row, notice in found if notice is not None]
    if late:
        await transaction.fetch(
            SetLate(job_ids=[row["job_id"] for row, _ in late], ticks=[row["tick"] for row, _ in late])
        )
    return [notice for _, notice in late]


async def _add(transaction: Transaction, letters: list[tuple[int, Letter]]) -> int:
    """Add letters to the outbox. Returns how many are new."""
    added = 0
    for start in range(0, len(letters), _ADDED_AT_ONCE):
        batch = letters[start : start + _ADDED_AT_ONCE]
        told = await transaction.fetch(
            AddDeliveries(
                webhook_ids=[webhook_id for webhook_id, _ in batch],
                event_ids=[letter.event_id for _, letter in batch],
                events=[letter.event for _, letter in batch],
                jobs=[letter.job for _, letter in batch],
                bodies=[letter.body for _, letter in batch],
            )
        )
        added += len(told)
    return added


def _subscription(record: asyncpg.Record) -> Subscription:
    _, events, reasons, namespace, module, job, labels, since, outcomes = record
    return Subscription(
        tuple(events), tuple(reasons), namespace, module, job, json.loads(labels), since, tuple(outcomes)
    )


def _subject(record: asyncpg.Record) -> NoticeJob:
    subject = NoticeJob._make(record[name] for name in _SUBJECT_FIELDS)
    return subject._replace(labels=json.loads(record["labels"]))


def _run(record: asyncpg.Record) -> NoticeRun:
    return NoticeRun(_subject(record), *(record[name] for name in _RUN_FIELDS))
