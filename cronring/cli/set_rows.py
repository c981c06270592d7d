"""What `cronring apply` does, and what a change of one job would do, in lines for people and as JSON."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from cronring.cli.colours import SIGN_COLOURS
from cronring.cli.output import short_instant
from cronring.schema.keys import qualified

if TYPE_CHECKING:
    from cronring.cli.files.reading import FileSet
    from cronring.client.schedules import Preview
    from cronring.client.sets import AppliedSet, FieldDifference, SetJob, TickDifference

SHOWN: Final = 100  # jobs with all that is to be told of them; of those beyond, a line says how many there are
_WORDS: Final = {
    "created": ("to make", "made"), "changed": ("to change", "changed"), "adopted": ("to adopt", "adopted"),
    "removed": ("to remove", "removed"), "released": ("to release", "released"), "refused": ("refused", "refused"),
    "left": ("not in the files any more", "not in the files any more"), "unchanged": ("unchanged", "unchanged"),
}  # fmt: skip
_ORDER: Final = ("refused", "removed", "released", "left", "changed", "adopted", "created")
_SIGNS: Final = {
    "created": "+", "adopted": "+", "changed": "~", "removed": "-", "released": "-", "left": " ", "refused": "!"
}  # fmt: skip
# What stands before the names of fields, which are those of the file but for these.
_SPEC: Final = re.compile(r"^the request is invalid: |\bspec\.(?:policy\.)?(?=\w)")

Line = tuple[str, str | None]
"""And its colour."""


def told(wanted: "FileSet", applied: "AppliedSet", *, dry_run: bool) -> Iterator[Line]:
    """`dry_run`: it is what would become of them."""
    words = [
        f"{count:,} {_WORDS[name][not dry_run]}" for name in (*_ORDER, "unchanged") if (count := applied.counts[name])
    ]
    yield f"set {qualified(wanted.namespace, wanted.name)}: {', '.join(words) or 'no job, and none to come'}", None
    # What a newer controller knows, and this program doesn't, comes last.
    place = {change: number for number, change in enumerate(_ORDER)}
    jobs = sorted(applied.jobs, key=lambda job: (place.get(job.change, len(place)), job.key))
    if any(job.ticks for job in jobs):
        yield f"ticks up to {short_instant(applied.until_at)}:", None
    for job in jobs[:SHOWN]:
        yield from _job(wanted, job)
    if len(jobs) > SHOWN:
        yield f"... and {len(jobs) - SHOWN:,} more; -o json names all of them", None
    if left := applied.counts["left"]:
        yield f"--prune removes the {left:,} that the files don't have; --release leaves them to nobody", None


def as_json(wanted: "FileSet", applied: "AppliedSet") -> dict[str, object]:
    return {
        "set": wanted.name, "namespace": wanted.namespace, "applied": applied.applied, "etag": applied.etag,
        "from": applied.from_at, "until": applied.until_at, **applied.counts, "jobs": applied.jobs,
    }  # fmt: skip


def _job(wanted: "FileSet", job: "SetJob") -> Iterator[Line]:
    sign = _SIGNS.get(job.change, "?")
    if job.problem:
        where = f"{wanted.jobs[job.key].where}: " if job.key in wanted.jobs else ""
        yield f"! {where}{job.key}: {_SPEC.sub('', job.problem)}", SIGN_COLOURS["!"]
        return
    rest = [_ticks(job.change, job.ticks)] if job.ticks else []
    rest += ["it was made by hand"] if job.adopted else []
    rest += ["it is paused, and stays so"] if job.paused and job.change != "removed" else []
    yield f"{sign} {job.key}: {'; '.join(rest)}", SIGN_COLOURS.get(sign)
    yield from _fields(job.fields)
    if job.by_hand is not None:
        hand = job.by_hand
        did = {"delete": "deleted", "create": "made"}.get(hand.action, "changed")
        note = f": {hand.note}" if hand.note else ""
        yield f"    {did} by hand, {short_instant(hand.at)} by {hand.by}{note}", "yellow"
    if job.ticks:
        yield from _first("-", job.ticks.first_gone, job.ticks.gone)
        yield from _first("+", job.ticks.first_new, job.ticks.new)


def previewed(preview: "Preview") -> Iterator[Line]:
    """What a change of one job would do, or that it is made."""
    sign, change = ("~", "changed") if preview.etag else ("+", "created")
    yield f"ticks up to {short_instant(preview.until_at)}:", None
    yield f"{sign} {preview.key}: {_ticks(change, preview.ticks)}", SIGN_COLOURS[sign]
    yield from _fields(preview.fields)
    yield from _first("-", preview.ticks.first_gone, preview.ticks.gone)
    yield from _first("+", preview.ticks.first_new, preview.ticks.new)
    for remark in preview.explanation.remarks:
        yield f"! {remark.level}: {remark.message} {remark.remedy}".rstrip(), SIGN_COLOURS["!"]


def _fields(fields: "Sequence[FieldDifference]") -> Iterator[Line]:
    for each in fields:
        if each.field != "schedule":
            yield f"    {each.field.removeprefix('policy.')}: {each.old or 'nothing'} -> {each.new or 'nothing'}", None


def _ticks(change: str, ticks: "TickDifference") -> str:
    match change:
        case "created":
            return f"{ticks.new_schedule}, {_count(ticks.after)}"
        case "removed":
            return f"{ticks.old_schedule}, {_count(ticks.before)} gone"
        case "changed" if ticks.gone == 0 and ticks.new == 0 and ticks.old_schedule == ticks.new_schedule:
            return f"the same {_count(ticks.after)}"
        case "changed":
            schedule = ticks.new_schedule
            if ticks.old_schedule != schedule:
                schedule = f"{ticks.old_schedule} -> {schedule}"
            return f"{schedule}, {_count(ticks.before)} -> {ticks.after:,}: {_difference(ticks)}"
        case _:
            return f"{ticks.old_schedule}, {_count(ticks.before)}"


def _difference(ticks: "TickDifference") -> str:
    if ticks.gone is None or ticks.new is None:
        return "too many to compare one by one"
    if ticks.shift_ms:
        from cronring.schema.duration import format_duration

        length = format_duration(abs(ticks.shift_ms))
        return f"{ticks.gone:,} move, each {length} {'later' if ticks.shift_ms > 0 else 'earlier'}"
    return f"{ticks.gone:,} gone, {ticks.new:,} new"


def _first(sign: str, ticks: "Sequence[datetime]", count: int | None) -> Iterator[Line]:
    if ticks:
        shown = ", ".join(f"{tick:%m-%d %H:%M:%S}" for tick in ticks)
        more = "" if count == len(ticks) else ", ..." if count is None else f", and {count - len(ticks):,} more"
        yield f"    {sign} {shown}{more}", SIGN_COLOURS[sign]


def _count(ticks: int) -> str:
    return f"{ticks:,} tick{'' if ticks == 1 else 's'}"
