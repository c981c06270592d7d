"""The books of a span of virtual time, job by job."""

import pytest

from cronring.controller.core.orders.redeploy import deployment_key
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.instant import parse_instant
from cronring.virtual.engine import Engine
from cronring.virtual.inprocess import RunsHere
from cronring.virtual.loading import load_here
from cronring.virtual.outages import parse_outage
from cronring.virtual.report import JobReport, job_reports
from tests.unit.virtual import author


def reports(start: str, until: str, *outages: str) -> dict[str, JobReport]:
    runs = RunsHere()
    loaded = load_here(author)
    engine = Engine(parse_instant(start), ClusterSettings(default_jitter="off"), runs)
    runs.host(deployment_key(loaded.module, loaded.digest), loaded.verbs)
    engine.deploy_all([(loaded.module, loaded.digest)])
    for outage in outages:
        engine.schedule_outage(parse_outage(outage))
    engine.run_until(parse_instant(until))
    runs.close()
    found = job_reports(engine.store, parse_instant(start), parse_instant(until))
    return {each.job.removeprefix("author."): each for each in found}


def test_every_tick_is_accounted_for() -> None:
    found = reports("2026-03-28", "2026-03-30T00:30", "database@2026-03-28T04:45+3h30m", "runners@2026-03-29T10:30+2h")
    for report in found.values():
        assert report.due == report.ran + sum(report.skipped.values()) + report.open, report
        assert report.open <= 1, report
    lazy = found["lazy"]
    assert (lazy.due, lazy.skipped, lazy.caught_up) == (48, {"no_runner": 2, "superseded": 3}, 1)
    assert found["fragile"].retries == found["fragile"].ran
    assert found["fragile"].outcomes == {"completed": 7, "failed": 7}


def test_what_the_clocks_did_in_spring() -> None:
    night = reports("2026-03-28", "2026-03-30")["nightly"]
    assert night.clock_changes == (
        "2026-03-29, 1 hour forward (02:00 -> 03:00): 02:30 does not exist; it runs at 03:00, the first instant after",
        "ran 2026-03-29T03:00:00+02:00: makes up for 02:30, which the clocks skip",
    )


def test_what_the_clocks_did_in_autumn() -> None:
    night = reports("2026-10-24", "2026-10-26")["nightly"]
    assert night.clock_changes == (
        "2026-10-25, 1 hour back (03:00 -> 02:00): 02:30 comes twice and runs once, the first time",
        "ran 2026-10-25T02:30:00+02:00: the first 02:30 of 2 on this day",
    )


@pytest.mark.parametrize("job", ["hourly", "lazy"])
def test_without_a_zone_the_clocks_do_nothing(job: str) -> None:
    assert reports("2026-03-28", "2026-03-30")[job].clock_changes == ()
