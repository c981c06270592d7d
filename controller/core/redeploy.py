"""What a new version of a module does to the jobs of the one before: which go, which come, which carry on.

A job is the same job as long as its key stays. It keeps its next tick unless its schedule changes; then the books of
the old schedule are closed at that instant: whatever was due by it and has not been claimed is named here as skipped.
"""

from typing import NamedTuple

from controller.core.model import Skipped, SkipReason
from schema.keys import JobKey, slot_of
from schema.missed import after_run
from schema.module import Module, Verb
from schema.schedule import Schedule, parse_schedule

# Enough of the digest to name a version among all those a module will ever have.
_DIGEST_SHOWN = 12


class Existing(NamedTuple):
    """A job that is not removed, as its row stands. `last_tick`: the latest one claimed."""

    job_id: int
    key: str
    schedule: str
    anchor: int
    executing: bool
    next_tick: int | None
    last_tick: int | None


class Added(NamedTuple):
    key: str
    verb: str
    slot: int
    schedule: str
    anchor: int
    timeout_ms: int
    on_disconnect: str
    next_tick: int | None
    next_run_at: int | None


class Carried(NamedTuple):
    """`rescheduled`: the schedule, anchor and next tick are new, and the revision grows. Else the row keeps its own."""

    job_id: int
    key: str
    timeout_ms: int
    on_disconnect: str
    rescheduled: bool
    schedule: str
    anchor: int
    next_tick: int | None
    next_run_at: int | None
    skipped: Skipped | None


class Removed(NamedTuple):
    job_id: int
    key: str
    skipped: Skipped | None


class Redeploy(NamedTuple):
    added: list[Added]
    carried: list[Carried]
    removed: list[Removed]


def deployment_key(module: Module, digest: str) -> str:
    """A deployment's name, e.g. `billing@3fa9c1d2e4b5`, or `namespace/billing@...` outside the default namespace."""
    job = str(JobKey(module.namespace, module.name, ""))
    return f"{job.removesuffix('.')}@{digest[:_DIGEST_SHOWN]}"


def plan_redeploy(module: Module, existing: list[Existing], now: int, timeout_ms: int) -> Redeploy:
    """What to change so that exactly the module's scheduled verbs are jobs. `timeout_ms`: for verbs that state none."""
    declared = {str(JobKey(module.namespace, module.name, verb.name)): verb for verb in module.verbs if verb.schedule}
    known = {job.key: job for job in existing}
    added = [_added(key, verb, now, timeout_ms) for key, verb in declared.items() if key not in known]
    carried = [_carried(known[key], verb, now, timeout_ms) for key, verb in declared.items() if key in known]
    return Redeploy(added, carried, plan_removal([job for job in existing if job.key not in declared], now))


def plan_removal(existing: list[Existing], now: int) -> list[Removed]:
    """What removing these jobs writes into the books."""
    return [Removed(job.job_id, job.key, _closed(job, now)) for job in existing]


def _added(key: str, verb: Verb, now: int, timeout_ms: int) -> Added:
    next_tick = parse_schedule(verb.schedule, now).next_after(now)
    return Added(
        key, verb.name, slot_of(key), verb.schedule, now, verb.timeout_ms or timeout_ms, verb.on_disconnect,
        next_tick, next_tick,
    )  # fmt: skip


def _carried(job: Existing, verb: Verb, now: int, timeout_ms: int) -> Carried:
    timeout_ms = verb.timeout_ms or timeout_ms
    if verb.schedule == job.schedule:
        return Carried(
            job.job_id, job.key, timeout_ms, verb.on_disconnect, False, job.schedule, job.anchor,
            job.next_tick, job.next_tick, None,
        )  # fmt: skip
    at = max(now, _decided_until(job))
    next_tick = parse_schedule(verb.schedule, at).next_after(at)
    return Carried(
        job.job_id, job.key, timeout_ms, verb.on_disconnect, True, verb.schedule, at,
        next_tick, next_tick, _closed(job, now),
    )  # fmt: skip


def _decided_until(job: Existing) -> int:
    """The latest tick that ran or was skipped, or when the present schedule's books began.

    It lies ahead if PostgreSQL's clock was set back since: what ran or was skipped must not come again.
    """
    decided = max(job.anchor, job.last_tick or 0)
    if job.executing or job.next_tick is None:
        return decided
    return max(decided, parse_schedule(job.schedule, job.anchor).last_at_or_before(job.next_tick - 1) or 0)


def _closed(job: Existing, now: int) -> Skipped | None:
    """The ticks that the old schedule still owed at `now`, as the skip that closes its books."""
    schedule: Schedule = parse_schedule(job.schedule, job.anchor)
    if job.executing:
        assert job.last_tick is not None
        # Rescheduled since it was claimed? What was owed before the anchor is in the books already.
        return _skipped(SkipReason.OVERLAP, schedule, max(job.last_tick, job.anchor), now)
    if job.next_tick is None:
        return None
    return _skipped(SkipReason.SUPERSEDED, schedule, job.next_tick - 1, now)


def _skipped(reason: SkipReason, schedule: Schedule, after: int, until: int) -> Skipped | None:
    passed = after_run(schedule, after, until)
    if passed.count == 0:
        return None
    return Skipped(reason, passed.first_skipped, passed.last_skipped, passed.count)
