"""What the books say around one tick of one job: the facts from which why.py answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cronring.controller.core.ledger.books import Closed, Span, TickTimeline
from cronring.controller.core.orders.taking_over import KEPT
from cronring.controller.core.ticks import upcoming
from cronring.schema.instant import parse_instant
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.timetable import PlannedTick

TRANSACTION_US: Final = 2_000_000
"""Instants of one transaction differ by less than this. They are its beginning, and when it got its locks."""


class WhyJob(NamedTuple):
    """A job's row. `hosted`: a living runner has its deployment; `runner_seen_at`: when one that has was last seen."""

    job_id: int
    key: str
    schedule: str
    policy: str
    deployment: str
    source: str
    created_at: int
    removed_at: int | None
    executing: bool
    execution_id: int | None
    running: int
    next_tick: int | None
    next_run_at: int | None
    last_tick: int | None
    paused_at: int | None
    paused_tick: int | None
    paused_until: int | None
    paused_by: str | None
    paused_note: str | None
    cancelled_at: int | None
    cancelled_by: str | None
    cancelled_note: str | None
    orphaned_at: int | None
    orphaned_tick: int | None
    hosted: bool
    runner_seen_at: int | None
    full: str = ""  # the limit that has no place for a run of it: "module billing runs 5 of 5"
    anchor: int = 0

    @property
    def zone(self) -> str:
        return parse_policy(self.policy).timezone

    @property
    def upcoming(self) -> PlannedTick | None:
        """What is to run next by its schedule, and when."""
        return upcoming(self.key, (self.schedule, self.anchor, self.policy), self.next_tick, self.next_run_at)

    def paused(self, now: int) -> bool:
        """Whether its pause is in force."""
        return self.paused_at is not None and (self.paused_until is None or self.paused_until > now)


class Attempt(NamedTuple):
    """An execution, the job's `number`th. `started_at` None: its runner hasn't said; `outcome` None: it runs."""

    execution_id: int
    tick: int
    attempt: int
    trigger: str
    run_at: int
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    outcome: str | None
    error_type: str
    error_message: str
    controller_id: str
    runner_id: str
    retry_at: int | None
    number: int = 0
    deployment: str = ""


class SkipFact(NamedTuple):
    """Ticks skipped for one reason, of which one was asked about. `controller_id` "": an operator, or a deployment."""

    reason: str
    first_tick: int
    last_tick: int
    ticks: int
    controller_id: str
    decided_at: int


class WaitingRun(NamedTuple):
    """A run that waits beside the schedule: a retry, a manual run, or a backfill (`until_tick`)."""

    activation_id: int
    trigger: str
    tick: int
    until_tick: int | None
    attempt: int
    run_at: int
    requested_by: str


class ActionFact(NamedTuple):
    """What an operator did."""

    at: int
    action: str
    actor: str
    note: str
    details: Mapping[str, Any] = MappingProxyType({})

    @property
    def order(self) -> str:
        """The order. Of an action that carries on an order of the removed job (taking_over.py): that order, such as
        "pause".
        """
        return KEPT.get(self.action, self.action)

    @property
    def origin(self) -> "ActionFact":
        """The original order, if this action carries one on: its details name that one. Otherwise the action itself."""
        if self.action not in KEPT:
            return self
        since = parse_instant(self.details["since"])
        return ActionFact(since, self.order, self.details["by"], self.details["note"])


class Facts(NamedTuple):
    """`at`: the instant asked about. `tick`: the one that was (or will be) due then, if there is one.

    `attempts`: at that tick, in order. `before` and `after`: the runs of ticks next to it (`after`: by schedule).
    `actions`: by operators, those before the tick and those before it was skipped, the latest first. `previous_skip`:
    if there was no tick at that instant, the skipped range that has the tick before it. `then`: the schedule in force
    at that instant; it may be another one by now. `successor`: if the asked job is removed, the job that has its key
    now. `followed`: the key of the job that this one follows; `tick` is then a tick of that job. `upstream`: the facts
    about that job; None: it follows none, or that job is gone.
    """

    subject: WhyJob
    now: int
    at: int
    tick: int | None
    previous_tick: int | None
    following_tick: int | None
    attempts: tuple[Attempt, ...] = ()
    skip: SkipFact | None = None
    before: Attempt | None = None
    after: Attempt | None = None
    waiting: tuple[WaitingRun, ...] = ()
    actions: tuple[ActionFact, ...] = ()
    closed: Closed | None = None
    followed: str = ""
    upstream: "Facts | None" = None
    follows_since: int | None = None
    previous_skip: SkipFact | None = None
    then: Span | None = None
    successor: WhyJob | None = None

    @property
    def schedule_then(self) -> str:
        return self.subject.schedule if self.then is None else self.then.schedule

    @property
    def policy_then(self) -> Policy:
        return parse_policy(self.subject.policy if self.then is None else self.then.policy)


class Focus(NamedTuple):
    """The tick asked about, and its neighbours. Of an instant without a tick, `tick` is None."""

    tick: int | None
    previous: int | None
    following: int | None


def focus(timeline: TickTimeline, at: int | None, now: int) -> Focus:
    """`at` None: the latest tick that was due. A fraction of a second doesn't matter, as ticks have none."""
    if at is None:
        latest = timeline.last_at_or_before(now)
        if latest is None:
            return Focus(None, None, timeline.next_after(now))
        return Focus(latest, timeline.last_at_or_before(latest - 1), timeline.next_after(latest))
    second = at - at % 1_000_000
    tick = second if timeline.is_due(second) else None
    return Focus(tick, timeline.last_at_or_before(second - 1), timeline.next_after(second))


def subject_at(subjects: list[WhyJob], at: int) -> WhyJob:
    """Of the jobs that had one key, the newest first, the one that was there at an instant; else the newest one."""
    for subject in subjects:
        if subject.created_at <= at and (subject.removed_at is None or at <= subject.removed_at):
            return subject
    return subjects[0]
