"""Calls about what is coming, and about how the last hour went."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import forecast_pb2 as pb2
from cronring.protos.cronring.v1.forecast_pb2_grpc import ForecastStub

_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ForecastStep:
    """A part of the time to come. `herd`: the most that begin in one second; `spread`: so with jitter="auto"."""

    at: datetime | None
    starts: int
    load: float  # runs that go on at once, on average
    herd: int
    herd_at: datetime | None
    herd_jobs: tuple[str, ...]
    spread: int


@dataclass(frozen=True, slots=True)
class Overload:
    """What comes of one module and doesn't fit its runners, from `at` on. `text` says so, in a sentence.

    `lane`: sync, async or quota (async with a limit of memory or CPU); "": no runner hosts it. `reason`: no_runner,
    load or herd.
    """

    module: str
    lane: str
    reason: str
    at: datetime | None
    runs: int
    places: int
    lateness_ms: int  # of the last run
    text: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """`left_out`: jobs that were not looked at. `unmeasured`: those of which no run has ended.

    `overloads`: the worst first, ten at most.
    """

    steps: tuple[ForecastStep, ...]
    step_ms: int
    jobs: int
    left_out: int
    unmeasured: int
    overloads: tuple[Overload, ...] = ()


@dataclass(frozen=True, slots=True)
class Recent:
    """`outcomes`: of runs that were claimed; "running" go on. `skipped`: ticks, by why. None: no run has begun."""

    outcomes: dict[str, int]
    skipped: dict[str, int]
    lateness_p50_ms: float | None
    lateness_p99_ms: float | None


class ForecastCalls:
    """What is coming, and what has just been."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def get(self, within: timedelta = _DAY) -> Forecast:
        """In 96 steps. Raises Invalid for less than an hour, or more than a week."""
        request, timeout = pb2.GetForecastRequest(within_ms=within // timedelta(milliseconds=1)), 60.0
        answer = await self._failover.unary(lambda channel: ForecastStub(channel).GetForecast(request, timeout=timeout))
        steps = (
            ForecastStep(
                convert.instant(each.at), each.starts, each.load, each.herd, convert.instant(each.herd_at),
                tuple(each.herd_jobs), each.spread,
            )
            for each in answer.steps
        )  # fmt: skip
        over = (
            Overload(
                each.module, each.lane, each.reason, convert.instant(each.at), each.runs, each.places, each.lateness_ms,
                each.text,
            )
            for each in answer.overloads
        )  # fmt: skip
        return Forecast(tuple(steps), answer.step_ms, answer.jobs, answer.left_out, answer.unmeasured, tuple(over))

    async def recent(self, within: timedelta = _HOUR) -> Recent:
        """How ticks of the last time ended. Raises Invalid for less than a minute, or more than a day."""
        request = pb2.GetRecentRequest(within_ms=within // timedelta(milliseconds=1))
        timeout = self._failover.timeout_s
        answer = await self._failover.unary(lambda channel: ForecastStub(channel).GetRecent(request, timeout=timeout))
        return Recent(
            dict(sorted(answer.outcomes.items())),
            dict(sorted(answer.skip_reasons.items())),
            answer.lateness_p50_ms if answer.HasField("lateness_p50_ms") else None,
            answer.lateness_p99_ms if answer.HasField("lateness_p99_ms") else None,
        )
