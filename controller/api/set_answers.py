"""What ApplySet and its like answer: each job, what differs, and what that does to its ticks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.problems import refusal_message
from cronring.controller.ports.sets import ByHand, SetRow
from cronring.controller.services.set_plans import JobFate, JobStep, fields_of, ticks_of
from cronring.protos.cronring.v1 import sets_pb2
from cronring.protos.instants import timestamp
from cronring.schema.diff import FieldChange
from cronring.schema.forecast import COMPARED, JobForecast

COMPARED_OF_ALL: Final = 100_000  # ticks that are compared one by one for one answer; beyond, they are counted


class SetAnswer(NamedTuple):
    """Of one call. Ticks are compared in (now, until], microseconds since 1970."""

    steps: Sequence[JobStep]
    by_hand: Mapping[str, ByHand]
    now: int
    until: int

    def message(self, etag: str, *, dry_run: bool) -> sets_pb2.ApplySetResponse:
        """Takes a while, of 10,000 jobs."""
        counts = Counter(str(step.change) for step in self.steps)
        return sets_pb2.ApplySetResponse(
            jobs=list(self._jobs()), **{change.value: counts[change.value] for change in JobFate},
            applied=not dry_run and not counts[JobFate.REFUSED], etag=etag, from_at=timestamp(self.now),
            until_at=timestamp(self.until),
        )  # fmt: skip

    def _jobs(self) -> Iterator[sets_pb2.SetJob]:
        left = COMPARED_OF_ALL
        for step in self.steps:
            if step.change is JobFate.UNCHANGED:
                continue
            ticks = None
            if step.change is not JobFate.REFUSED:
                ticks = ticks_of(step, self.now, self.until, min(COMPARED, left))
                left = max(left - (ticks.before + ticks.after if ticks.change == "changed" else 0), 0)
            yield sets_pb2.SetJob(
                key=step.key, change=step.change.value, ticks=None if ticks is None else ticks_message(ticks),
                fields=difference_messages(fields_of(step) if step.change is JobFate.CHANGED else ()),
                by_hand=_hand_message(self.by_hand.get(step.key)), adopted=step.adopts,
                paused=step.row is not None and step.row.status == "paused",
                refusal=None if step.refusal is None else refusal_message(step.refusal),
            )  # fmt: skip


def set_message(row: SetRow) -> sets_pb2.Set:
    return sets_pb2.Set(
        namespace=row.namespace, name=row.name, jobs=row.jobs, revision=row.revision,
        applied_at=timestamp(row.applied_at), applied_by=row.applied_by, note=row.note,
    )  # fmt: skip


def difference_messages(fields: Iterable[FieldChange]) -> list[sets_pb2.FieldDifference]:
    return [sets_pb2.FieldDifference(field=each.field, old=each.old, new=each.new) for each in fields]


def ticks_message(ticks: JobForecast) -> sets_pb2.TickDifference:
    return sets_pb2.TickDifference(
        before=ticks.before, after=ticks.after, gone=ticks.gone, new=ticks.new, first_gone=_stamps(ticks.first_gone),
        first_new=_stamps(ticks.first_new), shift_ms=ticks.shift_us // 1_000, old_schedule=ticks.old_schedule,
        new_schedule=ticks.new_schedule,
    )  # fmt: skip


def _stamps(ticks: Sequence[int]) -> list[Timestamp]:
    return [stamp for stamp in map(timestamp, ticks) if stamp is not None]


def _hand_message(change: ByHand | None) -> sets_pb2.HandChange | None:
    if change is None:
        return None
    return sets_pb2.HandChange(at=timestamp(change.at), action=change.action, by=change.by, note=change.note)
