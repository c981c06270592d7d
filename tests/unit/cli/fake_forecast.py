"""The part of the API with canned answers that tells what is coming."""

from typing import Any

from cronring.protos.cronring.v1 import forecast_pb2, forecast_pb2_grpc
from tests.unit.cli.fake_times import stamp


class FakeForecast(forecast_pb2_grpc.ForecastServicer):
    check: Any

    async def GetForecast(self, request: Any, context: Any) -> forecast_pb2.GetForecastResponse:  # noqa: N802
        await self.check(request, context)
        steps = [
            forecast_pb2.ForecastStep(at=stamp(900 * step), starts=4, load=0.5, herd=4, herd_at=stamp(900 * step),
                                      herd_jobs=["billing.refresh"], spread=2)
            for step in range(96)
        ]  # fmt: skip
        over = forecast_pb2.Overload(
            module="billing", lane="sync", reason="herd", at=stamp(900), runs=4, places=2, lateness_ms=60_000,
            text="4 sync runs of billing begin at once: the last begins about 1m late.",
        )  # fmt: skip
        return forecast_pb2.GetForecastResponse(steps=steps, step_ms=900_000, jobs=4, overloads=[over])

    async def GetRecent(self, request: Any, context: Any) -> forecast_pb2.GetRecentResponse:  # noqa: N802
        await self.check(request, context)
        return forecast_pb2.GetRecentResponse(outcomes={"completed": 3})
