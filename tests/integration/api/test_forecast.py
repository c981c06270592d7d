"""What is coming, and how the last hour went, of what a caller may view."""

import grpc
import pytest

from cronring.controller.core.model import RunnerInfo
from cronring.controller.store.connect import connect
from cronring.protos.cronring.v1 import forecast_pb2
from tests.integration.api.conftest import Filled
from tests.integration.api.test_who_sees import Caller, shows

HOUR_MS = 3_600_000


async def forecast(caller: Caller, within_ms: int = 24 * HOUR_MS) -> forecast_pb2.GetForecastResponse:
    request = forecast_pb2.GetForecastRequest(within_ms=within_ms)
    found: forecast_pb2.GetForecastResponse = await caller.ask(
        "cronring.v1.Forecast/GetForecast", request, forecast_pb2.GetForecastResponse
    )
    return found


async def recent(caller: Caller) -> forecast_pb2.GetRecentResponse:
    found: forecast_pb2.GetRecentResponse = await caller.ask(
        "cronring.v1.Forecast/GetRecent", forecast_pb2.GetRecentRequest(), forecast_pb2.GetRecentResponse
    )
    return found


async def lasting_an_hour(database_url: str, which: str) -> None:
    """Two runs of each job with such a verb have ended."""
    connection = await connect(database_url, "cronring test scene")
    await connection.execute(
        """
        INSERT INTO cron_figures (job_id, outcomes, duration_us, lateness_us, durations, latenesses)
        SELECT id, '{2,0,0,0,0,0,0}', 7200000000, 0, '{}', '{}' FROM cron_jobs WHERE verb LIKE $1
        """,
        which,
    )
    await connection.close()


async def test_jobs_that_tick_are_counted_and_paused_ones_are_not(filled: Filled) -> None:
    every, some = await forecast(Caller(filled, "root")), await forecast(Caller(filled, "viewer"))
    assert (every.jobs, some.jobs) == (4, 2), "one of three in each namespace is paused"
    assert len(every.steps) == 96
    assert every.step_ms == 900_000
    # Every hour, in each of 24 hours.
    assert sum(step.starts for step in every.steps) == pytest.approx(96, abs=4)
    assert sum(step.starts for step in some.steps) == pytest.approx(48, abs=2)
    assert {job for step in some.steps for job in step.herd_jobs} <= {"billing/xm.xa", "billing/xm.xb"}
    for name in ("viewer", "admin"):  # test_who_sees.py: but of which jobs a herd is shown follows from when they began
        request = forecast_pb2.GetForecastRequest()
        assert not shows(await Caller(filled, name).ask("cronring.v1.Forecast/GetForecast", request))


async def test_load_is_by_measured_durations(filled: Filled, database_url: str) -> None:
    caller = Caller(filled, "root")
    assert sum(step.load for step in (await forecast(caller, HOUR_MS)).steps) == 0
    await lasting_an_hour(database_url, "xa")
    found = await forecast(caller, 48 * HOUR_MS)  # another span: no answer of before
    assert sum(step.load for step in found.steps) / 96 == pytest.approx(1.0, abs=0.05), "an hour of each hour"
    assert found.unmeasured == 3


async def test_what_wont_fit_is_told_of_what_a_caller_may_view(filled: Filled, database_url: str) -> None:
    await lasting_an_hour(database_url, "%")
    root, viewer = Caller(filled, "root"), Caller(filled, "viewer")
    assert not (await forecast(root)).overloads, "runners that don't tell their places"
    for runner, deployment in (("xr", filled.deployment), ("hush_r", filled.hidden_deployment)):
        await filled.world.store.register_runner(RunnerInfo(runner, "host", 8, "0.1.0", (deployment,), None, 1, 9))
    every, some = await forecast(root, 12 * HOUR_MS), await forecast(viewer, 12 * HOUR_MS)
    assert {over.module for over in every.overloads} == {"billing/xm", "hush/hush_m"}
    assert {over.module for over in some.overloads} == {"billing/xm"}
    load = next(over for over in some.overloads if over.reason == "load")
    assert (load.lane, load.places) == ("sync", 1)
    assert load.lateness_ms == pytest.approx(12 * HOUR_MS, rel=0.15)
    assert "sync runs of billing/xm need 2.0 places on average, and its runners have 1 place for them" in load.text


async def test_what_no_live_runner_hosts_wont_run(filled: Filled) -> None:
    await filled.world.scene.last_saw_runner("xr", 3_600)
    (over,) = (await forecast(Caller(filled, "root"), 6 * HOUR_MS)).overloads
    assert (over.module, over.lane, over.reason) == ("billing/xm", "", "no_runner")
    assert over.runs == pytest.approx(11, abs=1)
    assert over.text == f"{over.runs} runs of billing/xm are due, and no runner hosts it."


@pytest.mark.parametrize("within_ms", [0, HOUR_MS - 1, 7 * 24 * HOUR_MS + 1])
async def test_a_forecast_has_bounds(filled: Filled, within_ms: int) -> None:
    request = forecast_pb2.GetForecastRequest(within_ms=within_ms)
    code, _ = await Caller(filled, "root").refused("cronring.v1.Forecast/GetForecast", request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_last_hour_is_counted_by_outcome_and_by_why_ticks_were_skipped(
    filled: Filled, database_url: str
) -> None:
    connection = await connect(database_url, "cronring test scene")
    await connection.execute(
        """
        INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
        SELECT id, 'overlap', now(), now(), 3, 'c1' FROM cron_jobs WHERE verb IN ('xa', 'hush_a');
        INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
        SELECT id, 'paused', now() - interval '1 hour', now() + interval '9 hours', 600, 'c1'
        FROM cron_jobs WHERE verb = 'xb'
        """
    )
    await connection.close()
    every, some = await recent(Caller(filled, "root")), await recent(Caller(filled, "viewer"))
    assert dict(every.outcomes) == {"completed": 2, "running": 2}
    assert dict(some.outcomes) == {"completed": 1, "running": 1}
    assert every.skip_reasons["overlap"] == 6
    assert some.skip_reasons["overlap"] == 3
    assert some.skip_reasons["paused"] == pytest.approx(60, abs=2), "what is to come has not been skipped yet"
    assert 0 < some.lateness_p50_ms <= some.lateness_p99_ms < HOUR_MS
