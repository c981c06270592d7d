"""Before a drill: which job, whose turn it is to stop, who should take over, and what comes due meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cronring.cli.conversation import job_keys, or_nearest
from cronring.cli.failures import Failure
from cronring.cli.output import short_instant
from cronring.client.model import Cluster, Job, Member, Owners, Ring
from cronring.schema.duration import measured
from cronring.schema.instant import to_us

if TYPE_CHECKING:
    from cronring.client import AsyncClient

JOBS_MAX: Final = 10_000
LONGEST_S: Final = 60.0
LONGEST: Final = measured(LONGEST_S * 1_000)
TAKEOVER_S: Final = 1.0  # what comes due so shortly before the end may be claimed by the primary again
TICKING: Final = ("scheduled", "running")


@dataclass(frozen=True, slots=True)
class DrillOrder:
    """What the user asked for. `job` "": one that ticks often."""

    job: str
    for_s: float
    kill: bool
    forced: bool
    by: str


@dataclass(frozen=True, slots=True)
class TicksAhead:
    """A job of the controller that stops, and about how many of its ticks come due meanwhile."""

    job: str
    ticks: int
    backup: str | None


@dataclass(frozen=True, slots=True)
class DrillPlan:
    """What is about to happen. `chosen`: why this job, where the user named none. `others`: who else is alive."""

    wanted: DrillOrder
    job: Job
    chosen: str
    primary: Member
    backup: str | None
    others: tuple[Member, ...]
    ahead: tuple[TicksAhead, ...]
    ring: Ring

    @property
    def ticks(self) -> int:
        return sum(each.ticks for each in self.ahead)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of those who answer while the primary is away, before the primary itself."""
        return tuple(dict.fromkeys(member.grpc_address for member in (*self.others, self.primary)))


async def make_plan(client: "AsyncClient", wanted: DrillOrder) -> DrillPlan:
    """Raises Failure where the drill would show nothing, or would do harm, saying what to do instead."""
    view, ring = await client.cluster.get(), await client.cluster.ring()
    jobs = await client.jobs.list(limit=JOBS_MAX)
    now = view.database_time
    if now is None:
        raise Failure("the controller that answers has not heard from PostgreSQL yet; try again in a second")
    counted = {job.key: ticks for job in jobs if (ticks := ticks_within(job, now, wanted.for_s))}
    if wanted.job:
        job, chosen = await _named(client, wanted, now), ""
    else:
        job, chosen = _often(jobs, counted, wanted, now)
    owners = await client.cluster.owners(job.key)
    primary, others = _parts(view, owners, forced=wanted.forced)
    _require_runner(view, job)
    return DrillPlan(wanted, job, chosen, primary, owners.backup, others, _ahead(counted, ring, primary), ring)


def ticks_within(job: Job, now: datetime, for_s: float) -> int:
    """About how many of its ticks come due within so long, and early enough for others to take them over."""
    from cronring.schema.policy import read_policy
    from cronring.schema.timetable import timetable

    until = now + timedelta(seconds=for_s - TAKEOVER_S)
    if job.status not in TICKING or job.next_tick is None or job.next_tick > until:
        return 0
    anchor = 0 if job.anchor is None else to_us(job.anchor)
    return timetable(job.schedule, anchor, read_policy(job.policy).text).count_within(to_us(now), to_us(until))


def _reach(wanted: DrillOrder) -> str:
    return measured((wanted.for_s - TAKEOVER_S) * 1_000)


async def _named(client: "AsyncClient", wanted: DrillOrder, now: datetime) -> Job:
    job = await or_nearest(client.jobs.get(wanted.job), "job", wanted.job, lambda: job_keys(client))
    if job.status == "paused":
        raise Failure(f"{job.key} is paused, so it has no ticks: `cronring jobs resume {job.key}`, or another --job")
    if job.status not in TICKING or job.next_tick is None:
        raise Failure(f"{job.key} is {job.status}, with no tick to come ({job.schedule}); give another --job")
    if not ticks_within(job, now, wanted.for_s):
        raise Failure(
            f"{job.key} ({job.schedule_words}) has no tick in the next {_reach(wanted)} that others "
            f"could take over; its next one is at {short_instant(job.next_tick)}. Give a --job that ticks more often "
            f"(without --job, I choose one), or a longer --for ({LONGEST} at most)"
        )
    return job


def _often(jobs: Sequence[Job], counted: dict[str, int], wanted: DrillOrder, now: datetime) -> tuple[Job, str]:
    """The job that ticks most often, and why it."""
    if not counted:
        to_come = [job.next_tick for job in jobs if job.status in TICKING and job.next_tick is not None]
        first = f"the next tick of all is at {short_instant(min(to_come))} (now {short_instant(now)})" if to_come else (
            "no job has a tick to come"
        )  # fmt: skip
        raise Failure(
            f"no job has a tick in the next {_reach(wanted)} that others could take over: {first}. Give "
            f"a longer --for ({LONGEST} at most), or try it where something ticks: cronring dev examples/demo.py"
        )
    most = min(counted, key=lambda key: (-counted[key], key))
    return next(job for job in jobs if job.key == most), f"it ticks most often: {counted[most]} times meanwhile"


def _parts(view: Cluster, owners: Owners, *, forced: bool) -> tuple[Member, tuple[Member, ...]]:
    """Its primary, and who else is alive."""
    members = {member.id: member for member in view.members}
    if owners.primary is None or owners.primary not in members:
        raise Failure(f"nobody owns {owners.job} now: the ring is empty. `cronring cluster members` shows who is there")
    others = tuple(each for each in view.members if each.status == "alive" and each.id != owners.primary)
    standing = next((each for each in view.members if each.status == "in_drill"), None)
    if standing is not None and not forced:
        until = short_instant(standing.drill_until)
        raise Failure(f"{standing.id} is in a drill already, until {until}; wait for its end")
    if not others and not forced:
        raise Failure(
            f"{owners.primary} is the only controller alive, so nobody would take over. Start another one: "
            "cronring controller"
        )
    return members[owners.primary], others


def _require_runner(view: Cluster, job: Job) -> None:
    if not any(runner.alive and job.deployment in runner.deployments for runner in view.runners):
        raise Failure(
            f"no living runner hosts {job.deployment}, so no tick of {job.key} would run at all. Start one: "
            f"cronring runner {job.module}.py"
        )


def _ahead(counted: dict[str, int], ring: Ring, primary: Member) -> tuple[TicksAhead, ...]:
    """What comes due of the jobs whose primary it is."""
    from cronring.schema.keys import slot_of

    found = []
    for key, ticks in counted.items():
        slot = slot_of(key)
        if _name(ring, ring.primary[slot]) == primary.id:
            found.append(TicksAhead(key, ticks, _name(ring, ring.backup[slot])))
    return tuple(found)


def _name(ring: Ring, index: int) -> str | None:
    return ring.members[index] if index >= 0 else None
