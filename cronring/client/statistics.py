"""Calls about figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import statistics_pb2
from cronring.protos.cronring.v1.statistics_pb2_grpc import StatisticsStub


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took. The quantiles are within 9.1 % of the true ones."""

    average_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class JobStats:
    """Of all time. `last_...` of the latest execution that ended."""

    job: str
    status: str
    executions: int  # begun
    running: int
    successes: int
    failures: int  # every end that is no success
    outcomes: dict[str, int]
    success_rate: float | None  # of those that ended; None: none has, as below
    duration: Spread | None
    lateness: Spread | None
    last_started_at: datetime | None
    last_ended_at: datetime | None
    last_outcome: str
    next_tick: datetime | None
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True)
class DaySpread:
    """Of the runs of a day, true ones."""

    p50_ms: float
    p99_ms: float
    most_ms: float


@dataclass(frozen=True, slots=True)
class JobDay:
    """Runs that ended, by the days of their ticks. Of more than 2,000 the latest 2,000 are looked at. None: of none."""

    day: str
    from_at: datetime | None
    until_at: datetime | None
    runs: int
    completed: int
    duration: DaySpread | None
    lateness: DaySpread | None


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """Of all jobs and all time, as counted at `counted_at`."""

    counted_at: datetime | None
    jobs: dict[str, int]  # by status, removed ones left out
    executions: int
    running: int
    successes: int
    failures: int
    outcomes: dict[str, int]
    success_rate: float | None
    average_duration_ms: float | None
    average_lateness_ms: float | None
    leases_cleared: int  # controllers that were gone without leaving
    last_check: datetime | None
    last_maintenance: datetime | None


class StatisticsCalls:
    """Kept as executions end. Only `days` reads history."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def job(self, key: str) -> JobStats:
        """Raises NotFound."""
        request = statistics_pb2.GetJobStatsRequest(job=key)
        timeout_s = self._failover.timeout_s
        message = await self._failover.unary(
            lambda channel: StatisticsStub(channel).GetJobStats(request, timeout=timeout_s)
        )
        return JobStats(
            message.job,
            message.status,
            message.executions,
            message.running,
            message.successes,
            message.failures,
            dict(sorted(message.outcomes.items())),
            message.success_rate if message.HasField("success_rate") else None,
            _spread(message.duration) if message.HasField("duration") else None,
            _spread(message.lateness) if message.HasField("lateness") else None,
            convert.instant(message.last_started_at),
            convert.instant(message.last_ended_at),
            message.last_outcome,
            convert.instant(message.next_tick),
            convert.instant(message.next_run_at),
        )

    async def days(self, key: str, days: int = 14, timezone: str = "") -> tuple[JobDay, ...]:
        """The latest days, in order, by the clocks of `timezone` ("": the job's). Raises NotFound, Invalid."""
        request = statistics_pb2.GetJobDaysRequest(job=key, days=days, timezone=timezone)
        timeout_s = self._failover.timeout_s
        answer = await self._failover.unary(
            lambda channel: StatisticsStub(channel).GetJobDays(request, timeout=timeout_s)
        )
        return tuple(map(_day, answer.days))

    async def scheduler(self, labels: Mapping[str, str] | None = None) -> SchedulerStats:
        """`labels`: of jobs that have these by now; without: of all. Raises Invalid."""
        request = statistics_pb2.GetSchedulerStatsRequest(labels=labels)
        timeout_s = self._failover.timeout_s
        message = await self._failover.unary(
            lambda channel: StatisticsStub(channel).GetSchedulerStats(request, timeout=timeout_s)
        )
        return SchedulerStats(
            convert.instant(message.counted_at),
            dict(sorted(message.jobs.items())),
            message.executions,
            message.running,
            message.successes,
            message.failures,
            dict(sorted(message.outcomes.items())),
            message.success_rate if message.HasField("success_rate") else None,
            message.average_duration_ms if message.HasField("average_duration_ms") else None,
            message.average_lateness_ms if message.HasField("average_lateness_ms") else None,
            message.leases_cleared,
            convert.instant(message.last_check),
            convert.instant(message.last_maintenance),
        )


def _day(message: statistics_pb2.JobDay) -> JobDay:
    return JobDay(
        message.day, convert.instant(message.from_at), convert.instant(message.until_at), message.runs,
        message.completed, _day_spread(message.duration) if message.HasField("duration") else None,
        _day_spread(message.lateness) if message.HasField("lateness") else None,
    )  # fmt: skip


def _day_spread(message: statistics_pb2.DaySpread) -> DaySpread:
    return DaySpread(message.p50_ms, message.p99_ms, message.most_ms)


def _spread(message: statistics_pb2.Spread) -> Spread:
    return Spread(message.average_ms, message.p50_ms, message.p95_ms, message.p99_ms)
