"""When to read the window again, and the backup's looks for what the primary has not claimed.

A refetch is asked for every minute, after a NOTIFY, after a change of the ring, and after PostgreSQL was away. Requests
close together make one refetch, and at most one is under way.
"""

from typing import Final

from cronring.controller.core.model import Job
from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import FetchOverdue, FetchWindow
from cronring.controller.core.node.events import OverdueFetched, StoreFailed, WindowFetched
from cronring.controller.core.node.follow_ups import NONE, FollowUps, WindowAsked
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.timers import Timers
from cronring.controller.core.node.window import IN_FLIGHT, DueWindow, Stage

COALESCE_NS: Final = 20 * MS
RARELY_NS: Final = 5_000 * MS
RETRY_NS: Final = 500 * MS
OVERDUE_GAP_NS: Final = 100 * MS
AT_WORK_GAP_MAX_NS: Final = 800 * MS
OVERDUE_AT_MOST: Final = 500  # about as many as can be claimed before the next look
HERD: Final = 100  # overdue jobs of one primary


class Refetching:
    """The regular read of the window."""

    __slots__ = ("_at_ns", "_context", "_in_flight", "_lease", "_sent_ns", "_window", "fetched_once")

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._at_ns: int | None = None
        self._in_flight: tuple[int, tuple[int, ...]] | None = None
        self._sent_ns = context.now_ns
        self.fetched_once = False

    def ask_soon(self, delay_ns: int = COALESCE_NS) -> None:
        """Read it no later than in `delay_ns`."""
        at_ns = self._context.now_ns + delay_ns
        self._at_ns = at_ns if self._at_ns is None else min(self._at_ns, at_ns)

    def ask_rarely(self) -> None:
        """As `ask_soon`, but not within RARELY_NS of the last read."""
        self.ask_soon(max(COALESCE_NS, self._sent_ns + RARELY_NS - self._context.now_ns))

    def next_deadline(self) -> int | None:
        return self._at_ns if self._in_flight is None and self._context.store_ok and self._lease.valid else None

    def act(self) -> FollowUps:
        """Send it, if it is time."""
        context = self._context
        due = self._at_ns is not None and context.now_ns >= self._at_ns
        if not due or self._in_flight is not None or not context.store_ok or not self._lease.valid:
            return NONE
        self._at_ns = context.now_ns + context.jittered_ns(context.settings.refetch_interval_ms)
        slots = self._window.slots()
        # A draining controller claims nothing: others have its slots by now.
        if not slots or context.draining:
            return NONE
        request_id = context.request(self)
        self._in_flight = (request_id, slots)
        self._sent_ns = context.now_ns
        context.stats.refetches += 1
        context.effects.append(FetchWindow(request_id, slots, context.settings.window_ms))
        return (WindowAsked(),)

    def fetched(self, event: WindowFetched, sent_ns: int) -> None:
        assert self._in_flight is not None, "a window without asking"
        slots = self._in_flight[1]
        self._in_flight = None
        self.fetched_once = True
        self._window.merge(slots, event.jobs, sent_ns)

    def failed(self, event: StoreFailed) -> None:  # noqa: ARG002  how it failed makes no difference here
        self._in_flight = None
        self.ask_soon(RETRY_NS)


# docs/decisions/0006: a third of a herd's claims were for nothing
class BackupLooks:
    """FetchOverdue over the slots whose backup was called: one at a time, some time apart.

    What a primary has left overdue is claimed in its stead. But a primary may just be busy with a herd, which it claims
    in order of ids. If the herd's first job has changed by the next look, the primary is at work, and the backup leaves
    the herd to it. Otherwise both would try the same claims: a third of a burst of 10,000 was in vain. A look costs
    more the larger the herd is. So looks get rarer while the primary is at work.
    """

    __slots__ = (
        "_asked_slots",
        "_context",
        "_firsts",
        "_gap_ns",
        "_in_flight",
        "_not_before_ns",
        "_slots",
        "_stood_in",
        "_window",
    )

    def __init__(self, context: NodeContext, window: DueWindow) -> None:
        self._context = context
        self._window = window
        self._slots: dict[int, None] = {}
        self._in_flight: tuple[int, tuple[int, ...]] | None = None
        self._not_before_ns = 0
        self._gap_ns = OVERDUE_GAP_NS
        self._asked_slots = Timers()
        self._firsts: dict[int, int] = {}  # herds of the latest look: primary -> id of the first job
        self._stood_in: frozenset[int] = frozenset()  # primaries whose herds are claimed here

    def ask_soon(self, slot: int) -> None:
        """Something in this slot is due, and its owners may not know: look at it as the backup would."""
        self._asked_slots.arm(slot, self._context.now_ns + self._context.settings.backup_delay_ms * MS)

    def next_deadline(self) -> int | None:
        if not self._context.store_ok:
            return None
        waiting = self._not_before_ns if self._slots and self._in_flight is None else None
        wanted = self._asked_slots.next_us()
        return wanted if waiting is None or (wanted is not None and wanted < waiting) else waiting

    def act(self) -> None:
        context = self._context
        self._slots.update(self._window.pop_backup(context.now_us))
        self._slots.update(dict.fromkeys(self._asked_slots.pop_due(context.now_ns)))
        # Draining or in a drill: others claim what a look would find.
        if context.abstains:
            self._slots.clear()
            self._firsts.clear()
        if not self._slots or self._in_flight is not None or not context.store_ok:
            return
        if context.now_ns < self._not_before_ns:
            return
        self._not_before_ns = context.now_ns + OVERDUE_GAP_NS
        slots = tuple(sorted(self._slots))
        self._slots.clear()
        request_id = context.request(self)
        self._in_flight = (request_id, slots)
        context.stats.overdue_queries += 1
        # A tenth less than the delay after which it was called: an error of the clock must not hide what it looks for.
        delay_ms = context.settings.backup_delay_ms * 9 // 10
        context.effects.append(FetchOverdue(request_id, slots, delay_ms, OVERDUE_AT_MOST))

    def fetched(self, event: OverdueFetched) -> list[Job]:
        """Jobs to be claimed in the primary's stead."""
        assert self._in_flight is not None, "an answer without asking"
        slots, self._in_flight = self._in_flight[1], None
        lying: dict[int, list[Job]] = {}
        for job in event.jobs:
            lying.setdefault(self._window.primaries[job.slot], []).append(job)
        herds = {primary: jobs for primary, jobs in lying.items() if len(jobs) >= HERD}
        firsts, before = {primary: jobs[0].job_id for primary, jobs in herds.items()}, self._firsts
        # docs/decisions/0006: a primary whose herd has not moved on since the last look is not at work. Claims in its
        # stead move the herd on, too. So the primary stays in `_stood_in` until the herd is gone.
        self._stood_in = frozenset(
            primary for primary in herds if primary in self._stood_in or before.get(primary) == firsts[primary]
        )
        self._firsts = firsts
        # A large herd makes looks expensive: they get rarer as long as the primary is at work.
        at_work = herds.keys() - self._stood_in
        self._gap_ns = min(2 * self._gap_ns, AT_WORK_GAP_MAX_NS) if at_work & before.keys() else OVERDUE_GAP_NS
        for slot in slots:
            if self._window.primaries[slot] in at_work:
                self._asked_slots.arm(slot, self._context.now_ns + self._gap_ns)
            # There may be more than one look can bring.
            elif len(event.jobs) >= OVERDUE_AT_MOST:
                self._slots[slot] = None
        return [job for job in event.jobs if self._window.primaries[job.slot] not in at_work and self._wanted(job)]

    def _wanted(self, job: Job) -> bool:
        entry = self._window.entries.get(job.job_id)
        if entry is None or entry.stage is Stage.WAITING or entry.stage is Stage.RUNNING:
            return True
        waits_already = entry.stage in IN_FLIGHT or entry.tick == job.next_tick
        return not waits_already

    def failed(self, event: StoreFailed) -> None:  # noqa: ARG002  how it failed makes no difference here
        assert self._in_flight is not None, "a failure without asking"
        # What earlier looks saw is too old now to tell whether a primary is at work.
        self._firsts.clear()
        self._slots.update(dict.fromkeys(self._in_flight[1]))
        self._in_flight = None
        self._not_before_ns = self._context.now_ns + RETRY_NS
