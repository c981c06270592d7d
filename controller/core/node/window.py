"""The jobs of this controller's slots that are due soon, with a timer for each.

The timer of a primary rings at run_at. The backup's rings a little later, to see whether the primary has left
something. If another controller runs a job, the window foresees the job's next tick from its schedule.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Execution, Job
from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.timers import ALL, Timers
from cronring.schema.keys import SLOTS
from cronring.schema.timetable import PlannedTick


class Duty(IntEnum):
    """What a controller owes a slot."""

    NONE = 0
    PRIMARY = 1
    BACKUP = 2


class Stage(IntEnum):
    """Where an entry is."""

    WAITING = 0  # its timer is armed, if it has anything to wait for
    READY = 1  # due; goes into the next claim
    CLAIMING = 2  # in a claim under way
    RUNNING = 3  # this controller holds its execution, on a connected runner
    AWAITS_RUNNER = 4  # due, but no runner takes it
    SKIPPING = 5  # in a SkipTicks under way
    AWAITS_LIMIT = 6  # due, but its module or its namespace runs as many as it may
    AWAITS_PLACE = 7  # due, but its runners have no place for it


POPPED_AT_ONCE: Final = 256  # of a herd
IN_FLIGHT: Final = (Stage.CLAIMING, Stage.SKIPPING)
DUE: Final = (Stage.READY, Stage.AWAITS_LIMIT)
OF_RUNNERS: Final = (Stage.AWAITS_RUNNER, Stage.AWAITS_PLACE)


class Entry:
    """One job. `tick` and `run_at` are of the tick to claim next."""

    __slots__ = (
        "changed_ns",
        "hosted_us",
        "job",
        "limit",
        "limit_serial",
        "own_until_ns",
        "queued",
        "retries",
        "run_at",
        "stage",
        "tick",
        "turn",
        "watched_until_ns",
    )

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tick = job.next_tick
        self.run_at = job.next_run_at
        self.stage = Stage.WAITING
        self.changed_ns = -1  # when an answer about this very job last came
        self.own_until_ns = -1  # this controller is its primary until then, whatever the ring says
        self.watched_until_ns = -1  # created here: at least its backup until then (all have refetched)
        self.retries = 0
        self.limit: int | None = None  # the limit that last had no place for it
        self.limit_serial = 0  # see Limiting
        self.turn = 0  # order among those that are tried together
        self.queued = 0  # see Places
        self.hosted_us = 0  # when its last runner left while it waited for a place: its grace counts from then

    @property
    def planned(self) -> PlannedTick | None:
        """The tick to claim next, and when."""
        return None if self.tick is None or self.run_at is None else PlannedTick(self.tick, self.run_at)

    @property
    def rank_us(self) -> int:
        """If places are short, the lowest rank goes first. One level of priority is worth one second of waiting.

        So a tick of priority p can pass one of priority q only if it is due less than (p - q) seconds later.
        """
        return (self.run_at or 0) - ticks.priority(self.job) * ticks.SECOND_US


class DueWindow:
    """Entries by job id, and their timers."""

    __slots__ = ("_backup", "_context", "_primary", "_slots", "duties", "entries", "primaries", "ranked")

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.entries: dict[int, Entry] = {}
        self.duties: Sequence[Duty] = [Duty.NONE] * SLOTS
        self.primaries: Sequence[int] = [0] * SLOTS  # by slot: equal numbers mean the same primary
        self.ranked = False  # there was a job with a priority
        self._slots: tuple[int, ...] = ()
        self._primary = Timers()
        self._backup = Timers()

    def duty(self, entry: Entry) -> Duty:
        now_ns = self._context.now_ns
        if entry.own_until_ns > now_ns:
            return Duty.PRIMARY
        duty = self.duties[entry.job.slot]
        return Duty.BACKUP if duty is Duty.NONE and entry.watched_until_ns > now_ns else duty

    def slots(self) -> tuple[int, ...]:
        """The slots of which this controller is primary or backup, ascending."""
        return self._slots

    def set_duties(self, duties: Sequence[Duty], primaries: Sequence[int]) -> None:
        """The ring changed. Forget entries of lost slots, except those with a claim or a skip under way."""
        before, self.duties, self.primaries = self.duties, duties, primaries
        self._slots = tuple(slot for slot, duty in enumerate(duties) if duty)
        for entry in list(self.entries.values()):
            slot = entry.job.slot
            if before[slot] == duties[slot]:
                continue
            if self.duty(entry) is Duty.NONE and entry.stage not in IN_FLIGHT:
                self.forget(entry.job.job_id)
            elif entry.stage is Stage.WAITING:
                self._arm(entry)

    def next_us(self, *, only_backup: bool) -> int | None:
        """When the next timer rings, in PostgreSQL's time. `only_backup`: of the backup's timers alone."""
        primary, backup = None if only_backup else self._primary.next_us(), self._backup.next_us()
        if primary is None or backup is None:
            return primary if backup is None else backup
        return min(primary, backup)

    def pop_primary(self, now_us: int) -> list[Entry]:
        """Entries to be claimed now, a part of a herd at a time: the first claim need not wait for all of them.

        If jobs have priorities, it returns all, to sort them. Entries that this controller owned for a while only are
        armed for their owners' turn instead.
        """
        due = []
        for job_id in self._primary.pop_due(now_us, ALL if self.ranked else POPPED_AT_ONCE):
            entry = self.entries[job_id]
            if self.duty(entry) is Duty.PRIMARY:
                due.append(entry)
            else:
                self._arm(entry)
        return due

    def pop_backup(self, now_us: int) -> dict[int, None]:
        """Slots to be looked over now. Their entries are armed for the next foreseen tick."""
        slots: dict[int, None] = {}
        for job_id in self._backup.pop_due(now_us):
            entry = self.entries[job_id]
            slots[entry.job.slot] = None
            self._foresee(entry, entry.tick)
            self._arm(entry)
        return slots

    def merge(self, slots: Iterable[int], jobs: list[Job], sent_ns: int) -> None:
        """Take in a refetch of `slots` that was sent at `sent_ns` (monotonic). What is known here and newer stays."""
        rows = {job.job_id: job for job in jobs}
        asked = bytearray(SLOTS)
        for slot in slots:
            asked[slot] = 1
        for entry in list(self.entries.values()):
            job = entry.job
            if job.job_id in rows or entry.stage in IN_FLIGHT or entry.changed_ns >= sent_ns:
                continue
            if asked[job.slot] or self.duty(entry) is Duty.NONE:
                self.forget(job.job_id)
        for job in jobs:
            self._merge_row(job, sent_ns)

    # docs/decisions/0029: the same tick may run at another instant by another policy
    def _merge_row(self, job: Job, sent_ns: int) -> None:
        entry = self.entries.get(job.job_id)
        if entry is None:
            if self.duties[job.slot]:
                entry = self.entries[job.job_id] = Entry(job)
                self._follow(entry, job)
            return
        newer_here = entry.changed_ns >= sent_ns and job.revision <= entry.job.revision
        if newer_here or job.revision < entry.job.revision:
            return
        same_tick = (entry.tick, entry.run_at) == (job.next_tick, job.next_run_at) and not job.executing
        same_runners = entry.job.deployment == job.deployment
        entry.job = job
        if entry.stage in IN_FLIGHT or (entry.stage is Stage.RUNNING and job.executing):
            return
        if same_tick and (entry.stage in DUE or (entry.stage in OF_RUNNERS and same_runners)):
            return
        self._follow(entry, job)

    # docs/decisions/0051: their owners hear of them by NOTIFY, a little later
    def add_own(self, jobs: list[Job]) -> None:
        """Jobs that this controller has just created. Until their owners know of them, it stands in as the primary.

        The owners hear within milliseconds, unless a NOTIFY is lost. So until the next refetch this controller is the
        backup.
        """
        settings = self._context.settings
        self._own(jobs, 2 * settings.backup_delay_ms)
        watched_until_ns = self._context.now_ns + settings.refetch_interval_ms * MS
        for job in jobs:
            self.entries[job.job_id].watched_until_ns = watched_until_ns

    def stand_in(self, job: Job) -> None:
        """The job is of another's slot, but due before its owners look at it again: be its primary until then."""
        assert job.next_run_at is not None, "a job without a next tick needs nobody"
        wait_ms = max(0, job.next_run_at - self._context.now_us) // 1_000
        self._own([job], wait_ms + self._context.settings.backup_delay_ms)

    def _own(self, jobs: list[Job], length_ms: int) -> None:
        until_ns = self._context.now_ns + length_ms * MS
        for job in jobs:
            known = self.entries.get(job.job_id)
            if known is not None and known.stage in IN_FLIGHT:
                known.job = job
                continue
            entry = known or Entry(job)
            self.entries[job.job_id] = entry
            entry.job = job
            entry.own_until_ns = max(entry.own_until_ns, until_ns)
            entry.changed_ns = self._context.now_ns
            self._follow(entry, job)

    def learn(self, job: Job) -> Entry:
        """Take in a job's row from an answer, and add its entry if there is none."""
        entry = self.entries.get(job.job_id)
        if entry is None:
            entry = self.entries[job.job_id] = Entry(job)
        entry.job = job
        entry.changed_ns = self._context.now_ns
        self._follow(entry, job)
        return entry

    def reset(self, entry: Entry, executing: bool, tick: int | None, run_at: int | None) -> None:
        """An answer tells the row: wait for its next tick. It does nothing for an entry that was forgotten."""
        if self.entries.get(entry.job.job_id) is not entry:
            return
        entry.changed_ns = self._context.now_ns
        entry.stage = Stage.WAITING
        if self.duty(entry) is Duty.NONE or tick is None:
            self.forget(entry.job.job_id)
            return
        entry.tick, entry.run_at = tick, run_at
        if executing and not ticks.allows(entry.job):
            self._foresee(entry, tick)
        self._arm(entry)

    def follow_end(self, entry: Entry, tick: int | None, run_at: int | None) -> None:
        """An execution of the job has ended, here or elsewhere. `tick` None: the answer tells no next tick."""
        if entry.stage in IN_FLIGHT:
            return  # the answer to the claim or the skip under way tells more
        if tick is None:
            entry.changed_ns = self._context.now_ns
            entry.stage = Stage.WAITING
            self._foresee(entry, entry.tick)
            self._arm(entry)
        else:
            self.reset(entry, executing=False, tick=tick, run_at=run_at)

    def runner_away(self, job_id: int) -> None:
        """Another controller may end, or has ended, an execution held here. So watch the next tick again."""
        entry = self.entries.get(job_id)
        if entry is not None and entry.stage is Stage.RUNNING:
            self.reset(entry, executing=True, tick=entry.tick, run_at=entry.run_at)

    # docs/decisions/0027: a run beside its job must not change the job's entry
    def runner_here(self, execution: Execution) -> None:
        """The execution is held here, on a connected runner. If it holds its job, its end tells the next tick."""
        entry = self.entries.get(execution.job.job_id)
        if (
            execution.holds_job
            and entry is not None
            and entry.stage in (Stage.WAITING, Stage.READY, Stage.AWAITS_PLACE)
        ):
            self.move_to(entry, Stage.RUNNING)

    def waits(self, entry: Entry, stage: Stage) -> bool:
        """Whether the entry is still in that stage. Entries may be forgotten or move on, and no queue is told."""
        return entry.stage is stage and self.entries.get(entry.job.job_id) is entry

    def retry_at(self, entry: Entry, at_us: int) -> None:
        """Try the same tick again, unless the job was forgotten meanwhile."""
        if self.entries.get(entry.job.job_id) is not entry:
            return
        entry.changed_ns = self._context.now_ns
        entry.stage = Stage.WAITING
        self._primary.arm(entry.job.job_id, at_us)

    def move_to(self, entry: Entry, stage: Stage) -> None:
        """Move the entry to a stage in which it needs no timer."""
        entry.stage = stage
        self._primary.disarm(entry.job.job_id)
        self._backup.disarm(entry.job.job_id)

    def forget(self, job_id: int) -> None:
        if self.entries.pop(job_id, None) is not None:
            self._primary.disarm(job_id)
            self._backup.disarm(job_id)

    def _follow(self, entry: Entry, job: Job) -> None:
        entry.stage = Stage.WAITING
        entry.retries = 0
        entry.tick, entry.run_at = job.next_tick, job.next_run_at
        self.ranked = self.ranked or bool(job.policy and ticks.priority(job))
        if job.executing and not ticks.allows(job):
            self._foresee(entry, job.next_tick)
        self._arm(entry)

    # docs/decisions/0029: compares run_at, as with jitter the next tick need not be due next
    def _foresee(self, entry: Entry, tick: int | None) -> None:
        """Another controller has (or should have) this tick: foresee the first later tick whose run_at is still to
        come.

        An interval's run_at may lie before its tick, by less than half an interval. If the entry's own run_at is still
        to come, nobody has claimed that tick. Then what runs now is a manual run, a backfill or a retry, and the entry
        stays.
        """
        now_us = self._context.now_us
        if entry.run_at is not None and entry.run_at > now_us:
            return
        following = ticks.following(entry.job, now_us if tick is None else max(tick, now_us))
        if following is not None and following.run_at <= now_us:
            following = ticks.following(entry.job, following.tick)
        entry.tick, entry.run_at = following or (None, None)

    def _arm(self, entry: Entry) -> None:
        job_id = entry.job.job_id
        duty = self.duty(entry)
        if entry.run_at is None or duty is Duty.NONE:
            self._primary.disarm(job_id)
            self._backup.disarm(job_id)
        elif duty is Duty.PRIMARY:
            self._backup.disarm(job_id)
            self._primary.arm(job_id, entry.run_at)
        else:
            self._primary.disarm(job_id)
            self._backup.arm(job_id, entry.run_at + self._context.settings.backup_delay_ms * 1_000)
