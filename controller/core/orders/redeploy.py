"""What a new version of a module does to its jobs: which go, which come, which carry on.

A job is the same job as long as its key stays. It keeps its next tick unless its schedule's ticks change. Then the old
books close at that instant, and ticks that were due and not claimed are skipped. A new policy with the same ticks skips
none: it decides the ticks that are still undecided. A paused job stays paused. A job made through the API stays as it
is while its verb is there. Without its verb it is orphaned, and never removed (orphaning.py).
"""

from typing import NamedTuple

from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import parse_instant
from cronring.schema.job import JobSpec
from cronring.schema.keys import JobKey, slot_of
from cronring.schema.module import Module, Verb
from cronring.schema.spread import stored_policy
from cronring.schema.timetable import PlannedTick, Timetable, timetable

# Enough of the digest to name a version among all those a module will ever have.
_DIGEST_SHOWN = 12


class Existing(NamedTuple):
    """A job that is not removed, as its row stands. `last_tick`: the latest one claimed.

    `paused`: its pause is in force. A pause with an end is over once a tick behind that end has run, even if
    PostgreSQL's clock was set back since. `paused_tick`: the first tick that the pause keeps from running. A paused job
    has no next tick, unless the pause has an end, `paused_until`. Then its next tick is the first one from that end on.
    `opened_at`: when its present books began. A cancelled job has no books: then it is when they ended. `ahead_from`,
    `ahead_until`: the first and the last tick that were skipped ahead of their time. While the last one is still to
    come, these skips are taken back if the job's books close. `orphaned`: its verb is in no active version. Then it has
    no next tick. `orphaned_tick` is the first tick that nobody had decided. Ticks from that one on don't run until the
    verb is back.
    """

    job_id: int
    key: str
    schedule: str
    anchor: int
    executing: bool
    next_tick: int | None
    last_tick: int | None
    policy: str = ""
    verb: str = ""
    source: str = "annotation"
    paused: bool = False
    paused_tick: int | None = None
    opened_at: int = 0
    cancelled: bool = False
    paused_until: int | None = None
    ahead_from: int | None = None
    ahead_until: int | None = None
    orphaned: bool = False
    orphaned_tick: int | None = None
    next_run_at: int | None = None


class Added(NamedTuple):
    key: str
    verb: str
    slot: int
    spec: JobSpec
    next_tick: int | None
    next_run_at: int | None


class Carried(NamedTuple):
    """`rescheduled`: schedule, anchor, policy and next tick are new, and the revision grows. Else the row keeps them.
    `keeps`: the row keeps all other fields as well. Then `spec` has only schedule, anchor and policy. `ticks_stay`:
    only the policy changes. The ticks stay, and so do skips that were decided ahead.

    A paused job has no next tick: `paused_tick` is then the new schedule's first tick. An orphaned job has it in
    `orphaned_tick`. `closes_at`: where the old schedule's books end, and the new ones begin. A cancelled job has
    neither ticks nor books.
    """

    job_id: int
    key: str
    spec: JobSpec
    rescheduled: bool
    keeps: bool = False
    next_tick: int | None = None
    next_run_at: int | None = None
    skipped: tuple[Skipped, ...] = ()
    paused_tick: int | None = None
    closes_at: int | None = None
    ahead_from: int | None = None
    ahead_until: int | None = None
    orphaned_tick: int | None = None
    ticks_stay: bool = False

    @property
    def takes_back(self) -> bool:
        """Whether what was decided ahead of its time leaves the books."""
        return self.rescheduled and not self.ticks_stay


class Removed(NamedTuple):
    job_id: int
    key: str
    skipped: tuple[Skipped, ...]
    closes_at: int


class Redeploy(NamedTuple):
    """`orphaned`: jobs made through the API that lose their verb now. `back`: such jobs that have their verb again."""

    added: list[Added]
    carried: list[Carried]
    removed: list[Removed]
    orphaned: list[Existing]
    back: list[Existing]

    @property
    def rescheduled(self) -> tuple[str, ...]:
        """Keys, sorted, of jobs that go on by another schedule or policy."""
        return tuple(sorted(job.key for job in self.carried if job.rescheduled))


def deployment_key(module: Module, digest: str) -> str:
    """A deployment's name, e.g. `billing@3fa9c1d2e4b5`, or `namespace/billing@...` outside the default namespace."""
    job = str(JobKey(module.namespace, module.name, ""))
    return f"{job.removesuffix('.')}@{digest[:_DIGEST_SHOWN]}"


def plan_redeploy(
    module: Module, existing: list[Existing], now: int, timeout_ms: int, default_jitter: str = ""
) -> Redeploy:
    """What to change so that the module's scheduled verbs are jobs, beside those made through the API.

    `timeout_ms` and `default_jitter` are for verbs that state none.
    """
    declared = {str(JobKey(module.namespace, module.name, verb.name)): verb for verb in module.verbs if verb.schedule}
    verbs = {verb.name for verb in module.verbs}
    known = {job.key: job for job in existing if job.source == "annotation"}
    specs = {key: _spec(verb, known.get(key), now, timeout_ms, default_jitter) for key, verb in declared.items()}
    new = [added(key, verb.name, specs[key], now) for key, verb in declared.items() if key not in known]
    carried = [_carried(known[key], spec, now) for key, spec in specs.items() if key in known]
    # A deployment takes nothing away that people made by hand: it orphans it at most (docs/decisions/0048).
    made = [job for job in existing if job.source == "api"]
    carried += [kept(job) for job in made if job.verb in verbs and not job.orphaned]
    return Redeploy(
        new,
        carried,
        plan_removal([job for key, job in known.items() if key not in declared], now),
        [job for job in made if job.verb not in verbs and not job.orphaned],
        [job for job in made if job.verb in verbs and job.orphaned],
    )


def plan_removal(
    existing: list[Existing], now: int, reason: SkipReason = SkipReason.DEPLOYMENT_REMOVED
) -> list[Removed]:
    """What the removal of these jobs writes into the books. `reason`: why their due ticks are skipped."""
    return [Removed(job.job_id, job.key, closed(job, now, reason), closes_at(job, now)) for job in existing]


def _spec(verb: Verb, job: Existing | None, now: int, timeout_ms: int, default_jitter: str) -> JobSpec:
    """What a declaration wants of its job, which may be there already."""
    anchor = job.anchor if job is not None and verb.schedule == job.schedule else now
    return JobSpec(
        schedule=verb.schedule,
        anchor=parse_instant(verb.anchor) if verb.anchor else anchor,
        timeout_ms=verb.timeout_ms or -timeout_ms,
        on_disconnect=verb.on_disconnect,
        policy=stored_policy(verb.schedule, verb.policy.text, default_jitter),
        payload=verb.payload,
    )


def added(key: str, verb: str, spec: JobSpec, now: int) -> Added:
    """A new job, whose books open at `now`."""
    tick, run_at = first_planned(timetable(*spec.timing), key, now) or (None, None)
    return Added(key, verb, slot_of(key), spec, tick, run_at)


def _carried(job: Existing, spec: JobSpec, now: int) -> Carried:
    if spec.timing == (job.schedule, job.anchor, job.policy):
        return kept(job)._replace(spec=spec, keeps=False)
    return rescheduled(job, Carried(job.job_id, job.key, spec, rescheduled=True), now)


def rescheduled(job: Existing, carried: Carried, now: int) -> Carried:
    """`carried` with the ticks of its schedule, anchor and policy, and with the skips that close the old books."""
    planned = _rescheduled(job, carried, now)
    if not job.orphaned:
        return planned
    return planned._replace(next_tick=None, next_run_at=None, orphaned_tick=planned.next_tick)


def _rescheduled(job: Existing, carried: Carried, now: int) -> Carried:
    if job.cancelled:
        # It has no books to close: they ended when it was cancelled.
        return carried._replace(closes_at=job.opened_at)
    table = timetable(*carried.spec.timing)
    before = timetable(job.schedule, job.anchor, job.policy)
    # Ticks that were skipped ahead as outside the window were so by the old window.
    same_ahead = table.policy.window == before.policy.window or not decided_ahead(job, now)
    if table.schedule == before.schedule and same_ahead and not job.orphaned:
        return _by_another_policy(job, carried, table, now)
    following = reopened(job, table, now)
    skipped, ends_at = closed(job, now), closes_at(job, now)
    if not job.paused or following is None:
        tick, run_at = following or (None, None)
        return carried._replace(next_tick=tick, next_run_at=run_at, skipped=skipped, closes_at=ends_at)
    if job.paused_until is None:
        return carried._replace(paused_tick=following.tick, skipped=skipped, closes_at=ends_at)
    held = hold(table, job.key, following, job.paused_until)
    return carried._replace(
        next_tick=held.next_tick, next_run_at=held.next_run_at, skipped=skipped + held.skipped, closes_at=ends_at,
        paused_tick=held.paused_tick, ahead_from=held.paused_tick, ahead_until=held.ahead_until,
    )  # fmt: skip


def _by_another_policy(job: Existing, carried: Carried, table: Timetable, now: int) -> Carried:
    """The ticks stay. The new span of the books opens behind the last decided tick, and nothing else moves.

    So a tick that waits goes on waiting, and the end of a run still decides ticks that came due during the run.
    """
    first, last, planned = undecided(job, now), job.last_tick, _same_planned(job, table, now)
    if job.executing and first is not None and last is not None and first <= last:
        first = table.schedule.next_after(last)
        if table.policy.overlap == "allow":  # "allow" decides that tick while this one runs
            planned = first_planned(table, job.key, last)
    tick, run_at = planned or (None, None)
    closes = closes_at(job, now)
    if first is not None:
        closes = max(job.opened_at, job.last_tick or 0, table.schedule.last_at_or_before(first - 1) or 0)
    return carried._replace(
        next_tick=tick, next_run_at=run_at, paused_tick=job.paused_tick, closes_at=closes,
        ahead_from=job.ahead_from, ahead_until=job.ahead_until, ticks_stay=True,
    )  # fmt: skip


def _same_planned(job: Existing, table: Timetable, now: int) -> PlannedTick | None:
    """The same next tick. It gets another run_at only if its run_at is still to come and the jitter has changed."""
    if job.next_tick is None or job.next_run_at is None:
        return None
    planned = PlannedTick(job.next_tick, job.next_run_at)
    jitter = timetable(job.schedule, job.anchor, job.policy).policy.jitter
    moved = table.following(job.key, planned.tick - 1)
    if jitter == table.policy.jitter or planned.run_at <= now or moved is None or moved.tick != planned.tick:
        return planned
    return not_before(moved, max(now, job.paused_until or 0))


class HeldTicks(NamedTuple):
    """What a pause until an instant decides: ticks before it are `skipped`, and it goes on with `next_tick`."""

    next_tick: int | None
    next_run_at: int | None
    skipped: tuple[Skipped, ...]
    paused_tick: int | None  # the first that is skipped; None: none is
    ahead_until: int | None  # the last


def hold(table: Timetable, key: str, first: PlannedTick, until: int) -> HeldTicks:
    """`first` is the first tick that nobody has decided. No run begins before `until`, jitter or not."""
    if first.tick >= until:
        return HeldTicks(first.tick, max(first.run_at, until), (), None, None)
    skipped = owed(table, first.tick, until - 1, SkipReason.PAUSED)
    tick, run_at = table.following(key, until - 1) or (None, None)
    return HeldTicks(tick, None if run_at is None else max(run_at, until), skipped, first.tick, skipped[-1].last_tick)


def kept(job: Existing) -> Carried:
    """As it is."""
    spec = JobSpec(job.schedule, job.anchor, policy=job.policy)
    return Carried(
        job.job_id, job.key, spec, rescheduled=False, keeps=True, next_tick=job.next_tick, paused_tick=job.paused_tick
    )


def reopened(job: Existing, table: Timetable, now: int) -> PlannedTick | None:
    """The first tick of a job's new books."""
    return first_planned(table, job.key, closes_at(job, now))


def first_planned(table: Timetable, key: str, opens_at: int) -> PlannedTick | None:
    """The first tick of books that open then."""
    return not_before(table.following(key, opens_at), opens_at)


# docs/decisions/0029: without this, a deployment may make a tick late at once
def not_before(planned: PlannedTick | None, opens_at: int) -> PlannedTick | None:
    """With a run_at of `opens_at` or later: jitter may have put it before, and the tick would be late at once."""
    return None if planned is None else planned._replace(run_at=max(planned.run_at, opens_at))


# docs/decisions/0017: not simply now: the clock may have been set back
def closes_at(job: Existing, now: int) -> int:
    """Where the present books of a job end: at `now`.

    If PostgreSQL's clock was set back, they end with the latest tick that ran or was skipped. The next schedule must
    not run that tick again.
    """
    decided = max(now, job.opened_at, job.last_tick or 0)
    tick = undecided(job, now)
    if tick is None or tick <= now:
        return decided
    old = timetable(job.schedule, job.anchor, job.policy).schedule
    return max(decided, old.last_at_or_before(tick - 1) or 0)


def undecided(job: Existing, now: int) -> int | None:
    """The first tick that nobody has decided, once what was decided ahead of its time is taken back."""
    if not decided_ahead(job, now):
        if job.paused and job.paused_until is None:
            return job.paused_tick
        return job.orphaned_tick if job.orphaned else job.next_tick
    assert job.ahead_from is not None, "decided ahead without a first tick"
    return timetable(job.schedule, job.anchor, job.policy).schedule.next_after(max(now, job.ahead_from - 1))


# docs/decisions/0033: the clock may have been set back into the pause
def decided_ahead(job: Existing, now: int) -> bool:
    """Whether ticks that are still to come are in the books already.

    After the clock was set back, ticks may seem to be still to come though a later one has run or was skipped. Such
    skips are not taken back.
    """
    return job.ahead_until is not None and job.ahead_until > max(now, job.last_tick or 0) and not went_on(job)


def went_on(job: Existing) -> bool:
    """Whether ticks behind those that were decided ahead have been decided as well."""
    if job.ahead_until is None or job.next_tick is None:
        return False
    following = timetable(job.schedule, job.anchor, job.policy).schedule.next_after(job.ahead_until)
    return following is not None and following < job.next_tick


def taken_back(job: Existing, first_tick: int, reason: SkipReason, now: int) -> tuple[Skipped, ...]:
    """What is left of a range that began at `first_tick` once its ticks after `now` are taken back."""
    return owed(timetable(job.schedule, job.anchor, job.policy), first_tick, now, reason)


# docs/decisions/0016: the end of a run must not decide these ticks again
def closed(job: Existing, now: int, reason: SkipReason = SkipReason.SUPERSEDED) -> tuple[Skipped, ...]:
    """The ticks that the books of a job still owe at `now`, as the skips that close them.

    `reason`: why due ticks are skipped. Ticks that were decided ahead and have come are in the books already
    (`taken_back`).
    """
    table = timetable(job.schedule, job.anchor, job.policy)
    if job.cancelled:
        return ()
    if job.paused and job.paused_until is None:
        return owed(table, job.paused_tick, now, SkipReason.PAUSED)
    if job.orphaned:
        return owed(table, job.orphaned_tick, now, SkipReason.NO_VERB)
    if job.paused:  # until an instant: its ticks up to there were booked when it was paused
        return ()
    if not job.executing:
        return owed(table, job.next_tick, now, reason)
    if job.next_tick is None:
        return ()
    # A next tick beyond the one that runs is the first that nobody has decided (see ticks.after_run).
    if job.last_tick is None or job.next_tick > job.last_tick:
        return owed(table, job.next_tick, now, SkipReason.OVERLAP)
    return owed(table, table.schedule.next_after(job.last_tick), now, SkipReason.OVERLAP)


def owed(table: Timetable, tick: int | None, now: int, reason: SkipReason) -> tuple[Skipped, ...]:
    """Skips of `tick` and of all ticks up to `now`. Their own instants count, and not run_at: jitter must not move a
    tick into other books.
    """
    if tick is None or tick > now:
        return ()
    return table.owed(tick, now, reason)
