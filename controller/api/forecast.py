"""cronring.v1.Forecast: what is coming, and how the last hour went."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cronring.controller.api.requests import Context, number
from cronring.controller.api.scope import namespaces
from cronring.controller.core.ledger.coming import ComingSpan, ComingStep, Group, coming, ticking
from cronring.controller.core.ledger.overloads import HostedPlaces, Overload, overloads
from cronring.controller.ports.forecast import Forecast
from cronring.controller.ports.reads import Namespaces, Reads
from cronring.protos.cronring.v1 import forecast_pb2 as pb2
from cronring.protos.cronring.v1 import forecast_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission

_STEPS: Final = 96
_GROUPS_MAX: Final = 300
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 86_400_000
_LATE_WITHIN_MS: Final = 300_000
# A forecast reads every job's row, and computes for a while. So an answer is kept this long.
_KEPT_S: Final = 60.0
_KEPT_MAX: Final = 64


class _Kept(NamedTuple):
    answer: pb2.GetForecastResponse
    until_s: float


class ForecastService(forecast_pb2_grpc.ForecastServicer):
    """Reading only."""

    def __init__(self, forecast: Forecast, reads: Reads) -> None:
        self._forecast = forecast
        self._reads = reads
        self._one_at_a_time = asyncio.Lock()
        self._kept: dict[tuple[int, Namespaces], _Kept] = {}

    async def GetForecast(self, request: pb2.GetForecastRequest, context: Context) -> pb2.GetForecastResponse:
        within_ms = number(request, "within_ms", _DAY_MS, 7 * _DAY_MS, _HOUR_MS)
        asked = within_ms, namespaces(Permission.VIEW)
        async with self._one_at_a_time:
            kept = self._kept.pop(asked, None)
            if kept is None or time.monotonic() >= kept.until_s:
                kept = _Kept(await self._computed(*asked), time.monotonic() + _KEPT_S)
            self._kept[asked] = kept
            if len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return kept.answer

    async def _computed(self, within_ms: int, where: Namespaces) -> pb2.GetForecastResponse:
        step_us = within_ms * 1_000 // _STEPS
        now = await self._reads.database_now()
        groups, left_out = await self._forecast.groups(where, _GROUPS_MAX)
        places = await self._forecast.places()
        span = ComingSpan(now - now % 1_000_000, step_us, _STEPS)
        steps, over = await asyncio.to_thread(_reckoned, groups, places, span)
        return pb2.GetForecastResponse(
            steps=map(_step, steps), step_ms=step_us // 1_000, jobs=sum(group.jobs for group in groups),
            left_out=left_out, unmeasured=sum(group.unmeasured for group in groups), overloads=map(_overload, over),
        )  # fmt: skip

    async def GetRecent(self, request: pb2.GetRecentRequest, context: Context) -> pb2.GetRecentResponse:
        within_ms = number(request, "within_ms", _HOUR_MS, _DAY_MS, _MINUTE_MS)
        found = await self._forecast.recent(within_ms, _LATE_WITHIN_MS, namespaces(Permission.VIEW))
        return pb2.GetRecentResponse(
            outcomes=found.outcomes,
            skip_reasons=found.skipped,
            lateness_p50_ms=None if found.p50_us is None else found.p50_us / 1_000,
            lateness_p99_ms=None if found.p99_us is None else found.p99_us / 1_000,
        )


def _reckoned(
    groups: Sequence[Group], places: Mapping[str, HostedPlaces], span: ComingSpan
) -> tuple[list[ComingStep], list[Overload]]:
    found = ticking(groups, span)
    return coming(found, span), overloads(found, places, span)


def _overload(over: Overload) -> pb2.Overload:
    return pb2.Overload(
        module=over.module, lane=over.lane, reason=over.reason, at=timestamp(over.at), runs=over.runs,
        places=over.places, lateness_ms=over.late_us // 1_000, text=over.text,
    )  # fmt: skip


def _step(step: ComingStep) -> pb2.ForecastStep:
    return pb2.ForecastStep(
        at=timestamp(step.at), starts=step.starts, load=step.load, herd=step.herd, herd_at=timestamp(step.herd_at),
        herd_jobs=step.herd_keys, spread=step.spread,
    )  # fmt: skip
