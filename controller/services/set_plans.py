"""What a file would do to the jobs of its set. Pure: from rows that were read. docs/decisions/0094"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobChange, NewJob, Seen
from cronring.controller.ports.reads import JobRow
from cronring.controller.ports.sets import SetWork
from cronring.controller.services.audit_changes import digest
from cronring.controller.services.refusals import not_of_api
from cronring.schema.diff import FieldChange
from cronring.schema.duration import format_duration
from cronring.schema.forecast import JobForecast, Timing, compare
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.policy import FIELDS, parse_policy
from cronring.schema.text_print import policy_text

_SECOND_US: Final = 1_000_000


class JobFate(StrEnum):
    """What becomes of one job."""

    CREATED = "created"
    CHANGED = "changed"
    ADOPTED = "adopted"  # as it is
    REMOVED = "removed"
    RELEASED = "released"
    LEFT = "left"  # the set owns it, and its file lacks it
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class SetOptions(NamedTuple):
    """How a file is to be applied."""

    name: str  # of the set
    prune: bool = False
    release: bool = False
    adopt: bool = False


class JobStep(NamedTuple):
    """One job's part of a plan. `names`: fields to set as in `job`. `adopts`: no set owns it yet."""

    key: str
    change: JobFate
    row: JobRow | None = None
    job: NewJob | None = None
    names: tuple[str, ...] = ()
    adopts: bool = False
    refusal: Exception | None = None


def plan(
    wanted: Mapping[str, NewJob | Exception], rows: Mapping[str, JobRow], owned: Collection[str], options: SetOptions
) -> list[JobStep]:
    """By key. `wanted`: the file's jobs, or why one is refused. `rows`: of these jobs, and of all that are `owned`."""
    steps = [_step(key, job, rows.get(key), options) for key, job in wanted.items()]
    gone = JobFate.REMOVED if options.prune else JobFate.RELEASED if options.release else JobFate.LEFT
    steps += [JobStep(key, gone, rows[key]) for key in owned if key in rows and key not in wanted]
    return sorted(steps, key=lambda step: step.key)


def _step(key: str, job: NewJob | Exception, row: JobRow | None, options: SetOptions) -> JobStep:
    if isinstance(job, Exception):
        return JobStep(key, JobFate.REFUSED, row, refusal=job)
    if row is None:
        return JobStep(key, JobFate.CREATED, job=job)
    refusal = _not_ours(row, options)
    if refusal is not None:
        return JobStep(key, JobFate.REFUSED, row, job, refusal=refusal)
    names, adopts = differing(job.spec, row.spec), row.set_name != options.name
    change = JobFate.CHANGED if names else JobFate.ADOPTED if adopts else JobFate.UNCHANGED
    return JobStep(key, change, row, job, names, adopts)


def _not_ours(row: JobRow, options: SetOptions) -> Conflict | None:
    if row.source != "api":
        return not_of_api(row.key, "applied")
    if row.set_name and row.set_name != options.name:
        return Conflict(
            f"{row.key!r} belongs to the set {row.set_name!r}: take it out of that file, and apply that with --release"
        )
    if not row.set_name and not options.adopt:
        return Conflict(f"{row.key!r} was made by hand, and no set owns it: --adopt takes it into this one")
    return None


def differing(wanted: JobSpec, there: JobSpec) -> tuple[str, ...]:
    """Fields that a change has to name. An anchor that the file doesn't give stays as it is."""
    names = [name for name in JobSpec._fields if name != "anchor" and getattr(wanted, name) != getattr(there, name)]
    if not (wanted.said_timeout_ms or there.said_timeout_ms):  # each has the --timeout of the controller that made it
        names = [name for name in names if name != "timeout_ms"]
    if wanted.anchor is not None and wanted.anchor // _SECOND_US != (there.anchor or 0) // _SECOND_US:
        names.append("anchor")
    return tuple(names)


def work_of(steps: Sequence[JobStep], namespace: str, name: str, revision: int) -> SetWork:
    """What a store has to do."""
    return SetWork(
        namespace,
        name,
        revision,
        creates={step.key: step.job for step in steps if step.change is JobFate.CREATED and step.job is not None},
        adopts={step.key: _seen(step.row) for step in steps if step.adopts and step.row is not None},
        changes={
            step.key: JobChange(step.job.spec, step.names, _seen(step.row))
            for step in steps
            if step.change is JobFate.CHANGED and step.job is not None and step.row is not None
        },
        removes=_rows(steps, JobFate.REMOVED),
        releases=_rows(steps, JobFate.RELEASED),
    )


def _rows(steps: Sequence[JobStep], change: JobFate) -> dict[str, Seen]:
    return {step.key: _seen(step.row) for step in steps if step.change is change and step.row is not None}


def _seen(row: JobRow) -> Seen:
    return Seen(row.job_id, row.deployment, row.spec)


def fields_of(step: JobStep) -> list[FieldChange]:
    """What differs, of a changed job. Payloads only by digest and size, as a log of CI may show this."""
    if step.job is None or step.row is None:
        return []
    return [each for name in step.names for each in _differences(name, step.row.spec, step.job.spec)]


def _differences(name: str, old: JobSpec, new: JobSpec) -> Iterator[FieldChange]:
    match name:
        case "policy":
            before, after = parse_policy(old.policy), parse_policy(new.policy)
            for field in FIELDS:
                if getattr(before, field.name) != getattr(after, field.name):
                    texts = policy_text(field.name, before), policy_text(field.name, after)
                    yield FieldChange(f"policy.{field.name}", *texts)
        case "labels":
            for key in sorted({*old.labels, *new.labels}):
                if old.labels.get(key) != new.labels.get(key):
                    yield FieldChange(f"labels.{key}", old.labels.get(key, ""), new.labels.get(key, ""))
        case "payload":
            yield FieldChange(name, _payload(old.payload), _payload(new.payload))
        case "anchor":
            yield FieldChange(
                name, *("" if each.anchor is None else format_instant(each.anchor) for each in (old, new))
            )
        case "timeout_ms":
            yield from _timeouts(old.said_timeout_ms, new.said_timeout_ms)
        case _:
            yield FieldChange(name, getattr(old, name), getattr(new, name))


def _timeouts(old_ms: int, new_ms: int) -> Iterator[FieldChange]:
    """A timeout of 0 ms: not given."""
    if old_ms != new_ms:
        yield FieldChange("timeout_ms", *(format_duration(each) if each else "" for each in (old_ms, new_ms)))


def _payload(text: str) -> str:
    found = digest(text)
    return f"{found['bytes']} bytes, sha256 {found['sha256']:.8}" if found else ""


def ticks_of(step: JobStep, now: int, until: int, compared: int) -> JobForecast:
    """What the file does to ticks in (now, until]. `compared`: how many to compare one by one; 0: only count."""
    there, job = step.row, step.job
    before = after = None if there is None else _timing(there.spec, now)
    if step.change is JobFate.REMOVED:
        after = None
    elif step.change is JobFate.CREATED and job is not None:
        after = _timing(job.spec, now)
    elif there is not None and job is not None:
        asked = job.spec.anchor
        if asked is None:
            asked = there.spec.anchor if job.spec.schedule == there.spec.schedule else now
        after = _timing(job.spec._replace(anchor=asked), now)
    return compare(step.key, before, after, now, until, compared)


def _timing(spec: JobSpec, now: int) -> Timing:
    return Timing(spec.schedule, now if spec.anchor is None else spec.anchor, parse_policy(spec.policy))
