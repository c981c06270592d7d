"""What happens, a line for each: for people, and as JSON for programs."""

from typing import TYPE_CHECKING, Any

from cronring.cli.execution_rows import listed
from cronring.cli.following import ending_of
from cronring.cli.output import short_instant

if TYPE_CHECKING:
    from cronring.client.events import ClusterState, Event
    from cronring.client.model import Execution, Job


def execution_line(row: "Execution") -> str:
    """Its start, or its end."""
    if row.outcome is None:
        at = short_instant(row.claimed_at)
        attempt = f", attempt {row.attempt}" if row.attempt > 1 else ""
        return f"{at}  started   execution {row.id} of {row.job} ({row.trigger}{attempt}) on {row.runner}"
    return f"{short_instant(row.ended_at)}  ended     {ending_of(row)}"


def event_line(event: "Event") -> str:
    if event.execution is not None:
        return execution_line(event.execution)
    if event.job is not None:
        return f"{_NO_INSTANT}  {event.kind.removeprefix('job_'):8}  {_job(event.job)}"
    if event.cluster is not None:
        return f"{_NO_INSTANT}  cluster   {_cluster(event.cluster)}"
    return f"{_NO_INSTANT}  resync    what was before may be left out: look at lists; all from here on is told"


# Jobs and the cluster are told as they are, without when they became so.
_NO_INSTANT = "-".ljust(len("2026-11-21 08:00:00Z"))


def _job(job: "Job") -> str:
    after = f", next {short_instant(job.next_execution)}" if job.next_execution is not None else ""
    return f"{job.key} is {job.status}{after}"


def _cluster(state: "ClusterState") -> str:
    return ", ".join(f"{member.id} {member.status}" for member in state.members) or "nobody is there"


def event_json(event: "Event") -> dict[str, Any]:
    """`position`: by which the next one goes on."""
    found: dict[str, Any] = {"kind": event.kind, "position": event.position}
    if event.execution is not None:
        found["execution"] = listed(event.execution)
    if event.job is not None:
        found["job"] = event.job
    if event.cluster is not None:
        found["cluster"] = event.cluster
    return found
