"""Figures of jobs and of the scheduler: from folded executions, and from those not folded yet."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from cronring.controller.core.figures import OUTCOMES, Figures, spread
from cronring.controller.core.ticks import upcoming
from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.statistics import DayFigures, DaySpread, JobFigures, SchedulerFigures
from cronring.controller.store.pool import Database
from cronring.sql.parameters import GetDayFigures, GetJobFigures, GetLabelFigures, GetSchedulerFigures, GetUnfolded

# The scheduler's figures read every job's row. They are kept, so that this takes a twentieth of the time at most.
_KEPT_S: Final = 2.0
_KEPT_FACTOR: Final = 20
_LOOKED_AT: Final = 2_000  # runs of one day
_KEPT_MAX: Final = 64  # answers, by the caller's namespaces and the labels asked for

Labels = tuple[tuple[str, str], ...]


class _Kept(NamedTuple):
    figures: SchedulerFigures
    until_s: float


class PostgresStatistics:
    """controller.ports.statistics.Statistics. Every method raises cronring.controller.errors.StoreUnavailable or
    StoreError.

    `lease_ms`: the cluster's.
    """

    def __init__(self, database: Database, lease_ms: int) -> None:
        self._database = database
        self._lease_us = lease_ms * 1_000
        self._one_at_a_time = asyncio.Lock()
        self._kept: dict[tuple[Namespaces, Labels], _Kept] = {}  # the one used the longest ago comes first

    async def job(self, key: str) -> JobFigures:
        """Raises cronring.controller.errors.NotFound."""
        async with self._database.transaction("reading figures", snapshot=True) as transaction:
            records = await transaction.fetch(GetJobFigures(key=key))
            if not records:
                raise NotFound(f"there is no job {key!r}; `cronring jobs list` shows them")
            row = records[0]
            unfolded = await transaction.fetch(GetUnfolded(job_id=row["id"]))
        outcomes = Counter(dict(zip(OUTCOMES, row["outcomes"], strict=True)))
        durations = _histogram(row["first_duration"], row["durations"])
        latenesses = _histogram(row["first_lateness"], row["latenesses"])
        duration_us, lateness_us = row["duration_us"], row["lateness_us"]
        for outcome, lasted_us, late_us, duration, lateness in unfolded:
            outcomes[outcome] += 1
            duration_us, lateness_us = duration_us + lasted_us, lateness_us + late_us
            durations[duration] += 1
            latenesses[lateness] += 1
        figures = _figures(row["executions"], outcomes, duration_us, lateness_us)
        *latest, next_tick, next_run_at, schedule, anchor, policy = row[-8:]
        slot = upcoming(key, (schedule, anchor, policy), next_tick, next_run_at) or (None, None)
        return JobFigures(
            row["status"],
            figures,
            spread(duration_us, durations),
            spread(lateness_us, latenesses),
            *latest,
            *slot,
        )

    async def days(self, job_id: int, starts: Sequence[int]) -> list[DayFigures]:
        """Figures between each of `starts` and the next one. Only the latest 2,000 runs of a day are looked at.

        Why there is no table of days: docs/decisions/0111-days-are-read-from-executions.md.
        """
        asked = GetDayFigures(starts=starts[:-1], ends=starts[1:], job_id=job_id, limit=_LOOKED_AT)
        return [
            DayFigures(runs, completed, _day_spread(durations), _day_spread(latenesses))
            for runs, completed, durations, latenesses in await self._database.fetch(asked)
        ]

    async def scheduler(
        self, namespaces: Namespaces = None, labels: Mapping[str, str] = MappingProxyType({})
    ) -> SchedulerFigures:
        """The age of an answer is at most 20 times the duration of counting, or 2 s if that is more."""
        asked = namespaces, tuple(sorted(labels.items()))
        async with self._one_at_a_time:
            began_s = time.monotonic()
            kept = self._kept.pop(asked, None)
            if kept is None or began_s >= kept.until_s:
                figures, now_s = await self._count(namespaces, labels), time.monotonic()
                kept = _Kept(figures, now_s + max(_KEPT_S, _KEPT_FACTOR * (now_s - began_s)))
            self._kept[asked] = kept
            if len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            return kept.figures

    async def _count(self, namespaces: Namespaces, labels: Mapping[str, str]) -> SchedulerFigures:
        of_all = GetSchedulerFigures(namespaces=namespaces)
        asked = GetLabelFigures(labels=json.dumps(dict(labels)), namespaces=namespaces) if labels else of_all
        (row,) = await self._database.fetch(asked)
        outcomes = Counter(dict(zip(OUTCOMES, row["outcomes"], strict=True)))
        latest_lease: int | None = row["latest_lease"]
        return SchedulerFigures(
            row["database_now"],
            json.loads(row["jobs"]) if row["jobs"] else {},
            _figures(row["executions"], outcomes, row["duration_us"], row["lateness_us"]),
            row["leases_cleared"],
            None if latest_lease is None else latest_lease - self._lease_us,
            row["checked_at"],
        )


def _day_spread(found: Sequence[int | None] | None) -> DaySpread | None:
    p50, p99, most = found or (None, None, None)
    return None if p50 is None or p99 is None or most is None else DaySpread(p50, p99, most)


def _figures(executions: int, outcomes: Counter[str], duration_us: int, lateness_us: int) -> Figures:
    running = max(executions - outcomes.total(), 0)
    return Figures(executions, running, {name: outcomes[name] for name in OUTCOMES}, duration_us, lateness_us)


def _histogram(first: int, counts: list[int | None]) -> Counter[int]:
    return Counter({first + bucket: count for bucket, count in enumerate(counts) if count})
