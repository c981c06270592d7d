"""cronring.v1.Statistics: figures of all time, the same whichever controller answers."""

from datetime import date, timedelta
from typing import Final

from cronring.controller.api.lookup import find_job, unknown_job
from cronring.controller.api.messages import UTC_NAME
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, labels, name, number, required
from cronring.controller.api.scope import namespaces, sees
from cronring.controller.core.figures import Figures, Spread
from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import Reads
from cronring.controller.ports.statistics import DaySpread, Statistics
from cronring.protos.cronring.v1 import statistics_pb2, statistics_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.explain import wall_text
from cronring.schema.identity import Permission
from cronring.schema.policy import parse_policy
from cronring.schema.year import day_starts
from cronring.schema.zone import Zone, ZoneError, load_zone

_DAYS: Final = 14
_DAYS_MAX: Final = 62
_DAY: Final = timedelta(days=1)


class StatisticsService(statistics_pb2_grpc.StatisticsServicer):
    """Reading only."""

    def __init__(self, statistics: Statistics, reads: Reads) -> None:
        self._statistics = statistics
        self._reads = reads

    async def GetJobStats(
        self, request: statistics_pb2.GetJobStatsRequest, context: Context
    ) -> statistics_pb2.JobStats:
        key = required("job", request.job, "a job's key, like module.verb")
        if not sees(key):
            raise await unknown_job(self._reads, key)
        try:
            row = await self._statistics.job(key)
        except NotFound:
            raise await unknown_job(self._reads, key) from None
        figures = row.figures
        return statistics_pb2.JobStats(
            job=key,
            status=row.status,
            executions=figures.executions,
            running=figures.running,
            successes=figures.successes,
            failures=figures.ended - figures.successes,
            outcomes=figures.outcomes,
            success_rate=figures.success_rate,
            duration=_spread(row.duration),
            lateness=_spread(row.lateness),
            last_started_at=timestamp(row.last_started_at),
            last_ended_at=timestamp(row.last_ended_at),
            last_outcome=row.last_outcome,
            next_tick=timestamp(row.next_tick),
            next_run_at=timestamp(row.next_run_at),
        )

    async def GetJobDays(self, request: statistics_pb2.GetJobDaysRequest, context: Context) -> statistics_pb2.JobDays:
        days = number(request, "days", _DAYS, _DAYS_MAX)
        row = await find_job(self._reads, request.job, Permission.VIEW, "job")
        zone = _zone(name("timezone", request.timezone) or parse_policy(row.spec.policy).timezone or UTC_NAME)
        today = date.fromisoformat(wall_text(zone, await self._reads.database_now())[:10])
        starts = day_starts(today - (days - 1) * _DAY, today + _DAY, zone.name)
        found = await self._statistics.days(row.job_id, starts)
        return statistics_pb2.JobDays(
            timezone=zone.name,
            days=[
                statistics_pb2.JobDay(
                    day=(today - (days - 1 - index) * _DAY).isoformat(),
                    from_at=timestamp(starts[index]),
                    until_at=timestamp(starts[index + 1]),
                    runs=each.runs,
                    completed=each.completed,
                    duration=_day_spread(each.duration),
                    lateness=_day_spread(each.lateness),
                )
                for index, each in enumerate(found)
            ],
        )

    async def GetSchedulerStats(
        self, request: statistics_pb2.GetSchedulerStatsRequest, context: Context
    ) -> statistics_pb2.SchedulerStats:
        row = await self._statistics.scheduler(namespaces(Permission.VIEW), labels("labels", request.labels))
        figures = row.figures
        return statistics_pb2.SchedulerStats(
            counted_at=timestamp(row.counted_at),
            jobs=row.jobs,
            executions=figures.executions,
            running=figures.running,
            successes=figures.successes,
            failures=figures.ended - figures.successes,
            outcomes=figures.outcomes,
            success_rate=figures.success_rate,
            average_duration_ms=_average_ms(figures.duration_us, figures),
            average_lateness_ms=_average_ms(figures.lateness_us, figures),
            leases_cleared=row.leases_cleared,
            last_check=timestamp(row.last_check),
            last_maintenance=timestamp(row.last_maintenance),
        )


def _zone(timezone: str) -> Zone:
    """Raises InvalidRequest."""
    try:
        return load_zone(timezone)
    except ZoneError as error:
        raise InvalidRequest([("timezone", str(error))]) from None


def _day_spread(spread: DaySpread | None) -> statistics_pb2.DaySpread | None:
    if spread is None:
        return None
    p50, p99, most = (us / 1e3 for us in spread)
    return statistics_pb2.DaySpread(p50_ms=p50, p99_ms=p99, most_ms=most)


def _average_ms(total_us: int, figures: Figures) -> float | None:
    return total_us / figures.ended / 1e3 if figures.ended else None


def _spread(spread: Spread | None) -> statistics_pb2.Spread | None:
    if spread is None:
        return None
    average, p50, p95, p99 = (us / 1e3 for us in spread)
    return statistics_pb2.Spread(average_ms=average, p50_ms=p50, p95_ms=p95, p99_ms=p99)
